# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a Timeline: owners of tracks, spans as an array, busy time per interval."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from towpath.collectives.result import Timeline

# Columns of spans_array().
TRACK, NAME, BEGIN_PS, END_PS, VALUE = range(5)

_BLOCK = re.compile(r"rank (\d+) thread block (\d+)")


@dataclass(frozen=True)
class BlockTrack:
    """Track of one thread block of one rank."""

    rank: int
    block: int


@dataclass(frozen=True)
class LinkTrack:
    """Track of one link, by the text "from > to"."""

    name: str


def parse_track(text: str) -> BlockTrack | LinkTrack | None:
    """The owner of a track; None if it is neither a thread block nor a link.

    >>> parse_track("rank 3 thread block 5")
    BlockTrack(rank=3, block=5)
    >>> parse_track("link node0/gpu3 > node0/nvswitch")
    LinkTrack(name='node0/gpu3 > node0/nvswitch')
    """
    if match := _BLOCK.fullmatch(text):
        return BlockTrack(int(match[1]), int(match[2]))
    if text.startswith("link "):
        return LinkTrack(text.removeprefix("link "))
    return None


def spans_array(timeline: Timeline) -> np.ndarray:
    """All spans as int64 rows (track, name, begin_ps, end_ps, value), in order of their start.

    Spans with the same start are in order of their length: an empty span ends where the next one
    starts.
    """
    spans = np.asarray(timeline.spans, dtype=np.int64).reshape(-1, 5)
    return spans[np.lexsort((spans[:, END_PS], spans[:, BEGIN_PS]))]


def busy_per_bin_ps(begins_ps: np.ndarray, ends_ps: np.ndarray, edges_ps: np.ndarray) -> np.ndarray:
    """Busy time between each two neighboring edges, in picoseconds.

    Overlapping spans are counted separately.

    >>> busy_per_bin_ps(np.array([5]), np.array([25]), np.array([0, 10, 20, 30]))
    array([ 5, 10,  5])
    """

    def passed_since(times_ps: np.ndarray) -> np.ndarray:
        times_ps = np.sort(times_ps)
        before = np.searchsorted(times_ps, edges_ps)
        sums_ps = np.concatenate(([0], np.cumsum(times_ps)))
        return before * edges_ps - sums_ps[before]

    return np.diff(passed_since(begins_ps) - passed_since(ends_ps))
