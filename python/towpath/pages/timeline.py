# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The timeline of one call: the times at which ranks move data, and the steps of thread blocks."""

from __future__ import annotations

import numpy as np

from towpath.collectives.result import Timeline
from towpath.collectives.timeline import (
    BEGIN_PS,
    END_PS,
    NAME,
    TRACK,
    VALUE,
    BlockTrack,
    busy_per_bin_ps,
    parse_track,
    spans_array,
)
from towpath.specs.sizes import format_size
from towpath.studies.page import GREY, Axis, Heat, Lanes, Section

RANKS_SHOWN_MAX = 16  # in the menu of the thread blocks
_OVERVIEW_RANKS_MAX = 128
_OVERVIEW_BINS = 300
_STEP_COLORS = {
    "wait": GREY, "send": "#3b74b8", "receive": "#58a6c9", "receive_reduce_send": "#7c66b8",
    "receive_reduce_copy": "#d98324", "receive_reduce_copy_send": "#b8506c",
    "receive_copy_send": "#2b9c80", "copy": "#96793d", "reduce": "#c9a227",
}  # fmt: skip
_OTHER_STEP_COLOR = "#808890"


def timeline_section(timeline: Timeline, drawn_spans_max: int) -> Section | None:
    """Draws the activities of thread blocks; None if the timeline has none.

    Args:
        timeline: timeline of one call.
        drawn_spans_max: maximum number of spans of thread blocks on the page.
    """
    tracks = {i: t for i, text in enumerate(timeline.tracks) if (t := _block_track(text))}
    spans = spans_array(timeline)
    spans = spans[np.isin(spans[:, TRACK], list(tracks))]
    if len(spans) == 0:
        return None
    rank_of_track, block_of_track = np.zeros((2, len(timeline.tracks)), dtype=np.int64)
    for index, track in tracks.items():
        rank_of_track[index], block_of_track[index] = track.rank, track.block
    ranks = np.unique(rank_of_track[spans[:, TRACK]])
    end_ps = int(spans[:, END_PS].max())
    shown_ranks = _evenly(ranks, RANKS_SHOWN_MAX)
    per_rank = [spans[rank_of_track[spans[:, TRACK]] == rank] for rank in shown_ranks]
    per_rank_max = max(drawn_spans_max // len(shown_ranks), 1)
    # One cut for all ranks, so that they can be compared.
    until_ps = min(
        (int(own[per_rank_max, BEGIN_PS]) for own in per_rank if len(own) > per_rank_max),
        default=end_ps,
    )
    drawn = [own[own[:, BEGIN_PS] < until_ps][:per_rank_max] for own in per_rank]
    count = sum(len(own) for own in drawn)
    notes = []
    if count < len(spans):
        some = f"{len(shown_ranks)} of {len(ranks)} ranks, " * (len(shown_ranks) < len(ranks))
        notes.append(
            f"{count:,} of {len(spans):,} spans are here: {some}the first {until_ps / 1e6:,.1f} us "
            f"of {end_ps / 1e6:,.1f} us. The Perfetto trace has everything."
        )
    groups = {
        f"rank {rank}": [
            (int(block_of_track[span[TRACK]]), span[BEGIN_PS] / 1e6, span[END_PS] / 1e6,
             span[NAME], span[VALUE] * len(timeline.names) + span[NAME])
            for span in own.tolist()
        ]
        for rank, own in zip(shown_ranks.tolist(), drawn, strict=True)
    }  # fmt: skip
    return Section(
        f"Timeline of one call, {format_size(timeline.size_bytes)}",
        [_overview(timeline, spans, rank_of_track, ranks, end_ps),
         _blocks(timeline, groups, until_ps)],
        notes=notes, in_text=False,
    )  # fmt: skip


def _block_track(text: str) -> BlockTrack | None:
    track = parse_track(text)
    return track if isinstance(track, BlockTrack) else None


def _evenly(values: np.ndarray, count_max: int) -> np.ndarray:
    if len(values) <= count_max:
        return values
    return values[np.linspace(0, len(values) - 1, count_max).astype(int)]


def _overview(
    timeline: Timeline, spans: np.ndarray, rank_of_track: np.ndarray, all_ranks: np.ndarray,
    end_ps: int,
) -> Heat:  # fmt: skip
    """Ranks over time, with darkness proportional to the share of the rank's thread blocks that
    move data.
    """
    ranks = _evenly(all_ranks, _OVERVIEW_RANKS_MAX)
    edges_ps = np.linspace(0, max(end_ps, _OVERVIEW_BINS), _OVERVIEW_BINS + 1).astype(np.int64)
    waits = np.array([name == "wait" for name in timeline.names])
    percents = np.zeros((len(ranks), _OVERVIEW_BINS), dtype=np.uint8)
    for place, rank in enumerate(ranks):
        own = spans[rank_of_track[spans[:, TRACK]] == rank]
        blocks = len(np.unique(own[:, TRACK]))
        own = own[~waits[own[:, NAME]]]
        busy_ps = busy_per_bin_ps(own[:, BEGIN_PS], own[:, END_PS], edges_ps)
        # Spans of one thread block may overlap, so the sum may exceed the whole.
        percents[place] = np.minimum(100, np.rint(100 * busy_ps / np.diff(edges_ps) / blocks))
    how = "A row per rank. Strong: all of its thread blocks move data. Faint: they wait."
    if len(ranks) < len(all_ranks):
        how += f" {len(ranks)} of {len(all_ranks)} ranks are shown, evenly chosen."
    return Heat(
        "When each rank moves data", Axis("time (us)", low=0.0, high=end_ps / 1e6),
        [f"rank {rank}" for rank in ranks], percents.tolist(), "of its thread blocks move data",
        how,
    )  # fmt: skip


def _blocks(timeline: Timeline, groups: dict, until_ps: int) -> Lanes:
    """A lane per thread block of one rank, a bar per step."""
    names = [name.replace("_", " ") for name in timeline.names]
    used = sorted({span[4] for own in groups.values() for span in own})
    number = {text: place for place, text in enumerate(used)}
    texts = [f"{names[text % len(names)]}, step {text // len(names)}" for text in used]
    kinds = sorted({span[3] for own in groups.values() for span in own})
    place_of = {kind: place for place, kind in enumerate(kinds)}
    return Lanes(
        "Steps of each thread block",
        {
            rank: [(lane, begin, end, place_of[kind], number[text])
                   for lane, begin, end, kind, text in own]
            for rank, own in groups.items()
        },
        [(names[kind], _STEP_COLORS.get(timeline.names[kind], _OTHER_STEP_COLOR))
         for kind in kinds],
        texts, "thread block", "us", (0.0, until_ps / 1e6),
        "A lane per thread block of one rank, a bar per step, grey while it waits. Point at a bar "
        "for its step and times. Drag to zoom, double-click to see all.",
    )  # fmt: skip
