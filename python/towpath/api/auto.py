# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The fastest schedule for a size: candidates are simulated without data, smallest sizes first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import itemgetter

from towpath import _core
from towpath.collectives import fabric
from towpath.collectives.call import Call
from towpath.collectives.element_types import type_bytes
from towpath.collectives.places import Place
from towpath.collectives.simulated import time_us
from towpath.collectives.threads import on_several_threads
from towpath.errors import ConfigError, DeadlockError, TowpathError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import algorithms_within
from towpath.tuning.collective import (
    Timing,
    candidates,
    cuts,
    least_us,
    line_us,
    schedule_of,
    with_chance,
)
from towpath.tuning.sites import Options

# Smaller sizes whose times say which candidates have a chance at a larger one.
_LADDER_BYTES = (1 << 10, 32 << 10, 1 << 20, 32 << 20, 1 << 30)
# Where a size costs little to simulate, all candidates with a chance are simulated at these only;
# between two of them, those that interpolation puts first are.
_ANCHORS_BYTES = (256, 8 << 10, 128 << 10, 2 << 20, 32 << 20, 512 << 20)
_FINALISTS = 4
_FINALIST_SHARE = 1.3  # of the shortest interpolated time
# Between many ranks, candidates are simulated at so many of those below a size: the line through
# two leaves out most before the largest. Beyond the last one all times are lines.
_ANCHORS_OF_MANY = 3
_MANY_BYTES_MAX = _ANCHORS_BYTES[-1]
# Of candidates whose times are as near as this, the one with the fewest thread blocks is chosen.
_SAME_SHARE = 1.005
# For more ranks than this, candidates are those whose steps together stay below the budget: about
# 20 seconds of simulation.
_RANKS_MANY = 32
_STEPS_BUDGET = 2_500_000
# The same where every transfer is simulated in full: of 32 KiB one candidate takes about half a
# second between 32 chips.
_RANKS_MANY_IN_FULL = 16
# Where few ranks stand for all, only their steps count, and take about so much less time, as no
# event is needed and what few ranks need stays in the caches. 1 MiB on dgx-h100, Simple, a channel:
# 2.4 us a step of a tree and 1.7 us of halving and doubling between 1,024 ranks, 0.13 us of a ring
# and 0.41 us of hierarchical_all_reduce folded from 8,192. For more ranks than this there are no
# other candidates.
_FOLDED_SPEED = 10
_RANKS_FOLDED = 4096


