# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The limit of a simulated call: the resource whose reduction costs the most time.

The call is simulated again on the same machine with one change at a time. On GPUs, these are: the
links of one kind a tenth slower, copies of thread blocks a tenth slower, latencies a tenth longer,
and twice the number of FIFO slots. On chips, these are: Ethernet, the NoC's interfaces, DRAM or
the clock a tenth slower, and the latency of Ethernet a tenth longer. The loads of links cannot
distinguish a busy link from a link that delays the whole call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from towpath import _core
from towpath.collectives.result import Limit, LinkLoad
from towpath.collectives.simulated import invoke
from towpath.collectives.threads import on_several_threads, threads_for
from towpath.specs.sizes import format_size

if TYPE_CHECKING:
    from towpath.collectives.call import Call
    from towpath.collectives.places import ChipPlace, GpuPlace, Place
    from towpath.collectives.simulated import Outcome
    from towpath.specs.chip_cluster_spec import ChipClusterSpec
    from towpath.specs.machine_spec import MachineSpec

# A call with more events is not simulated again; what its links carried is all that is said.
_EVENTS_MAX = 3_000_000
_TENTH = 0.1
# Nothing that makes less of a difference than this is called the limit, and of two things whose
# difference is as near as this neither is the only one.
_WEIGHT_LEAST = 0.15
_WEIGHT_NEAR = 0.1

_SLOTS = "slots"
_LESS = 1 / (1 + _TENTH)  # a rate at which the same bytes take a tenth longer

Change = Callable[[dict[str, Any]], None]
Run = Callable[[], "Outcome"]


def find_limit(spec: MachineSpec, place: GpuPlace, call: Call, size_bytes: int,
               known: Outcome | None = None) -> tuple[Limit, Outcome]:  # fmt: skip
    """Finds the limit of a call, and its time.

    Args:
        spec: the machine.
        place: the places of the ranks on the machine.
        call: the call of the ranks.
        size_bytes: size of the array.
        known: the time of the call, if it was already simulated.
    """
    usual = known or _outcome(place, call, size_bytes)
    busiest = usual.busiest
    weights: dict[str, float] = {}
    if usual.events_of_all <= _EVENTS_MAX:

        def again(text: str, name: str) -> Outcome:
            machine = _core.parse_machine(text, f"a machine with other {name}")
            return _outcome(replace(place, machine=machine), call, size_bytes)

        runs = _runs(spec.data(), _changes(usual.links), again)
        runs[_SLOTS] = partial(_outcome, place, call, size_bytes, slots_factor=2)
        longer = _longer(usual, runs)
        weights = _weights(longer)
        weights[_SLOTS] = round(-longer[_SLOTS], 3)
    return _limit(size_bytes, weights, usual.links if weights else [], busiest), usual


def find_limit_on_chips(
    spec: ChipClusterSpec, call: Call, size_bytes: int, usual: Outcome
) -> Limit:
    """Finds the limit of a call on chips.

    Args:
        spec: the cluster.
        call: the call of the ranks.
        size_bytes: size of the array.
        usual: the simulated call.
    """
    place = cast("ChipPlace", usual.place)
    weights: dict[str, float] = {}
    if usual.events_of_all <= _EVENTS_MAX:

        def again(text: str, name: str) -> Outcome:
            cluster = _core.parse_chip_cluster(text, f"a cluster with other {name}")
            return _outcome(replace(place, cluster=cluster), call, size_bytes)

        runs = _runs(_data_of_chips(spec), _changes_of_chips(), again)
        weights = _weights(_longer(usual, runs))
        # The clock also sets the rates of the NoC's interfaces and of DRAM, if a chip has them.
        others = weights.get("noc", 0.0) + weights.get("dram", 0.0)
        weights["core"] = round(weights.pop("clock") - others, 3)
    links = usual.links if weights else []
    return _limit(size_bytes, weights, links, usual.busiest)


def _data_of_chips(spec: ChipClusterSpec) -> dict[str, Any]:
    """The data of the core, with the latencies that it leaves out because they are defaults."""
    data: dict[str, Any] = spec.data()
    chips = {id(placed.chip): placed.chip for placed in spec.chips}
    for kind, chip in zip(data["kinds"], chips.values(), strict=True):
        if chip.ethernet is not None:
            kind["ethernet"]["path_time_ns"] = chip.ethernet.path_time_ns.value
    return data


def _outcome(place: Place, call: Call, size_bytes: int, slots_factor: int = 1) -> Outcome:
    in_place = not call.schedule.out_of_place
    return invoke(
        place, call, size_bytes, in_place=in_place, with_data=False, slots_factor=slots_factor
    )


def _runs(
    machine_data: dict[str, Any], changes: dict[str, Change], again: Callable[[str, str], Outcome]
) -> dict[str, Run]:
    """The simulations of a call on changed machines, by the change.

    Args:
        machine_data: the machine.
        changes: the changes by name.
        again: simulates the call on a machine, from its data as JSON and its change.
    """
    runs: dict[str, Run] = {}
    for name, change in changes.items():
        data: dict[str, Any] = json.loads(json.dumps(machine_data))
        change(data)
        if data != machine_data:
            runs[name] = partial(again, json.dumps(data), name)
    return runs


def _longer(usual: Outcome, runs: dict[str, Run]) -> dict[str, float]:
    """The additional time of each simulation, as a share of the usual time."""
    outcomes = on_several_threads(lambda run: run(), list(runs.values()), threads_for(None))
    return {
        name: outcome.time_us / usual.time_us - 1
        for name, outcome in zip(runs, outcomes, strict=True)
    }


