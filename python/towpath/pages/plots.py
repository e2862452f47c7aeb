# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of a report, and the colours and words they share with its text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from towpath.collectives.result import LinkLoad, Measurement, Timeline
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

if TYPE_CHECKING:
    from towpath.api.result import RunResult

LINKS_SHOWN_MAX = 40
RANKS_SHOWN_MAX = 16  # in the menu of the thread blocks' figure
_OVERVIEW_RANKS_MAX = 128
_OVERVIEW_BINS = 300

# Calm on light and dark ground, and told apart by readers who see few colours (Okabe and Ito).
CURVE_COLORS = (
    "#3b74b8", "#d98324", "#2b9c80", "#b8506c", "#7c66b8", "#58a6c9", "#96793d", "#808890",
)  # fmt: skip
_WAIT_COLOR = "rgba(128,138,150,0.22)"
_STEP_COLORS = {
    "wait": _WAIT_COLOR,
    "send": "#3b74b8",
    "receive": "#58a6c9",
    "receive_reduce_send": "#7c66b8",
    "receive_reduce_copy": "#d98324",
    "receive_reduce_copy_send": "#b8506c",
    "receive_copy_send": "#2b9c80",
    "copy": "#96793d",
    "reduce": "#c9a227",
}
_OTHER_STEP_COLOR = "#808890"
_KIND_NAMES = {"nvlink": "NVLink", "pcie": "PCIe", "network": "network", "socket": "socket",
               "ethernet": "Ethernet"}  # fmt: skip
_KIND_COLORS = {"nvlink": "#2b9c80", "pcie": "#d98324", "network": "#3b74b8", "socket": "#7c66b8",
                "ethernet": "#d98324"}  # fmt: skip


def kind_name(kind: str) -> str:
    """A kind of link as people write it."""
    return _KIND_NAMES.get(kind, kind)


def kind_color(kind: str) -> str:
    """The colour a kind of link has in every figure and table."""
    return _KIND_COLORS.get(kind, _OTHER_STEP_COLOR)


def run_names(results: list[RunResult]) -> list[str]:
    """A short name per run: what differs between them; never two alike."""
    described = [(each.collective, each.dtype, each.op, each.kind, each.where) for each in results]
    differing = [
        i for i, column in enumerate(zip(*described, strict=True)) if i == 0 or len(set(column)) > 1
    ]
    names = [", ".join(parts[i] for i in differing) for parts in described]
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[index] = f"{name} ({seen[name]})"
    return names


def time_over_size(runs: list[RunResult], names: list[str]) -> go.Figure:
    """Both axes logarithmic, every run."""
    figure = _curves(runs, names, lambda measurement: measurement.time_us, "%{y:,.4~g} us")
    times_us = [measurement.time_us for run in runs for measurement in run.measurements]
    figure.update_yaxes(**time_axis(times_us))
    return figure


def time_axis(times_us: Sequence[float]) -> dict[str, Any]:
    """A logarithmic axis in whole decades, so that there is a label at either end.

    Up to two decades have labels at 2 and 5 as well. Without times it is an axis without a range.
    """
    axis: dict[str, Any] = {"title": "time (us)", "type": "log"}
    if not times_us:
        return axis
    low = math.floor(math.log10(min(times_us)))
    high = math.floor(math.log10(max(times_us))) + 1
    steps = (1, 2, 5) if high - low <= 2 else (1,)
    ticks = [step * 10**power for power in range(low, high) for step in steps] + [10**high]
    return {
        **axis,
        "range": [low, high],
        "tickvals": ticks,
        "ticktext": [f"{tick:,.4g}" if tick < 1 else f"{tick:,}" for tick in ticks],
    }


def bandwidth_over_size(runs: list[RunResult], names: list[str]) -> go.Figure:
    """Size logarithmic, bandwidth linear, every run."""
    figure = _curves(runs, names, lambda measurement: measurement.busbw_gb_per_s, "%{y:.2f} GB/s")
    figure.update_yaxes(title="bus bandwidth (GB/s)", rangemode="tozero")
    return figure


def busiest(links: list[LinkLoad]) -> list[LinkLoad]:
    """As many as are shown, the busiest first."""
    return sorted(links, key=lambda link: -link.busy_fraction)[:LINKS_SHOWN_MAX]


def busiest_links(links: list[LinkLoad]) -> go.Figure:
    """The busiest links as bars, the busiest on top, coloured by kind."""
    shown = busiest(links)
    figure = go.Figure()
    for kind in dict.fromkeys(link.kind for link in shown):
        places = [place for place, link in enumerate(shown) if link.kind == kind]
        figure.add_bar(
            orientation="h",
            name=escape(kind_name(kind)),
            x=[shown[place].busy_fraction for place in places],
            y=places,
            marker_color=kind_color(kind),
            customdata=[
                (escape(_link_name(shown[place])), format_size(shown[place].size_bytes))
                for place in places
            ],
            hovertemplate="%{customdata[0]}<br>busy %{x:.1%}, carried %{customdata[1]}"
            "<extra></extra>",
        )
    figure.update_layout(layout(height=90 + 17 * len(shown)), bargap=0.25)
    figure.update_xaxes(tickformat=".0%", rangemode="tozero", side="top")
    figure.update_yaxes(
        tickvals=list(range(len(shown))),
        ticktext=[escape(_link_name(link)) for link in shown],
        range=[len(shown) - 0.4, -0.6],
        tickfont_size=10,
        showgrid=False,
    )
    return figure