class Chooser:
    """Finds the fastest candidate of one request, and remembers what it has simulated.

    All candidates are simulated at a few fixed sizes, smallest first: tuning's bound excludes those
    without a chance at the next one. At the size asked for, the few that interpolation puts first
    are. On many ranks, candidates with too many steps to simulate are left out, and the note names
    them; on few, several are simulated at a time, one on each thread. Where every transfer is
    simulated in full, as between chips, sizes above `bytes_max` are not simulated, on many ranks
    those above the last fixed one: the line through the last two times stands for them.
    """

    def __init__(
        self,
        collective: str,
        options: Options,
        place_of: Callable[[_core.Schedule, ScheduleSource], Place],
        *,
        algorithm: str | None = None,
        type_name: str = "float32",
        root: int = 0,
        bytes_max: int | None = None,
        threads: int = 1,
    ) -> None:
        """Lists the candidates.

        Args:
            collective: its name.
            options: what candidates are made of.
            place_of: where the ranks of a candidate are, by its schedule and its source.
            algorithm: only this one; None: all of the collective.
            type_name: the element type.
            root: of broadcast and reduce.
            bytes_max: the largest size to simulate where every transfer is simulated in full; None:
                they are not.
            threads: how many work at a time; the choice does not depend on it.

        Raises:
            ConfigError: there is no candidate.
        """
        is_full = bytes_max is not None
        are_many = options.ranks > (_RANKS_MANY_IN_FULL if is_full else _RANKS_MANY)
        only_folded: list[ScheduleSource] = []
        self._left_out: list[str] = []
        if not are_many:
            named, _ = candidates(collective, options, algorithm)
        else:
            named, self._left_out = affordable(collective, options, algorithm)
            if not is_full:
                folded, left_out = affordable(collective, options, algorithm, folds=True)
                only_folded = [source for source in folded if source not in named]
                self._left_out = [text for text in self._left_out if text in left_out]
        self._sources = [replace(source, root=root) for source in [*named, *only_folded]]
        self._only_folded = {replace(source, root=root) for source in only_folded}
        self._calls = {source: Call(schedule_of(source), type_name) for source in self._sources}
        self._place_of = place_of
        self._bytes_max = bytes_max
        self._has_ladder = not are_many
        # Simulations of many ranks need much memory, and those of chips have threads of their own.
        self._threads = threads if self._has_ladder and not is_full else 1
        self._times_us: dict[tuple[ScheduleSource, int], float | None] = {}
        self._refusals: dict[int, ConfigError] = {}
        self._chosen: dict[int, tuple[ScheduleSource, str | None]] = {}

    def choose(self, size_bytes: int) -> tuple[ScheduleSource, str | None]:
        """The fastest candidate at a size, and how it was chosen where that needs a word."""
        if size_bytes not in self._chosen:
            search = self._search_by_anchors if self._bytes_max is None else self._search
            self._chosen[size_bytes] = search(size_bytes)
        return self._chosen[size_bytes]

    def _search_by_anchors(self, size_bytes: int) -> tuple[ScheduleSource, str | None]:
        able = self._able(size_bytes)
        if not self._has_ladder and size_bytes > _MANY_BYTES_MAX:
            return self._by_line(size_bytes, able)
        if len(able) > _FINALISTS:
            able = self._finalists(size_bytes, able)
        times_us = dict(zip(able, self._times_of(able, size_bytes), strict=True))
        finished = {source: time for source, time in times_us.items() if time is not None}
        if not finished:
            raise self._nothing_found(size_bytes)
        longest_us = min(finished.values()) * _SAME_SHARE
        best = next(source for source in able if finished.get(source, math.inf) <= longest_us)
        return best, self._note(size_bytes, size_bytes)

    def _by_line(
        self, size_bytes: int, able: list[ScheduleSource]
    ) -> tuple[ScheduleSource, str | None]:
        """The one with the shortest time on the line through those at the largest anchors."""
        own: dict[ScheduleSource, list[Timing]] = defaultdict(list)
        for each in self._timings(able, list(_ANCHORS_BYTES[-_ANCHORS_OF_MANY:])):
            own[each.source].append(each)
        # Anchors are far apart, and times no line between them: where chunks are cut for the first
        # time, for example.
        near = _first_by_line(own, size_bytes)
        if len(near) > 1:
            half = _MANY_BYTES_MAX // 2
            for source, found in zip(near, self._times_of(near, half), strict=True):
                if found is not None:
                    own[source].insert(-1, Timing(source, half, found))
        order = _order_by_line(
            {source: own[source] for source in near}, size_bytes, _MANY_BYTES_MAX
        )
        if not order:
            raise self._nothing_found(size_bytes)
        return next(iter(order)), self._note(size_bytes, _MANY_BYTES_MAX)

    def _finalists(self, size_bytes: int, able: list[ScheduleSource]) -> list[ScheduleSource]:
        """The candidates with the shortest times by interpolation, in the candidates' order."""
        above = [step for step in _ANCHORS_BYTES if step >= size_bytes][:1]
        below = [step for step in _ANCHORS_BYTES if step < size_bytes]
        anchors = [*(below if self._has_ladder else below[-_ANCHORS_OF_MANY:]), *above]
        points: dict[ScheduleSource, list[tuple[int, float]]] = defaultdict(list)
        for each in self._timings(self._sources, anchors):
            points[each.source].append((each.size_bytes, each.time_us))
        guesses = {
            source: _interpolated(points[source], anchors[-1], size_bytes) for source in able
        }
        shortest = min(guesses.values())
        if math.isinf(shortest):
            return able
        order = sorted(able, key=guesses.__getitem__)[:_FINALISTS]
        chosen = {source for source in order if guesses[source] <= shortest * _FINALIST_SHARE}
        return [source for source in able if source in chosen]

    def _search(self, size_bytes: int) -> tuple[ScheduleSource, str | None]:
        """Size by size up to the largest, where those with the shortest times on lines are left."""
        largest = min(size_bytes, self._bytes_max or size_bytes)
        able = self._able(size_bytes)
        own: dict[ScheduleSource, list[Timing]] = defaultdict(list)
        for step in [*(step for step in _LADDER_BYTES if step < largest), largest]:
            if step > _LADDER_BYTES[2]:
                able = _first_by_line(own, size_bytes)
            else:
                found = [timing for times in own.values() for timing in times]
                able = with_chance(able, step, found)
            self._extend(own, able, step)
        order = _order_by_line(own, size_bytes, largest)
        if not order:
            raise self._nothing_found(size_bytes)
        return next(iter(order)), self._note(size_bytes, largest)

    def _extend(
        self, own: dict[ScheduleSource, list[Timing]], able: list[ScheduleSource], step: int
    ) -> None:
        """Adds the times at a size of those that may be the fastest there, likely ones first."""
        shortest = math.inf
        for source in sorted(able, key=lambda each: line_us(own[each], step) if own[each] else 0.0):
            if len(own[source]) > 1 and least_us(own[source], step) > shortest:
                continue
            [found] = self._times_of([source], step)
            if found is not None:
                own[source].append(Timing(source, step, found))
                shortest = min(shortest, found)

    def _timings(self, sources: list[ScheduleSource], steps: list[int]) -> list[Timing]:
        """Simulated times at rising sizes, of those that have a chance by the times before."""
        timings: list[Timing] = []
        for step in steps:
            able = with_chance(sources, step, timings)
            for source, found in zip(able, self._times_of(able, step), strict=True):
                if found is not None:
                    timings.append(Timing(source, step, found))
        return timings

    def _able(self, size_bytes: int) -> list[ScheduleSource]:
        """Those that cut an array of the size; where none does, those that come nearest."""
        able = [source for source in self._sources if cuts(source, size_bytes)]
        if able:
            return able
        element_bytes = {
            source: call.elements(size_bytes) * type_bytes(call.type_name)
            for source, call in self._calls.items()
        }
        nearest = min(element_bytes.values())
        return [source for source in self._sources if element_bytes[source] == nearest]

    def _times_of(self, sources: list[ScheduleSource], size_bytes: int) -> list[float | None]:
        """The simulated times at a size; None where the schedule hangs or is too much to
        simulate."""
        unknown = [source for source in sources if (source, size_bytes) not in self._times_us]
        simulate = partial(self._simulated, size_bytes)
        timed = on_several_threads(simulate, unknown, self._threads)
        for source, found in zip(unknown, timed, strict=True):
            if isinstance(found, ConfigError):
                self._refusals[size_bytes] = found
                found = None
            self._times_us[source, size_bytes] = found
        return [self._times_us[source, size_bytes] for source in sources]

    def _simulated(self, size_bytes: int, source: ScheduleSource) -> float | ConfigError | None:
        """The simulated time; None where the schedule hangs, or where it is affordable only if few
        ranks stand for all, which do not. Or why it is too much to simulate."""
        call = self._calls[source]
        place = self._place_of(call.schedule, source)
        if source in self._only_folded and place.why_all(call.plan(size_bytes), with_data=False):
            return None
        try:
            return time_us(place, call, size_bytes)
        except DeadlockError:
            return None
        except ConfigError as error:
            return error

    def _nothing_found(self, size_bytes: int) -> TowpathError:
        """Why no candidate has a time: the first refusal up to that size, or else all hang."""
        refused = [step for step in sorted(self._refusals) if step <= size_bytes]
        if refused:
            return self._refusals[refused[0]]
        return DeadlockError(f"every candidate hangs at {size_bytes} bytes")

    def _note(self, size_bytes: int, largest_bytes: int) -> str | None:
        notes = []
        if largest_bytes < size_bytes:
            notes.append(
                "chosen by the line through the simulated times of smaller arrays, up to "
                f"{largest_bytes} bytes"
            )
        if self._left_out:
            notes.append(f"not among the candidates on so many ranks: {', '.join(self._left_out)}")
        return "; ".join(notes) or None


