# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The fastest candidate at a size, from the fastest ones at smaller sizes.

Each step starts with the best candidate of each algorithm at the step before, and with the channels
of the winner there. It then changes one option at a time, as long as that is faster. So no single
change of the result is faster. The steps are fixed sizes: the result at a size does not depend on
other requests.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from towpath.schedules.schedule_source import ScheduleSource
from towpath.tuning.race import Race

# An algorithm this much slower than the fastest one at a step takes no part before the next step.
_NEAR = 2.0
# Options of an algorithm are improved if it is at most this much slower.
_CLOSE = 1.3
# Of candidates whose times are as near as this, the one with the fewest thread blocks is chosen.
SAME_SHARE = 1.005

TimesOf = Callable[[list[ScheduleSource], int, Race], list[float | None]]
_Found = dict[ScheduleSource, float]


class Climb:
    """The search over candidates.

    Attributes:
        steps_bytes: the fixed sizes, smallest first.
    """

    def __init__(
        self, sources: Sequence[ScheduleSource], steps_bytes: Sequence[int], times_of: TimesOf
    ) -> None:
        """Prepares the search.

        Args:
            sources: the candidates, by rising number of thread blocks.
            steps_bytes: the fixed sizes, smallest first.
            times_of: returns the times of candidates at a size in a race: infinite for a dropped
                one, None for one without a time.
        """
        self.steps_bytes = steps_bytes
        self._sources = sources
        self._times_of = times_of
        self._channels = sorted({source.channels for source in sources})
        self._variants: dict[tuple[str | None, str, int], list[ScheduleSource]] = defaultdict(list)
        for source in sources:
            key = (source.algorithm, source.protocol, source.channels)
            self._variants[key].append(source)
        self._protocols = list(dict.fromkeys(source.protocol for source in sources))
        self._at_step: dict[int, _Found] = {}

    def fastest(self, size_bytes: int, able: Sequence[ScheduleSource]) -> ScheduleSource | None:
        """The choice at a size. None if no candidate has a time.

        Args:
            size_bytes: the size.
            able: the candidates that can divide an array of the size, in the order of `sources`.
        """
        found = self._search(size_bytes, set(able))
        if not found:
            return None
        longest_us = min(found.values()) * SAME_SHARE
        return next(source for source in able if found.get(source, math.inf) <= longest_us)

    def near(self, size_bytes: int) -> list[ScheduleSource]:
        """The best candidates of the fastest algorithms at a step, the fastest first."""
        found = self._best_at(size_bytes)
        longest_us = min(found.values(), default=0.0) * _CLOSE
        return [source for source, time_us in found.items() if time_us <= longest_us]

    def _best_at(self, step_bytes: int) -> _Found:
        """The best candidate of each algorithm at a step with its time, the fastest first. The time
        of an algorithm that is not near is infinite.
        """
        if step_bytes not in self._at_step:
            found = self._search(step_bytes, set(self._sources))
            best = _best_of_each(found)
            for source in self._starts(step_bytes):
                if all(source.algorithm != each.algorithm for each in best):
                    best[source] = math.inf
            self._at_step[step_bytes] = best
        return self._at_step[step_bytes]

    def _starts(self, size_bytes: int) -> _Found:
        """The best candidates at the step before, or the first of each algorithm."""
        before = [step for step in self.steps_bytes if step < size_bytes]
        if before:
            return self._best_at(before[-1])
        return {source: 0.0 for source in _first_of_each(self._sources)}

    def _search(self, size_bytes: int, able: set[ScheduleSource]) -> _Found:
        """All candidates that were timed near the fastest one, with their times."""
        starts = self._starts(size_bytes)
        is_step = size_bytes in self.steps_bytes
        longest_us = math.inf if is_step else min(starts.values(), default=0.0) * _NEAR
        taken = [source for source, time_us in starts.items() if time_us <= longest_us] or [*starts]
        channels = taken[0].channels if taken else 1
        tried = dict.fromkeys(taken)
        for source in taken:
            for protocol in self._protocols:
                tried.update(dict.fromkeys(self._like(source, protocol, channels)[-1:]))
        found = self._timed(
            [source for source in tried if source in able] or [*able], size_bytes, _NEAR
        )
        for source in _best_of_each(found):
            if found[source] <= min(found.values()) * _CLOSE:
                self._improve(source, found, size_bytes, able)
        return found

    def _improve(
        self, source: ScheduleSource, found: _Found, size_bytes: int, able: set[ScheduleSource]
    ) -> None:
        """Changes one option at a time, as long as that is faster. Adds the times to `found`."""
        tried = {source}
        while True:
            changed = [each for each in self._changed(source) if each in able - tried]
            tried.update(changed)
            times_us = self._timed(changed, size_bytes, SAME_SHARE, found[source])
            found.update(times_us)
            best = min(times_us, key=lambda each: times_us[each], default=source)
            if found[best] >= found[source]:
                return
            source = best

    def _timed(
        self, sources: list[ScheduleSource], size_bytes: int, share: float,
        least_us: float = math.inf,
    ) -> _Found:  # fmt: skip
        """The times of candidates within a share of the shortest one and of `least_us`."""
        race = Race(lambda _, fastest_us: min(fastest_us, least_us) * share)
        times_us = self._times_of(sources, size_bytes, race)
        found = {s: t for s, t in zip(sources, times_us, strict=True) if t is not None}
        longest_us = min(least_us, *found.values(), math.inf) * share
        return {source: time_us for source, time_us in found.items() if time_us <= longest_us}

    def _changed(self, source: ScheduleSource) -> list[ScheduleSource]:
        """The candidates with one other option: channels, protocol or chunks."""
        found = [
            each
            for channels in self._channels
            for each in self._like(source, source.protocol, channels)[:1]
        ]
        for protocol in self._protocols:
            found += self._like(source, protocol, source.channels)[:1]
        found += self._like(source, source.protocol, source.channels)
        return [each for each in dict.fromkeys(found) if each != source]

    def _like(self, source: ScheduleSource, protocol: str, channels: int) -> list[ScheduleSource]:
        """The candidates of an algorithm with a protocol and channels, equal chunks first."""
        found = self._variants[source.algorithm, protocol, channels]
        return sorted(found, key=lambda each: each.chunks_per_channel != source.chunks_per_channel)


def _first_of_each(sources: Iterable[ScheduleSource]) -> list[ScheduleSource]:
    """The first candidate of each algorithm."""
    first: dict[str | None, ScheduleSource] = {}
    for source in sources:
        first.setdefault(source.algorithm, source)
    return list(first.values())


def _best_of_each(found: _Found) -> _Found:
    """The fastest candidate of each algorithm, the fastest first."""
    order = sorted(found, key=lambda each: found[each])
    return {source: found[source] for source in _first_of_each(order)}