def _weights(longer: dict[str, float]) -> dict[str, float]:
    """The part of the time that is proportional to each change by a tenth."""
    return {name: round(share / _TENTH, 3) for name, share in longer.items()}


def _changes_of_chips() -> dict[str, Change]:
    """The changed clusters by the resource of their chips that is worse."""
    return {
        "ethernet": _change_of_chips("ethernet", "_gb_per_s", _LESS),
        "noc": _change_of_chips("niu", "_bytes_per_cycle", _LESS),
        "dram": _change_of_chips("dram", "_bytes_per_cycle", _LESS),
        "ethernet latency": _change_of_chips("ethernet", "path_time_ns", 1 + _TENTH),
        "clock": _slower_clock,
    }


def _change_of_chips(block: str, end: str, factor: float) -> Change:
    def change(data: dict[str, Any]) -> None:
        for kind in data["kinds"]:
            _scale(kind.get(block, {}), lambda name: name.endswith(end), factor)

    return change


def _slower_clock(data: dict[str, Any]) -> None:
    for kind in data["kinds"]:
        kind["clock_mhz"] *= _LESS


def _changes(links: list[LinkLoad]) -> dict[str, Change]:
    """The changed machines by their change: the kind of link, "copy", "reduction" or "latency"."""
    kinds = dict.fromkeys(link.kind for link in links if link.size_bytes)
    slower = {kind: _slower_links(kind) for kind in kinds}
    return slower | {
        "copy": _slower_gpus(lambda name: _is_amount(name) and "reduc" not in name),
        "reduction": _slower_gpus(lambda name: _is_amount(name) and "reduc" in name),
        "latency": _longer_latencies,
    }


def _slower_links(kind: str) -> Change:
    def change(data: dict[str, Any]) -> None:
        for link_type in data["link_types"].values():
            if link_type["kind"] == kind:
                _scale(link_type, _is_amount, _LESS)

    return change


def _slower_gpus(is_meant: Callable[[str], bool]) -> Change:
    def change(data: dict[str, Any]) -> None:
        for cost in _gpu_costs(data):
            _scale(cost, is_meant, _LESS)

    return change


def _gpu_costs(data: dict[str, Any]) -> list[dict[str, Any]]:
    groups = data.get("gpu_costs_of_hosts", ())
    return [data["gpu_cost"], *(group["gpu_cost"] for group in groups)]


def _longer_latencies(data: dict[str, Any]) -> None:
    for block in (*data["link_types"].values(), *_gpu_costs(data)):
        _scale(block, lambda name: name.endswith("_ns"), 1 + _TENTH)


def _is_amount(name: str) -> bool:
    return name.endswith(("_gb_per_s", "_bytes"))


def _scale(block: dict[str, Any], is_meant: Callable[[str], bool], factor: float) -> None:
    """Multiplies parameters of a block, and of the blocks within it."""
    for name, value in block.items():
        if isinstance(value, dict):
            _scale(value, is_meant, factor)
        elif is_meant(name) and isinstance(value, (int, float)) and not isinstance(value, bool):
            block[name] = type(value)(value * factor)


_KINDS = {
    "nvlink": "NVLink",
    "pcie": "PCIe",
    "network": "the network",
    "socket": "processors' links",
    "ethernet": "Ethernet",
}
_CAUSES = {
    "copy": "the rate at which thread blocks copy",
    "reduction": "the rate at which thread blocks reduce",
    "latency": "the latency of its steps",
    _SLOTS: "waiting for free FIFO slots",
    "core": "the cycles of cores and of hops of the NoC",
    "noc": "the rate of the NoC's interfaces",
    "dram": "the rate of DRAM",
    "ethernet latency": "the latency of Ethernet",
}


def _limit(
    size_bytes: int, weights: dict[str, float], links: list[LinkLoad], busiest: LinkLoad | None
) -> Limit:
    size = format_size(size_bytes)
    if not weights:
        kind = "latency" if busiest is None else busiest.kind
        text = f"at {size} the busiest link is {_link(busiest)}; the run is too large to tell more"
        return Limit(kind, size_bytes, text, {})
    first, second = sorted(weights, key=lambda kind: -weights[kind])[:2]
    if weights[first] < _WEIGHT_LEAST:
        text = f"at {size} several things limit it alike; the busiest link is {_link(busiest)}"
        return Limit("several", size_bytes, text, weights)
    text = f"at {size} limited by {_cause(first, links)}"
    if weights[second] > weights[first] - _WEIGHT_NEAR:
        text += f", and as much by {_cause(second, links)}"
    # A slower link may also spoil how steps overlap, so a weight may exceed 1.
    share = f"{min(weights[first], 1):.0%} of the time"
    text += f"; waits for slots take {share}" if first == _SLOTS else f"; it decides {share}"
    return Limit(first, size_bytes, text, weights)


def _cause(kind: str, links: list[LinkLoad]) -> str:
    if kind in _CAUSES:
        return _CAUSES[kind]
    of_kind = (link for link in links if link.kind == kind)
    busiest = max(of_kind, key=lambda link: link.busy_fraction)
    return f"{_KINDS.get(kind, kind)} ({_link(busiest)})"


def _link(link: LinkLoad | None) -> str:
    if link is None:
        return "none"
    return f"{link.from_name} to {link.to_name}, busy {link.busy_fraction:.0%}"