def _order_by_line(
    own: dict[ScheduleSource, list[Timing]], size_bytes: int, last_bytes: int
) -> dict[ScheduleSource, float]:
    """What lines say of those that were simulated up to a size, the shortest times first."""
    guesses = {
        source: line_us(times, size_bytes)
        for source, times in own.items()
        if times and times[-1].size_bytes == last_bytes
    }
    return dict(sorted(guesses.items(), key=itemgetter(1)))


def _first_by_line(
    own: dict[ScheduleSource, list[Timing]], size_bytes: int
) -> list[ScheduleSource]:
    """Those that were simulated last and take the shortest times by their lines."""
    last_bytes = max((times[-1].size_bytes for times in own.values() if times), default=0)
    order = _order_by_line(own, size_bytes, last_bytes)
    longest_us = min(order.values(), default=0.0) * _FINALIST_SHARE
    return [source for source in order if order[source] <= longest_us][:_FINALISTS]


def _interpolated(points: list[tuple[int, float]], last_bytes: int, size_bytes: int) -> float:
    """A time from those at smaller and larger sizes, on lines between logarithms.

    Args:
        points: sizes in bytes and times in microseconds, smallest first.
        last_bytes: the size without whose time there is no chance.
        size_bytes: the size asked for; beyond the last one, the line goes on.

    Returns:
        The time in microseconds; infinite where there is no chance.

    >>> _interpolated([(100, 10.0), (400, 40.0)], 400, 200)
    20.0
    """
    if not points or points[-1][0] != last_bytes:
        return math.inf
    if len(points) == 1:
        return points[0][1]
    (bytes_a, time_a), (bytes_b, time_b) = points[-2:]
    share = math.log(size_bytes / bytes_a) / math.log(bytes_b / bytes_a)
    return round(time_a * (time_b / time_a) ** max(share, 0.0), 6)


