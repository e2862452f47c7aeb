# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Selection of candidates of many ranks that can be simulated in a short time."""

from __future__ import annotations

import math

from towpath import _core
from towpath.collectives import fabric
from towpath.errors import ConfigError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import algorithms_within
from towpath.tuning.collective import Options

# Candidates' steps together stay below this: about 20 seconds of simulation.
_STEPS_BUDGET = 2_500_000
# Where few ranks stand for all, only their steps count, and take about so much less time, as no
# event is needed and what few ranks need stays in the caches. 1 MiB on dgx-h100, Simple, a channel:
# 2.4 us a step of a tree and 1.7 us of halving and doubling between 1,024 ranks, 0.13 us of a ring
# and 0.41 us of hierarchical_all_reduce folded from 8,192. For more ranks than this there are no
# other candidates.
_FOLDED_SPEED = 10
_RANKS_FOLDED = 4096


def affordable(
    collective: str, options: Options, algorithm: str | None, *, folds: bool = False
) -> tuple[list[ScheduleSource], list[str]]:
    """The candidates whose simulation does not take too long, those with the fewest steps first.

    Args:
        collective: name of the collective.
        options: options of candidates; only the fewest and the most channels are tried.
        algorithm: only this one; None: all of the collective.
        folds: True to count only the ranks that represent all, even if all could be simulated.

    Returns:
        At least one candidate, and a text about the omitted ones.
    """
    known = algorithms_within(collective, options.reaches)
    # Without columns and rows, a grid is a line.
    known = [name for name in known if options.grid or not fabric.is_on_grid(name)]
    priced = []
    for name in known if algorithm is None else [algorithm]:
        for channels in sorted({min(options.channels), max(options.channels)}):
            steps = _simulated_steps(collective, name, options, channels, folds=folds)
            if steps is not None:
                priced.append((steps * len(options.protocols), name, channels))
    sources: list[ScheduleSource] = []
    left_out = []
    budget: float = _STEPS_BUDGET
    for steps, name, channels in sorted(priced):
        if steps > budget and sources:
            left_out.append(with_channels(name, channels))
            continue
        budget -= steps
        sources += [
            ScheduleSource(
                collective=collective, algorithm=name, ranks=options.ranks, channels=channels,
                protocol=protocol, hosts=options.hosts, both_ways=options.both_ways[-1],
                **(options.grid if fabric.is_on_grid(name) else {}),
            )
            for protocol in options.protocols
        ]  # fmt: skip
    if not sources:
        raise ConfigError(f"no schedule of {collective} is known for {options.ranks} ranks")
    return sources, left_out


def with_channels(algorithm: str, channels: int) -> str:
    """A candidate as text."""
    return f"{algorithm} with {channels} channel{'' if channels == 1 else 's'}"


def _simulated_steps(
    collective: str, algorithm: str, options: Options, channels: int, *, folds: bool
) -> float | None:
    """Approximate number of simulated steps: of all ranks, or of those that represent all,
    estimated from schedules on few hosts. Infinite if no ranks represent all; None if there is no
    schedule.
    """
    steps = _steps_of(collective, algorithm, options.ranks, channels)
    if steps is None or not (folds or options.ranks > _RANKS_FOLDED):
        return steps
    gpus = max(options.ranks // options.hosts, 1)

    def period(hosts: int) -> int:
        source = ScheduleSource(
            collective=collective, algorithm=algorithm, ranks=hosts * gpus, hosts=hosts
        )
        return _core.rotation_period(source.schedule())

    if period(4) != period(8):
        return math.inf
    return steps * period(8) / options.ranks / _FOLDED_SPEED


def _steps_of(collective: str, algorithm: str, ranks: int, channels: int) -> float | None:
    """Approximate number of steps of a schedule, extrapolated from smaller ones; None if there is
    none.
    """

    def steps(fewer: int) -> int:
        source = ScheduleSource(collective=collective, algorithm=algorithm, ranks=fewer)
        return _core.step_count(source.schedule())

    try:
        few, more = steps(16), steps(32)
    except ConfigError:
        return None
    power = math.log2(more / few)
    return more * (ranks / 32) ** power * channels
