# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inside.collectives import (
    BEGIN_PS,
    BlockTrack,
    Timeline,
    busy_per_bin_ps,
    parse_track,
    spans_array,
)


def test_tracks_are_told_apart_by_their_text():
    assert parse_track("rank 12 thread block 0") == BlockTrack(12, 0)
    assert parse_track("link a > b").name == "a > b"
    assert parse_track("core 3") is None
    assert parse_track("rank 1 thread block 2 of 3") is None


def test_spans_are_ordered_by_their_begin_and_empty_ones_come_first():
    timeline = Timeline(8, ["x"], ["a"], [(0, 0, 5, 9, 1), (0, 0, 5, 5, 2), (0, 0, 1, 5, 3)])
    assert spans_array(timeline).tolist() == [[0, 0, 1, 5, 3], [0, 0, 5, 5, 2], [0, 0, 5, 9, 1]]
    assert spans_array(Timeline(8, [], [], []))[:, BEGIN_PS].tolist() == []


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), max_size=8))
def test_busy_time_is_what_counting_each_picosecond_gives(pairs):
    begins = np.array([begin for begin, _ in pairs], dtype=np.int64)
    ends = begins + np.array([length for _, length in pairs], dtype=np.int64)
    edges = np.array([0, 7, 30, 31, 80])
    counted = [
        sum(begin <= t < end for begin, end in zip(begins, ends, strict=True) for t in range(a, b))
        for a, b in zip(edges[:-1], edges[1:], strict=True)
    ]
    assert busy_per_bin_ps(begins, ends, edges).tolist() == counted