def affordable(
    collective: str, options: Options, algorithm: str | None, *, folds: bool = False
) -> tuple[list[ScheduleSource], list[str]]:
    """Candidates whose simulation does not take too long, those with the fewest steps first.

    Args:
        collective: its name.
        options: what candidates are made of; only the fewest and the most channels are tried.
        algorithm: only this one; None: all of the collective.
        folds: count the ranks that stand for all alone, also where all could be simulated.

    Returns:
        The candidates, at least one, and what was left out, in words.
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
            left_out.append(f"{name} with {channels} channel{'' if channels == 1 else 's'}")
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


def _simulated_steps(
    collective: str, algorithm: str, options: Options, channels: int, *, folds: bool
) -> float | None:
    """About how many steps are simulated: of all ranks, or of those that stand for all, as
    schedules on few hosts say; then infinite where none do. None: there is no schedule."""
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
    """About how many steps a schedule has, from those of smaller ones; None: there is none."""

    def steps(fewer: int) -> int:
        source = ScheduleSource(collective=collective, algorithm=algorithm, ranks=fewer)
        return _core.step_count(source.schedule())

    try:
        few, more = steps(16), steps(32)
    except ConfigError:
        return None
    power = math.log2(more / few)
    return more * (ranks / 32) ** power * channels
