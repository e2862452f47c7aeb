# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines with one improved quantity each, and the time that each quantity gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from towpath.errors import ConfigError
from towpath.specs.chip_cluster_spec import ChipClusterSpec
from towpath.specs.chip_spec import ChipSpec
from towpath.specs.input_file import YamlDocument
from towpath.specs.machine_spec import MachineSpec
from towpath.specs.spec_model import validated

# Blocks of descriptions with quantities of data movement.
_BLOCKS_OF_CHIPS = ("router", "niu", "dram", "ethernet", "pcie")
# A link at another rate sends and delivers at it.
_ETHERNET_RATES = (("ethernet", "line_rate_gb_per_s"), ("ethernet", "delivery_rate_gb_per_s"))
# Amounts that are better if they are larger, and times that are better if they are shorter.
_LARGER = ("_gb_per_s", "_gbit_per_s", "_mhz", "_per_cycle")
_SHORTER = ("_ns", "_us", "_cycles")
_SOURCE = "changed by `towpath whatif`"


@dataclass(frozen=True)
class Improved:
    """A machine with one improved quantity.

    Attributes:
        path: path of the quantity in the description, such as "link_types.nvlink.rate_gb_per_s".
        before: its value.
        after: its improved value.
        spec: the description.
    """

    path: str
    before: float
    after: float
    spec: Any


@dataclass(frozen=True)
class Refused:
    """A quantity that cannot be improved.

    Attributes:
        path: path of the quantity.
        reason: the reason as a sentence.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Gain:
    """The gain from one quantity.

    Attributes:
        path: path of the quantity.
        before: its value.
        after: its improved value.
        speedups: time before divided by time after, by collective and size in bytes.
        limit: the limit after the change as a sentence, or an empty string.
    """

    path: str
    before: float
    after: float
    speedups: dict[tuple[str, int], float]
    limit: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        rows = [
            {"collective": collective, "size_bytes": size, "speedup": speedup}
            for (collective, size), speedup in self.speedups.items()
        ]
        return {"path": self.path, "before": self.before, "after": self.after,
                "limit": self.limit, "speedups": rows}  # fmt: skip


@dataclass(frozen=True)
class WhatIf:
    """The gains on one machine.

    Attributes:
        machine: the machine with its size.
        times: the factor of the improvements.
        base_us: time before, by collective and size in bytes.
        schedules: the schedule of each of these calls, which stays the same.
        limits: the limit of each collective at its largest size, as a sentence.
        gains: gains by falling best speedup.
        refused: quantities that cannot be improved by the factor.
        drawing: the machine as SVG, or an empty string.
    """

    machine: str
    times: float
    base_us: dict[tuple[str, int], float]
    schedules: dict[tuple[str, int], str]
    limits: dict[str, str]
    gains: list[Gain]
    refused: list[Refused]
    drawing: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        base = [
            {"collective": collective, "size_bytes": size, "time_us": time_us,
             "schedule": self.schedules[collective, size]}
            for (collective, size), time_us in self.base_us.items()
        ]  # fmt: skip
        return {
            "machine": self.machine, "times": self.times, "base": base, "limits": self.limits,
            "gains": [each.to_dict() for each in self.gains],
            "refused": [vars(each) for each in self.refused],
        }  # fmt: skip


def improved(spec: MachineSpec | ChipClusterSpec, times: float) -> Iterator[Improved | Refused]:
    """The machine with each of its quantities improved in turn.

    Rates are multiplied, and times are divided. A quantity without an improvement is left out, such
    as a time of zero. A quantity whose improved value is not valid is refused.

    Args:
        spec: a cluster of GPUs or of chips.
        times: the factor, above 1.
    """
    if isinstance(spec, ChipClusterSpec):
        yield from _improved_chips(spec, times)
        return
    data = spec.model_dump()
    for name, paths in _groups_of_gpus(data).items():
        try:
            if found := _changed(type(spec), data, paths, times):
                yield Improved(name, *found)
        except ConfigError as error:
            yield Refused(name, error.problem)


def _groups_of_gpus(data: dict[str, Any]) -> dict[str, list[tuple[str, ...]]]:
    """The paths that change together, by name: link types of one kind, and single costs of GPUs."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for link_type, block in data["link_types"].items():
        for path in _quantities(block, ("link_types", link_type)):
            groups.setdefault(f"{block['kind']} links: {'.'.join(path[2:])}", []).append(path)
    for path in _quantities(data["gpu_cost"], ("gpu_cost",)):
        groups[".".join(path)] = [path]
    return groups


def _improved_chips(spec: ChipClusterSpec, times: float) -> Iterator[Improved | Refused]:
    """All chips of a cluster change together. Chips of other kinds may lack the quantity."""
    kinds = {id(placed.chip): placed.chip for placed in spec.chips}
    first = next(iter(kinds.values()))
    data = first.model_dump()
    for name, paths in _groups_of_chips(data).items():
        try:
            found = {
                key: new
                for key, chip in kinds.items()
                if (new := _changed(ChipSpec, chip.model_dump(), paths, times)) is not None
            }
        except ConfigError as error:
            yield Refused(name, error.problem)
            continue
        if found:
            before, after, _ = next(iter(found.values()))
            chips = tuple(
                replace(placed, chip=found[id(placed.chip)][2])
                if id(placed.chip) in found
                else placed
                for placed in spec.chips
            )
            yield Improved(name, before, after, replace(spec, chips=chips))


def _groups_of_chips(data: dict[str, Any]) -> dict[str, list[tuple[str, ...]]]:
    """The paths that change together, by name: rates of an Ethernet link, and single quantities."""
    blocks = {name: data[name] for name in _BLOCKS_OF_CHIPS if data.get(name)}
    groups: dict[str, list[tuple[str, ...]]] = {"clock_mhz": [("clock_mhz",)]}
    for path in _quantities(blocks):
        name = "ethernet links: rate_gb_per_s" if path in _ETHERNET_RATES else ".".join(path)
        groups.setdefault(name, []).append(path)
    return groups


def _quantities(data: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of rates and times."""
    for name, value in data.items():
        path = (*above, name)
        if name.endswith((*_LARGER, *_SHORTER)):
            yield path
        elif isinstance(value, Mapping):
            yield from _quantities(value, path)


def _changed(
    kind: Any, data: dict[str, Any], paths: Sequence[tuple[str, ...]], times: float
) -> tuple[float, float, Any] | None:
    """The first value, its improved value and the changed spec. None if nothing can change.

    Raises:
        ConfigError: the improved value is not valid.
    """
    copy: dict[str, Any] = dict(data)
    values = [each for path in paths if (each := _improve(copy, path, times)) is not None]
    if not values:
        return None
    return *values[0], validated(kind, YamlDocument(copy, {}), "")


def _improve(
    copy: dict[str, Any], path: tuple[str, ...], times: float
) -> tuple[float, float] | None:
    """Improves one value in place, in copies of its blocks. The values before and after."""
    block = copy
    for name in path[:-1]:
        if not isinstance(block.get(name), Mapping):
            return None
        block[name] = dict(block[name])
        block = block[name]
    old = block.get(path[-1])
    value = old.get("value") if isinstance(old, Mapping) else old
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value <= 0:
        return None
    new = value * times if path[-1].endswith(_LARGER) else value / times
    if isinstance(value, int):
        new = max(int(new), 1)
    if new == value:
        return None
    block[path[-1]] = {"value": new, "source": _SOURCE} if isinstance(old, Mapping) else new
    return value, new
