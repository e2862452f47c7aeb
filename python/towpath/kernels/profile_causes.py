# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Causes of waits: the transfer that ended each wait, and the root cause."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from towpath.kernels.profile import (
    ACTIVITY,
    BEGIN_PS,
    END_PS,
    LANDED_PS,
    PEER,
    SIGNAL,
    SIGNAL_BYTES,
    TARGET,
    TARGET_BYTES,
    TRACK,
    TRACK_PE,
    Recorded,
)

IN_FLIGHT = "in flight"
NOTICED_LATE = "noticed late"
UNKNOWN = "unknown"
_WORD_BYTES = 8
# What waits look at may be as narrow as a short.
_NARROWEST_WORD_BYTES = 2
# A thread sees an arrival with its next look, which takes less. A wait whose span is shorter, as
# its block computed at first, may have been ended by an arrival before the span.
_LOOK_PS = 2_000_000
_BLAMED_MAX = 8  # kept for each wait; the least are lumped into the greatest
# By PE and activity: picoseconds.
Blame = dict[tuple[int, str], float]


def waits_of(recorded: Recorded) -> np.ndarray:
    """The rows of spans in which a block waited for words of its PE, in the order of their ends."""
    kinds = [recorded.activities.index(name) for name in ("wait", "collective")]
    rows = np.flatnonzero(np.isin(recorded.spans[:, ACTIVITY], kinds))
    return rows[np.argsort(recorded.spans[rows, END_PS], kind="stable")]


def ended_by(recorded: Recorded) -> np.ndarray:
    """By row of spans, the row of the transfer whose arrival ended it; -1 if there is none."""
    arrivals = _Arrivals(recorded)
    found = np.full(len(recorded.spans), -1, dtype=np.int64)
    for row in waits_of(recorded).tolist():
        track, _, _, _, _, begin_ps, end_ps, _, first, size_bytes = recorded.spans[row].tolist()
        if size_bytes == 0:
            continue
        pe = int(recorded.tracks[track, TRACK_PE])
        found[row] = arrivals.last(pe, (first, first + size_bytes), begin_ps, end_ps)
    return found


def as_seen(recorded: Recorded, causes: np.ndarray) -> Recorded:
    """The same records, with no transfer that arrives after the end of the wait that it ended.

    A live sender records an arrival when its call is complete; its peer may continue before that.

    Args:
        causes: the return value of `ended_by`.
    """
    transfers = recorded.transfers.copy()
    waits = np.flatnonzero(causes >= 0)
    np.minimum.at(transfers[:, LANDED_PS], causes[waits], recorded.spans[waits, END_PS] - 1)
    return replace(recorded, transfers=transfers)


class _Arrivals:
    """Transfers by their target, in the order of their arrival."""

    def __init__(self, recorded: Recorded) -> None:
        self._is_live = recorded.is_live
        self._transfers = transfers = recorded.transfers
        self._words: dict[tuple[int, int], tuple[list[int], list[int]]] = defaultdict(
            lambda: ([], [])
        )
        self._ranges: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for index in np.argsort(transfers[:, LANDED_PS], kind="stable").tolist():
            row = transfers[index].tolist()
            for first, size_bytes in (
                row[SIGNAL : SIGNAL_BYTES + 1],
                row[TARGET : TARGET_BYTES + 1],
            ):
                if size_bytes == 0:
                    continue
                small = size_bytes <= _WORD_BYTES
                places = self._words[row[PEER], first] if small else self._ranges[row[PEER]]
                places[0].append(row[LANDED_PS])
                places[1].append(index)

    def last(self, pe: int, words: tuple[int, int], begin_ps: int, end_ps: int) -> int:
        """The last transfer to arrive at these words between two times; -1 if there is none."""
        best = -1
        for first in range(words[0], words[1], _NARROWEST_WORD_BYTES):
            times, rows = self._words.get((pe, first), ((), ()))
            best = self._later(best, self._within(times, rows, begin_ps, end_ps))
        if best >= 0:
            return best
        times, rows = self._ranges.get(pe, ((), ()))
        for place in range(bisect_right(times, end_ps) - 1, bisect_left(times, begin_ps) - 1, -1):
            target, size_bytes = self._transfers[rows[place], [TARGET, TARGET_BYTES]]
            if target < words[1] and words[0] < target + size_bytes:
                return int(rows[place])
        return -1

    def _within(self, times, rows, begin_ps: int, end_ps: int) -> int:
        place = bisect_right(times, end_ps) - 1
        if place >= 0 and times[place] >= min(begin_ps, end_ps - _LOOK_PS):
            return rows[place]
        if not self._is_live:
            return -1
        # A live sender notes the arrival when its call is over; its peer may have seen it before,
        # or have looked for it the last time when its turn began.
        following = place + 1
        if following < len(rows) and self._transfers[rows[following], BEGIN_PS] < end_ps:
            return rows[following]
        return rows[place] if place >= 0 else -1

    def _later(self, one: int, other: int) -> int:
        if one < 0 or other < 0:
            return max(one, other)
        return max(one, other, key=lambda row: self._transfers[row, LANDED_PS])