@dataclass(frozen=True)
class TimelineFigures:
    """Two views of a timeline, and what the second leaves out.

    Attributes:
        size_bytes: the array's size in that call.
        ranks: how many ranks have thread blocks.
        overview: when each rank moves data.
        overview_ranks: how many ranks it shows.
        blocks: the steps of one rank's thread blocks, a rank at a time.
        blocks_ranks: how many ranks its menu offers.
        spans: how many spans thread blocks have.
        spans_drawn: how many of them `blocks` holds.
        total_us: when the last thread block finished.
        drawn_until_us: up to when `blocks` shows every span of its ranks.
    """

    size_bytes: int
    ranks: int
    overview: go.Figure
    overview_ranks: int
    blocks: go.Figure
    blocks_ranks: int
    spans: int
    spans_drawn: int
    total_us: float
    drawn_until_us: float


def timeline_figures(timeline: Timeline, drawn_spans_max: int) -> TimelineFigures | None:
    """Draws what thread blocks did; None when the timeline has none.

    Args:
        timeline: timeline of one call.
        drawn_spans_max: how many spans the thread blocks' figure may hold.
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

    overview_ranks = _evenly(ranks, _OVERVIEW_RANKS_MAX)
    shown_ranks = _evenly(ranks, RANKS_SHOWN_MAX)
    per_rank = [spans[rank_of_track[spans[:, TRACK]] == rank] for rank in shown_ranks]
    per_rank_max = max(drawn_spans_max // len(shown_ranks), 1)
    # One cut for all ranks, so that they can be compared.
    until_ps = min(
        (int(own[per_rank_max, BEGIN_PS]) for own in per_rank if len(own) > per_rank_max),
        default=end_ps,
    )
    drawn = [own[own[:, BEGIN_PS] < until_ps][:per_rank_max] for own in per_rank]
    return TimelineFigures(
        size_bytes=timeline.size_bytes,
        ranks=len(ranks),
        overview=_overview(timeline, spans, rank_of_track, overview_ranks, end_ps),
        overview_ranks=len(overview_ranks),
        blocks=_blocks(timeline, drawn, shown_ranks, block_of_track, until_ps),
        blocks_ranks=len(shown_ranks),
        spans=len(spans),
        spans_drawn=sum(len(own) for own in drawn),
        total_us=end_ps / 1e6,
        drawn_until_us=until_ps / 1e6,
    )


def _block_track(text: str) -> BlockTrack | None:
    track = parse_track(text)
    return track if isinstance(track, BlockTrack) else None


def _evenly(values: np.ndarray, count_max: int) -> np.ndarray:
    if len(values) <= count_max:
        return values
    return values[np.linspace(0, len(values) - 1, count_max).astype(int)]


def _overview(
    timeline: Timeline,
    spans: np.ndarray,
    rank_of_track: np.ndarray,
    ranks: np.ndarray,
    end_ps: int,
) -> go.Figure:
    """Rank over time, as dark as the share of the rank's thread blocks that move data."""
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
    centers_us = (edges_ps[:-1] + edges_ps[1:]) / 2e6
    figure = go.Figure(
        go.Heatmap(
            z=percents,
            x=centers_us,
            y=[f"rank {rank}" for rank in ranks],
            zmin=0,
            zmax=100,
            ygap=1 if len(ranks) <= 40 else 0,
            colorscale=[[0, "rgba(59,116,184,0.04)"], [1, "rgba(59,116,184,1)"]],
            colorbar={"ticksuffix": " %", "thickness": 10, "len": 1.05, "outlinewidth": 0},
            hovertemplate="%{y} at %{x:,.2f} us<br>%{z} % of its thread blocks move data"
            "<extra></extra>",
        )
    )
    figure.update_layout(layout(height=90 + max(4 * len(ranks), min(18 * len(ranks), 320))))
    figure.update_xaxes(title="time (us)", showgrid=False, range=[0, end_ps / 1e6])
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category", ticks="")
    return figure


