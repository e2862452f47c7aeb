# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Choice of the fastest schedule for a size: candidates are simulated without data, smallest sizes
first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from operator import itemgetter

from towpath import _core
from towpath.collectives.call import Call
from towpath.collectives.element_types import type_bytes
from towpath.collectives.places import Place
from towpath.collectives.simulated import time_within_us
from towpath.collectives.threads import on_several_threads
from towpath.errors import ConfigError, DeadlockError, TowpathError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.tuning.affordable import affordable, with_channels
from towpath.tuning.climb import Climb
from towpath.tuning.collective import (
    RANKS_MANY,
    Options,
    Timing,
    candidates,
    cuts,
    least_us,
    limit_on_line_us,
    limit_with_chance_us,
    line_us,
    schedule_of,
    with_chance,
)
from towpath.tuning.race import Race

# Up to this, candidates are simulated at the size asked for alone. For a larger one they are at the
# sizes of the ladder below it, too; above this, only those with the shortest lines are.
_DIRECT_BYTES_MAX = 1 << 20
_LADDER_BYTES = (32 << 10, 1 << 20, 32 << 20, 1 << 30)
# From here on more channels are likely to be faster.
_BULK_BYTES = 64 << 10
# Where a size costs little to simulate, the search climbs these. Beyond the last, times are lines:
# to simulate 1 TiB takes minutes. Between many ranks there are fewer steps.
_STEPS_BYTES = tuple(16 << power for power in range(0, 28, 2))
_STEPS_OF_MANY_BYTES = (256, 128 << 10, 32 << 20, 512 << 20)
_FINALISTS = 4
_FINALIST_SHARE = 1.3  # of the shortest time on lines
# As RANKS_MANY, where every transfer is simulated in full: 32 KiB of one candidate take half a
# second between 32 chips.
_RANKS_MANY_IN_FULL = 16
# Nine of ten quick times are within this share of those in full (benchmarks/collective/packets.py):
# candidates whose quick times are as near are simulated in full.
_QUICK_SHARE = 1.041
# So many microseconds of one rank are simulated in full for a choice. Flit by flit one takes
# 0.35 ms on n300 and t3000 and 0.6 ms on blackhole-line, so that this is 1.4 to 2.4 s at most;
# four finalists of 64 KiB are 160 on n300 and 1,200 on t3000.
_FULL_WORK_US = 4_000

_Own = dict[ScheduleSource, list[Timing]]  # times of candidates, each one's smallest size first


