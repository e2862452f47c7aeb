# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Gains from improved links, latencies and constants of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from towpath.api.chips import ChipCluster
from towpath.api.clusters import GpuCluster
from towpath.collectives.call import Call
from towpath.collectives.limits import find_limit_on_chips
from towpath.errors import ConfigError
from towpath.studies.progress import Progress, silent
from towpath.studies.whatif import Gain, Improved, Refused, WhatIf, improved

if TYPE_CHECKING:
    from towpath.api.result import RunResult

TIMES_MAX = 1000.0
_LIMITS_SHOWN = 3
_GAIN_LEAST = 1.005


def what_if(
    machine: GpuCluster | ChipCluster,
    collectives: Sequence[str],
    sizes_bytes: Sequence[int],
    *,
    times: float = 2.0,
    progress: Progress = silent,
) -> WhatIf:
    """Improves each rate and each time of a machine in turn, and simulates the same calls.

    The schedules stay the same, so that a gain is a gain of the hardware. On GPUs they are the
    choice of NCCL, and on chips the default choice.

    Args:
        machine: a cluster of GPUs or of chips.
        collectives: names of the collectives.
        sizes_bytes: sizes of the whole array in bytes.
        times: the factor: rates are multiplied, latencies and other times are divided.
        progress: called with the number of simulated machines.

    Raises:
        ConfigError: a collective does not run on the machine, or the factor is not allowed.
    """
    if not 1 < times <= TIMES_MAX:
        problem = f"times is {times:g}; it must be above 1 and at most {TIMES_MAX:g}"
        raise ConfigError(problem, field="times")
    base = _base(machine, collectives, sizes_bytes)
    before = {call: result.rows[0].time_us for call, result in base.items()}
    tried = list(improved(machine.spec, times))
    changed = [each for each in tried if isinstance(each, Improved)]
    gains = []
    with progress("improving", len(changed)) as update:
        for number, each in enumerate(changed):
            update(number, each.path)
            gains.append(_gain(machine, base, before, each))
    useful = [each for each in gains if max(each.speedups.values()) >= _GAIN_LEAST]
    useful.sort(key=lambda each: -max(each.speedups.values()))
    # The limit is a property of the largest size, so it decides the shown quantities.
    size = max(sizes_bytes)
    limits = {name: _limit(machine, base[name, size]) for name in collectives}
    specs = {each.path: each.spec for each in changed}
    useful = _with_limits(machine, base[collectives[0], size], useful, specs, size)
    return WhatIf(
        machine._where(machine.ranks), times, before,
        {call: _schedule_of(result) for call, result in base.items()},
        limits, useful, [each for each in tried if isinstance(each, Refused)], machine.draw(),
    )  # fmt: skip


def _base(
    machine: GpuCluster | ChipCluster, collectives: Sequence[str], sizes: Sequence[int]
) -> dict[tuple[str, int], RunResult]:
    found = {}
    for collective in collectives:
        for size in sizes:
            options: dict[str, Any] = {"data": False}
            if isinstance(machine, GpuCluster):
                options["library"] = machine.own_library
            result = machine.run(collective, size_bytes=size, **options)
            found[collective, size] = _again(machine, result, collective, size)
    return found


def _again(
    machine: GpuCluster | ChipCluster, result: RunResult, collective: str, size: int
) -> RunResult:
    """The same call with the same schedule, on a machine that may have changed."""
    if isinstance(machine, GpuCluster):
        return machine.run(result.schedule(), size_bytes=size, data=False)
    row = result.rows[0]
    return machine.run(
        collective, size_bytes=size, algorithm=row.algorithm, protocol=row.protocol,
        channels=row.channels, data=False,
    )  # fmt: skip


def _gain(
    machine: GpuCluster | ChipCluster, base: dict[tuple[str, int], RunResult],
    before: dict[tuple[str, int], float], each: Improved,
) -> Gain:  # fmt: skip
    other = _like(machine, each.spec)
    speedups = {
        call: before[call] / _again(other, result, *call).rows[0].time_us
        for call, result in base.items()
    }
    return Gain(each.path, each.before, each.after, speedups)


def _like(machine: GpuCluster | ChipCluster, spec: object) -> GpuCluster | ChipCluster:
    if isinstance(machine, GpuCluster):
        used = machine.ranks_per_host
        per_host = None if used == machine.spec.gpus_per_host else used
        return GpuCluster(spec, per_host)  # type: ignore[arg-type]
    return ChipCluster(spec)


def _with_limits(
    machine: GpuCluster | ChipCluster,
    result: RunResult,
    gains: list[Gain],
    specs: dict[str, Any],
    size: int,
) -> list[Gain]:
    """The gains, with the limit after the changes that gain most at one size."""
    call = (result.collective, size)
    best = sorted(gains, key=lambda each: -each.speedups[call])[:_LIMITS_SHOWN]

    def with_limit(gain: Gain) -> Gain:
        other = _like(machine, specs[gain.path])
        return replace(gain, limit=_limit(other, _again(other, result, *call)))

    return [with_limit(each) if each in best else each for each in gains]


def _limit(machine: GpuCluster | ChipCluster, result: RunResult) -> str:
    """The limit of a call with a single size, as a sentence."""
    if isinstance(machine, GpuCluster):
        return "" if result.limit is None else result.limit.sentence
    row = result.row
    assert row.steps is not None and row.again is not None  # the run is simulated
    call = Call(row.steps, result.dtype, result.op)
    usual = row.again(row.size_bytes, False)
    return find_limit_on_chips(machine.spec, call, row.size_bytes, usual).sentence


def _schedule_of(result: RunResult) -> str:
    row = result.rows[0]
    return f"{row.schedule} {row.protocol} {row.channels}"
