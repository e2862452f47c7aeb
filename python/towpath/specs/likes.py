# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Blocks of a machine file that copy those of a shipped machine: `gpu_cost: {like: dgx-h100}`.

`clock_ratio` beside `like` derives the costs of a GPU with another clock.
"""

from __future__ import annotations

import math
from typing import Any

from towpath.errors import ConfigError, quoted
from towpath.specs.input_file import FieldPath, YamlDocument

_SOURCE_LENGTH_MAX = 1000
_CLOCK_RATIOS = (0.1, 10)
# Costs in instructions of a thread block, which take a number of cycles. Others are those of links,
# memory, the host, or adapters.
_COSTS_IN_CYCLES = {
    "launch_ns", "launch_by_threads_ns", "launch_in_graph_ns", "direct_overhead_ns",
    "direct_rate_gb_per_s", "block_rate_gb_per_s", "copy_rate_gb_per_s", "forward_rate_gb_per_s",
    "send_overhead_ns", "receive_overhead_ns", "start_overhead_ns", "overlap_ns",
}  # fmt: skip


def with_likes(document: YamlDocument, file: str) -> YamlDocument:
    """The document, with each block that refers to another machine filled from that machine.

    A block with the field `like` has the fields of the other machine at the same place, and its own
    fields. The sources of the copied values begin with the machine's name. In `gpu_cost`,
    `clock_ratio` is the clock of this GPU over the other's: what takes a number of cycles there
    takes as many here.

    Args:
        document: a machine spec as written.
        file: name of the file, for errors.

    Raises:
        ConfigError: there is no such machine, it has no such block, or the ratio is not a number
            with a source.
    """
    return document._replace(data=_filled(document.data, (), document, file))


def _filled(data: object, path: FieldPath, document: YamlDocument, file: str) -> object:
    if isinstance(data, list):
        return [_filled(item, (*path, n), document, file) for n, item in enumerate(data)]
    if not isinstance(data, dict):
        return data
    own = {name: _filled(item, (*path, name), document, file) for name, item in data.items()}
    if "like" not in own or not path:
        return own
    donor = own.pop("like")
    block: Any = _block(donor, path, document, file)
    if path == ("gpu_cost",) and "clock_ratio" in own:
        ratio = _clock_ratio(own.pop("clock_ratio"), document, file)
        block = {name: _at_clock(ratio, name, item) for name, item in block.items()}
    return _merged(block, own)


def _block(donor: object, path: FieldPath, document: YamlDocument, file: str) -> object:
    from towpath.specs import shipped

    field = ".".join(map(str, path))
    line = document.lines.get((*path, "like"), 1)
    known = shipped.names("gpu_cluster")
    if not isinstance(donor, str) or donor not in known:
        problem = f"is {quoted(donor)}; choose one of {', '.join(known)}"
        raise ConfigError(problem, file=file, line=line, field=f"{field}.like")
    block: Any = shipped.machine(donor).model_dump(exclude_none=True)
    for step in path:
        if not isinstance(block, dict) or step not in block:
            problem = f"is {quoted(donor)}, which has no {field}"
            raise ConfigError(problem, file=file, line=line, field=f"{field}.like")
        block = block[step]
    return _named(block, donor)


def _clock_ratio(given: Any, document: YamlDocument, file: str) -> float:
    least, most = _CLOCK_RATIOS
    value: Any = given.get("value") if isinstance(given, dict) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    ratio = float(value) if is_number else math.nan
    if least <= ratio <= most and set(given) == {"value", "source"}:
        return ratio
    line = document.lines.get(("gpu_cost", "clock_ratio"), 1)
    problem = f"must have a value, {least:g} to {most}, and a source"
    raise ConfigError(problem, file=file, line=line, field="gpu_cost.clock_ratio")


def _at_clock(ratio: float, name: str, item: Any) -> Any:
    """A cost, or the costs of a protocol, at the clock of another GPU."""
    if name in _COSTS_IN_CYCLES:
        value = item["value"] * ratio if name.endswith("_per_s") else item["value"] / ratio
        source = f"derived by the clocks' ratio, {ratio:g}; {item['source']}"
        return {"value": float(f"{value:.3g}"), "source": source[:_SOURCE_LENGTH_MAX]}
    if isinstance(item, dict) and name != "kernel" and "value" not in item:
        return {inner: _at_clock(ratio, inner, cost) for inner, cost in item.items()}
    return item


def _named(block: Any, donor: str) -> Any:
    """The block with the donor's name before each source."""
    if not isinstance(block, dict):
        return block
    return {
        name: f"{donor}: {item}"[:_SOURCE_LENGTH_MAX]
        if name == "source" and isinstance(item, str)
        else _named(item, donor)
        for name, item in block.items()
    }


def _merged(under: Any, over: Any) -> Any:
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    names = [*under, *(name for name in over if name not in under)]
    return {
        name: _merged(under[name], over[name]) if name in over and name in under
        else over[name] if name in over else under[name]
        for name in names
    }  # fmt: skip