class Chooser:
    """Finds the fastest candidate of one request, and stores its simulations.

    The best candidates of a few fixed sizes, smallest first, lead to those of the requested size
    (`Climb`). On many ranks, candidates with too many steps are left out, and the note lists them.
    On few ranks, several candidates are simulated at a time, one on each thread. Above the last
    fixed size, times are lines through two smaller ones.

    If every transfer is simulated in full, as between chips, all candidates are simulated at the
    first sizes of a ladder, and tuning's bound excludes candidates without a chance at the next
    one. Sizes above `bytes_max` are not simulated.

    A simulation ends when the simulated time rules out the candidate. The choice is the same as
    after a complete simulation (`Race`).

    If a slower model provides the reported times, it also simulates the candidates that the quick
    model cannot distinguish from the fastest, if this is little work.
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
        full_place_of: Callable[[_core.Schedule, ScheduleSource], Place] | None = None,
    ) -> None:
        """Lists the candidates.

        Args:
            collective: name of the collective.
            options: options of the candidates.
            place_of: returns the places of the ranks of a candidate, by its schedule and its
                source.
            algorithm: only this one; None: all of the collective.
            type_name: the element type.
            root: root rank of broadcast and reduce.
            bytes_max: the largest size to simulate if every transfer is simulated in full; None:
                they are not.
            threads: number of threads that work at a time; the choice does not depend on it.
            full_place_of: returns the places for the finalists among sizes up to `bytes_max`; None:
                `place_of` is the model of the reported times.

        Raises:
            ConfigError: there is no candidate.
        """
        is_full = bytes_max is not None
        are_many = options.ranks > (_RANKS_MANY_IN_FULL if is_full else RANKS_MANY)
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
        self._full_place_of = full_place_of
        self._ranks = options.ranks
        self._bytes_max = bytes_max
        # Simulations of many ranks need much memory, and those of chips have threads of their own.
        self._threads = 1 if are_many or is_full else threads
        self._times_us: dict[tuple[ScheduleSource, int], float | None] = {}
        # Longer than this, where a simulation was given up.
        self._beyond_us: dict[tuple[ScheduleSource, int], float] = {}
        self._refusals: dict[int, ConfigError] = {}
        self._chosen: dict[int, tuple[ScheduleSource, str | None]] = {}
        steps_bytes = _STEPS_OF_MANY_BYTES if are_many else _STEPS_BYTES
        self._climb = Climb(self._sources, steps_bytes, self._times_of)

    def choose(self, size_bytes: int) -> tuple[ScheduleSource, str | None]:
        """The fastest candidate at a size, with a note about the choice if it needs one."""
        if size_bytes not in self._chosen:
            search = self._search_by_steps if self._bytes_max is None else self._search
            self._chosen[size_bytes] = search(size_bytes)
        return self._chosen[size_bytes]

    def _search_by_steps(self, size_bytes: int) -> tuple[ScheduleSource, str | None]:
        """Searches from step to step up to the size. Beyond the last step all times are lines."""
        able = self._able(size_bytes)
        if size_bytes > self._climb.steps_bytes[-1]:
            return self._by_line(size_bytes)
        best = self._climb.fastest(size_bytes, able)
        if best is None:
            raise self._nothing_found(size_bytes)
        return best, self._note(size_bytes, size_bytes)

    def _by_line(self, size_bytes: int) -> tuple[ScheduleSource, str | None]:
        """The candidate with the shortest time on the line through its times at the last step and
        at half of it.
        """
        last = self._climb.steps_bytes[-1]
        near = self._climb.near(last)[:_FINALISTS]
        own: _Own = {source: [] for source in near}
        for step in (last // 2, last):
            without_limit = Race(lambda *_: math.inf)
            for source, found in zip(near, self._times_of(near, step, without_limit), strict=True):
                if found is not None:
                    own[source].append(Timing(source, step, found))
        order = _order_by_line(own, size_bytes, last)
        if not order:
            raise self._nothing_found(size_bytes)
        return next(iter(order)), self._note(size_bytes, last)

    def _search(self, size_bytes: int) -> tuple[ScheduleSource, str | None]:
        """Searches a small size directly, and larger ones size by size up to the largest, where the
        candidates with the shortest times on lines are left.
        """
        largest = min(size_bytes, self._bytes_max or size_bytes)
        able = self._able(size_bytes)
        own: _Own = {source: [] for source in able}
        is_direct = size_bytes <= min(largest, _DIRECT_BYTES_MAX)
        steps = [*(step for step in _LADDER_BYTES if step < largest and not is_direct), largest]
        for step, following in zip_longest(steps, steps[1:]):
            if step > _DIRECT_BYTES_MAX:
                able = _first_by_line(own, size_bytes)
            else:
                found = [timing for times in own.values() for timing in times]
                able = with_chance(able, step, found)
            able = self._extend(own, able, step, self._race_at(own, step, following, size_bytes))
        order = _order_by_line(own, size_bytes, largest)
        if not order:
            raise self._nothing_found(size_bytes)
        note = self._note(size_bytes, largest)
        if self._full_place_of is None or largest < size_bytes:
            return next(iter(order)), note
        finalists = _told_apart_in_full(order, self._ranks)
        return self._fastest_in_full(finalists, self._full_place_of, size_bytes, note)

    def _race_at(self, own: _Own, step: int, following: int | None, size_bytes: int) -> Race:
        """The race at a step of the ladder before another step, or None."""
        if following is None:
            share = 1.0 if self._full_place_of is None else _QUICK_SHARE
            return _race_on_line(own, step, size_bytes, share)
        if following > _DIRECT_BYTES_MAX:
            return _race_on_line(own, step, size_bytes, _FINALIST_SHARE)
        return _race_for_a_chance(own, step, [following])

    def _fastest_in_full(
        self,
        finalists: list[ScheduleSource],
        place_of: Callable[[_core.Schedule, ScheduleSource], Place],
        size_bytes: int,
        note: str | None,
    ) -> tuple[ScheduleSource, str | None]:
        """The winner of several finalists in the slower model, and a note if the quick model
        selects another one.
        """
        best, best_us = finalists[0], math.inf
        for source in finalists if len(finalists) > 1 else []:
            call = self._calls[source]
            place = place_of(call.schedule, source)
            try:
                time_us = time_within_us(place, call, size_bytes, best_us)
            except DeadlockError:
                continue
            if time_us is not None and time_us < best_us:
                best, best_us = source, time_us
        if best == finalists[0]:
            return best, note
        first = with_channels(finalists[0].algorithm_name(), finalists[0].channels)
        decided = (
            f"flit by flit the fastest of {len(finalists)} whose times packet by packet are within "
            f"{_QUICK_SHARE - 1:.1%} of each other; packet by packet it is {first}"
        )
        return best, "; ".join(filter(None, [note, decided]))

    def _extend(
        self, own: _Own, able: list[ScheduleSource], step: int, race: Race
    ) -> list[ScheduleSource]:
        """Adds the times at a size of the candidates that may be fastest there, likely ones first.
        Returns the candidates that were not dropped.
        """
        shortest = math.inf
        given_up: set[ScheduleSource] = set()
        for source in _likely_first(able, own, step):
            if len(own[source]) > 1 and least_us(own[source], step) > shortest:
                continue
            [found] = self._times_of([source], step, race)
            if found == math.inf:
                given_up.add(source)
            elif found is not None:
                own[source].append(Timing(source, step, found))
                shortest = min(shortest, found)
        return [source for source in able if source not in given_up]

    def _able(self, size_bytes: int) -> list[ScheduleSource]:
        """The candidates that can divide an array of the size; if there are none, those that come
        closest.
        """
        able = [source for source, call in self._calls.items() if cuts(call, size_bytes)]
        if able:
            return able
        element_bytes = {
            source: call.elements(size_bytes) * type_bytes(call.type_name)
            for source, call in self._calls.items()
        }
        nearest = min(element_bytes.values())
        return [source for source in self._sources if element_bytes[source] == nearest]

    def _times_of(
        self, sources: list[ScheduleSource], size_bytes: int, race: Race
    ) -> list[float | None]:
        """The simulated times at a size, the first candidates first; infinite if the candidate was
        dropped, None if the schedule hangs or takes too long to simulate.
        """
        keys = [(source, size_bytes) for source in sources]
        for source, time_us in zip(sources, map(self._times_us.get, keys), strict=True):
            if time_us is not None:
                race.note(source, time_us)
        unknown = [source for source in sources if (source, size_bytes) not in self._times_us]
        simulate = partial(self._simulate, size_bytes, race)
        on_several_threads(simulate, unknown, self._threads)
        return [self._times_us.get(key, math.inf) for key in keys]

    def _simulate(self, size_bytes: int, race: Race, source: ScheduleSource) -> None:
        """Finds the simulated time, or finds that it is too long, or that the simulation is
        affordable only if few ranks represent all and they do not.
        """
        call = self._calls[source]
        key = source, size_bytes
        limit_us = race.limit_us(source)
        if limit_us <= self._beyond_us.get(key, 0.0):
            return
        try:
            place = self._place_of(call.schedule, source)
            if source in self._only_folded and place.why_all(
                call.plan(size_bytes), with_data=False
            ):
                self._times_us[key] = None
                return
            time_us = time_within_us(place, call, size_bytes, limit_us)
        except DeadlockError:
            self._times_us[key] = None
        except ConfigError as error:
            self._refusals[size_bytes] = error
            self._times_us[key] = None
        else:
            if time_us is None:
                self._beyond_us[key] = limit_us
            else:
                self._times_us[key] = time_us
                race.note(source, time_us)

    def _nothing_found(self, size_bytes: int) -> TowpathError:
        """The reason for which no candidate has a time: the first error up to that size, or a hang
        of all candidates.
        """
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


def _likely_first(sources: list[ScheduleSource], own: _Own, step: int) -> list[ScheduleSource]:
    """Orders candidates by the times on their lines, the shortest first; without any lines, for
    large data, by the number of channels, the most first.
    """
    if step >= _BULK_BYTES and not any(own[source] for source in sources):
        return sorted(sources, key=lambda each: -each.channels)
    return sorted(sources, key=lambda each: line_us(own[each], step) if own[each] else 0.0)


def _order_by_line(
    own: dict[ScheduleSource, list[Timing]], size_bytes: int, last_bytes: int
) -> dict[ScheduleSource, float]:
    """The extrapolation by lines of the candidates that were simulated up to a size, the shortest
    times first.
    """
    guesses = {
        source: line_us(times, size_bytes)
        for source, times in own.items()
        if times and times[-1].size_bytes == last_bytes
    }
    return dict(sorted(guesses.items(), key=itemgetter(1)))


def _told_apart_in_full(order: dict[ScheduleSource, float], ranks: int) -> list[ScheduleSource]:
    """The first candidates of an order that are to be simulated in full.

    Candidates with exactly the same time behave in the same way, and one of them represents them.
    """
    least_us = min(order.values())
    by_time: dict[float, ScheduleSource] = {}
    for source, time_us in order.items():
        if time_us <= least_us * _QUICK_SHARE:
            by_time.setdefault(time_us, source)
    most = min(_FINALISTS, int(_FULL_WORK_US / (least_us * ranks)))
    return list(by_time.values())[: max(most, 1)]


def _first_by_line(
    own: dict[ScheduleSource, list[Timing]], size_bytes: int
) -> list[ScheduleSource]:
    """The candidates that were simulated last and have the shortest times by their lines."""
    last_bytes = max((times[-1].size_bytes for times in own.values() if times), default=0)
    order = _order_by_line(own, size_bytes, last_bytes)
    longest_us = min(order.values(), default=0.0) * _FINALIST_SHARE
    return [source for source in order if order[source] <= longest_us][:_FINALISTS]


def _race_for_a_chance(own: _Own, step: int, later: Sequence[int]) -> Race:
    """A race at a step before others: candidates that keep a chance at one of those by the rule of
    `with_chance` stay.
    """

    def limit_us(source: ScheduleSource, best_us: float) -> float:
        return max(limit_with_chance_us(own[source], step, each, best_us) for each in later)

    return Race(limit_us)


def _race_on_line(own: _Own, step: int, size_bytes: int, share: float = 1.0) -> Race:
    """A race at the last step, or before: candidates whose line ends within a share of the shortest
    one stay.
    """

    def score_us(source: ScheduleSource, time_us: float) -> float:
        return line_us([*own[source], Timing(source, step, time_us)], size_bytes)

    def limit_us(source: ScheduleSource, best_us: float) -> float:
        return limit_on_line_us(own[source], step, size_bytes, best_us * share)

    return Race(limit_us, score_us)
