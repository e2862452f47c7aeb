# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The limit of a simulated call on GPUs: the resource whose reduction costs the most time.

The call is simulated again on the same machine with one change at a time: the links of one kind a
tenth slower, copies of thread blocks a tenth slower, latencies a tenth longer, and twice the number
of FIFO slots. The loads of links cannot distinguish a busy link from a link that delays the whole
call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.collectives.result import Limit, LinkLoad
from towpath.collectives.simulated import invoke
from towpath.collectives.threads import on_several_threads, threads_for
from towpath.specs.sizes import format_size

if TYPE_CHECKING:
    from towpath.collectives.call import Call
    from towpath.collectives.places import GpuPlace
    from towpath.collectives.simulated import Outcome
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
    in_place = not call.schedule.out_of_place

    def outcome_at(changed: GpuPlace, slots_factor: int = 1) -> Outcome:
        return invoke(
            changed, call, size_bytes, in_place=in_place, with_data=False,
            slots_factor=slots_factor,
        )  # fmt: skip

    usual = known or outcome_at(place)
    busiest = usual.busiest
    weights: dict[str, float] = {}
    if usual.events_of_all <= _EVENTS_MAX:
        changed = {
            name: replace(place, machine=machine)
            for name, machine in _changed_machines(spec, usual.links).items()
        }

        def time_us(name: str) -> float:
            found = outcome_at(place, 2) if name == _SLOTS else outcome_at(changed[name])
            return found.time_us

        names = [*changed, _SLOTS]
        times_us = dict(
            zip(names, on_several_threads(time_us, names, threads_for(None)), strict=True)
        )
        for name in changed:
            weights[name] = round((times_us[name] - usual.time_us) / usual.time_us / _TENTH, 3)
        weights[_SLOTS] = round(1 - times_us[_SLOTS] / usual.time_us, 3)
    return _limit(size_bytes, weights, usual.links if weights else [], busiest), usual


def _changed_machines(spec: MachineSpec, links: list[LinkLoad]) -> dict[str, _core.Machine]:
    """The machines with one change each, by the change."""
    machine_data = spec.data()
    found = {}
    for name, change in _changes(links).items():
        data: dict[str, Any] = json.loads(json.dumps(machine_data))
        change(data)
        if data != machine_data:
            found[name] = _core.parse_machine(json.dumps(data), f"a machine with other {name}")
    return found


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
}
_CAUSES = {
    "copy": "the rate at which thread blocks copy",
    "reduction": "the rate at which thread blocks reduce",
    "latency": "the latency of its steps",
    _SLOTS: "waiting for free FIFO slots",
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
    share = f"{weights[first]:.0%} of the time"
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