def _blocks(
    timeline: Timeline,
    drawn: list[np.ndarray],
    ranks: np.ndarray,
    block_of_track: np.ndarray,
    until_ps: int,
) -> go.Figure:
    """A lane per thread block of one rank, a bar per step; a menu changes the rank."""
    figure = go.Figure()
    owners = []
    for place, own in enumerate(drawn):
        for name in np.unique(own[:, NAME]):
            same = own[own[:, NAME] == name]
            text = timeline.names[name]
            words = escape(text.replace("_", " "))
            figure.add_bar(
                orientation="h",
                name=words,
                base=same[:, BEGIN_PS] / 1e6,
                x=(same[:, END_PS] - same[:, BEGIN_PS]) / 1e6,
                y=block_of_track[same[:, TRACK]],
                customdata=same[:, VALUE],
                width=0.84,
                marker={"color": _STEP_COLORS.get(text, _OTHER_STEP_COLOR), "line_width": 0},
                visible=place == 0,
                hovertemplate=f"{words}<br>thread block %{{y}}, step %{{customdata}}<br>"
                "from %{base:,.3f} us to %{x:,.3f} us<extra></extra>",
            )
            owners.append(place)
    blocks = np.unique(np.concatenate([block_of_track[own[:, TRACK]] for own in drawn]))
    buttons = [
        {
            "label": f"rank {rank}",
            "method": "update",
            "args": [{"visible": [owner == place for owner in owners]}],
        }
        for place, rank in enumerate(ranks)
    ]
    lay_out_bars(figure, 150 + min(26 * len(blocks), 900), buttons, (0, until_ps))
    figure.update_yaxes(
        title="thread block", autorange="reversed", showgrid=False,
        tickvals=blocks if len(blocks) <= 40 else None,
    )  # fmt: skip
    return figure


def _curves(runs: list[RunResult], names: list[str], value_of, hover: str) -> go.Figure:
    """A line per run and way; in place is dotted with open markers. One legend entry per run."""
    figure = go.Figure()
    for index, (run, name) in enumerate(zip(runs, names, strict=True)):
        color = CURVE_COLORS[index % len(CURVE_COLORS)]
        for way, words in (("out_of_place", "out of place"), ("in_place", "in place")):
            points = _points(run, way)
            if not points:
                continue
            is_in_place = way == "in_place"
            is_first = not any(trace.legendgroup == str(index) for trace in figure.data)
            figure.add_scatter(
                x=[size_bytes for size_bytes, _ in points],
                y=[value_of(measurement) for _, measurement in points],
                name=escape(name),
                legendgroup=str(index),
                showlegend=is_first,
                mode="lines+markers",
                line={"color": color, "width": 1.6, "dash": "dot" if is_in_place else "solid"},
                marker={"size": 6, "symbol": "circle-open" if is_in_place else "circle"},
                text=[format_size(size_bytes) for size_bytes, _ in points],
                hovertemplate=f"%{{text}}: {hover}<br>{escape(name)}, {words}<extra></extra>",
            )
    figure.update_layout(layout(height=420))
    sizes_bytes = {row.size_bytes for run in runs for row in run.rows if row.size_bytes > 0}
    figure.update_xaxes(title="size", **size_axis(sizes_bytes))
    return figure


def _points(run: RunResult, way: str) -> list[tuple[int, Measurement]]:
    """Sizes above 0 with what was measured out_of_place or in_place."""
    return [
        (row.size_bytes, measurement)
        for row in run.rows
        if (measurement := getattr(row, way)) is not None and row.size_bytes > 0
    ]


def size_axis(sizes_bytes: set[int]) -> dict:
    """An axis with powers of two around the sizes, at most about ten."""
    ticks = _size_ticks(sizes_bytes)
    return {"type": "log", "tickvals": ticks, "ticktext": [format_size(tick) for tick in ticks]}


def _size_ticks(sizes_bytes: set[int]) -> list[int]:
    if not sizes_bytes:
        return []
    first = max(min(sizes_bytes).bit_length() - 1, 0)
    last = max(sizes_bytes).bit_length() - 1
    stride = max(1, -(-(last - first) // 10))
    return [1 << power for power in range(first, last + 1, stride)]


def _link_name(link: LinkLoad) -> str:
    return f"{link.from_name} > {link.to_name}"


def layout(height: int) -> dict:
    """Without ground colours: the page's script fills in those of its light or dark style."""
    return {
        "template": "none",
        "height": height,
        "margin": {"l": 10, "r": 10, "t": 34, "b": 10},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": {"automargin": True, "zeroline": False},
        "yaxis": {"automargin": True, "zeroline": False},
    }


def lay_out_bars(
    figure: go.Figure, height: int, buttons: list[dict[str, Any]], span_ps: tuple[int, int]
) -> None:
    """Bars over time, those of one rank or PE at once, which a menu of `buttons` chooses."""
    figure.update_layout(
        layout(height),
        barmode="overlay",
        updatemenus=[
            {"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
             "pad": {"b": 6}, "showactive": True}
        ],
    )  # fmt: skip
    figure.update_layout(legend={"x": 1, "xanchor": "right"})
    figure.update_xaxes(title="time (us)", range=[at_ps / 1e6 for at_ps in span_ps])