def blames(recorded: Recorded, causes: np.ndarray) -> dict[int, Blame]:
    """The cause of each wait, by row of spans.

    Until a signal is sent, a block waits for the activities of the sender. If the sender itself
    waits, the block waits for the cause of that wait. After the signal is sent, the cause is that
    it is in flight.
    """
    found: dict[int, Blame] = {}
    spans, transfers = recorded.spans, recorded.transfers
    tracks = _Tracks(recorded)
    for row in waits_of(recorded).tolist():
        begin_ps, end_ps = int(spans[row, BEGIN_PS]), int(spans[row, END_PS])
        cause = int(causes[row])
        if cause < 0:
            own = int(recorded.tracks[spans[row, TRACK], TRACK_PE])
            found[row] = {(own, UNKNOWN): float(end_ps - begin_ps)}
            continue
        sender = int(transfers[cause, TRACK])
        sender_pe = int(recorded.tracks[sender, TRACK_PE])
        sent_ps = min(max(int(transfers[cause, BEGIN_PS]), begin_ps), end_ps)
        blame: Blame = defaultdict(float)
        there_ps = min(max(int(transfers[cause, LANDED_PS]), sent_ps), end_ps)
        if there_ps > sent_ps:
            blame[sender_pe, IN_FLIGHT] += there_ps - sent_ps
        if end_ps > there_ps:
            blame[int(recorded.tracks[spans[row, TRACK], TRACK_PE]), NOTICED_LATE] += (
                end_ps - there_ps
            )
        covered_ps = 0
        for other, shared_ps in tracks.between(sender, begin_ps, sent_ps):
            covered_ps += shared_ps
            if other in found:
                whole_ps = int(spans[other, END_PS] - spans[other, BEGIN_PS])
                for who, time_ps in found[other].items():
                    blame[who] += time_ps * shared_ps / whole_ps
            else:
                blame[sender_pe, recorded.activities[spans[other, ACTIVITY]]] += shared_ps
        if sent_ps - begin_ps > covered_ps:
            blame[sender_pe, "not started"] += sent_ps - begin_ps - covered_ps
        found[row] = _greatest(blame)
    return found


def _greatest(blame: Blame) -> Blame:
    if len(blame) <= _BLAMED_MAX:
        return blame
    order = sorted(blame, key=lambda who: -blame[who])
    kept = {who: blame[who] for who in order[:_BLAMED_MAX]}
    kept[order[0]] += sum(blame[who] for who in order[_BLAMED_MAX:])
    return kept


class _Tracks:
    """The spans of each track in the order of time."""

    def __init__(self, recorded: Recorded) -> None:
        spans = recorded.spans
        order = np.lexsort((spans[:, BEGIN_PS], spans[:, TRACK]))
        edges = np.searchsorted(spans[order, TRACK], np.arange(len(recorded.tracks) + 1))
        self._rows = [
            order[first:last].tolist() for first, last in zip(edges, edges[1:], strict=False)
        ]
        self._begins = [spans[rows, BEGIN_PS].tolist() for rows in self._rows]
        self._ends = [spans[rows, END_PS].tolist() for rows in self._rows]

    def between(self, track: int, begin_ps: int, end_ps: int) -> Iterator[tuple[int, int]]:
        """The rows of spans between two times, with their durations."""
        begins_ps, ends_ps = self._begins[track], self._ends[track]
        place = max(bisect_right(begins_ps, begin_ps) - 1, 0)
        while place < len(begins_ps) and begins_ps[place] < end_ps:
            shared_ps = min(ends_ps[place], end_ps) - max(begins_ps[place], begin_ps)
            if shared_ps > 0:
                yield self._rows[track][place], shared_ps
            place += 1


def longest_chain(recorded: Recorded, causes: np.ndarray) -> tuple[int, int]:
    """The longest chain of transfers, each sent after a wait for the previous one.

    Returns:
        The number of transfers, and their minimum total time in picoseconds: 0 for a live run.
    """
    spans, transfers = recorded.spans, recorded.transfers
    ends = np.flatnonzero(causes >= 0)
    # A wait that ends when a transfer begins comes first.
    events = [(int(spans[row, END_PS]), 0, int(row)) for row in ends]
    events += [(begin_ps, 1, row) for row, begin_ps in enumerate(transfers[:, BEGIN_PS].tolist())]
    events.sort()
    of_track: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    of_transfer: dict[int, tuple[int, int]] = {}
    longest = (0, 0)
    pes = recorded.tracks[:, TRACK_PE].tolist()
    for _, is_transfer, row in events:
        if is_transfer:
            track, peer = int(transfers[row, TRACK]), int(transfers[row, PEER])
            time_ps, count = of_track[track]
            if recorded.latency_ps is not None:
                time_ps += int(recorded.latency_ps[pes[track], peer])
            of_transfer[row] = (time_ps, count + 1)
            continue
        chain = of_transfer.get(int(causes[row]), (0, 0))
        track = int(spans[row, TRACK])
        of_track[track] = max(of_track[track], chain)
        longest = max(longest, chain)
    return longest[1], longest[0]
