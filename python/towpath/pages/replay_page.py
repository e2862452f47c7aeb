# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A replayed trace as one HTML page: figures, cores, where requests wait, and the links' load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from towpath.pages.plots import layout
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.studies.replay import FIGURE_NAMES, PHASES, CoreReplay, Replay, RequestReplay

CORES_SHOWN_MAX = 128
REQUEST_CORES_MAX = 16  # in the menu of the requests' figure
REQUESTS_PER_CORE_MAX = 200
LINKS_SHOWN_MAX = 60

_MEASURED_COLOR = "rgba(128,138,150,0.45)"
_PREDICTED_COLOR = "#3b74b8"
_PHASE_COLORS = ("#b8506c", "#d98324", "#58a6c9", "#3b74b8")
_HEAT = ("#c3cdd9", "#8fb3dd", "#3b74b8", "#d98324", "#b3263d")  # idle to busy
_TILE_COLORS = {
    "worker": "rgba(59,116,184,0.18)", "dram": "rgba(217,131,36,0.35)",
    "ethernet": "rgba(43,156,128,0.25)", "pcie": "rgba(124,102,184,0.35)",
}  # fmt: skip
_OTHER_TILE_COLOR = "rgba(128,138,150,0.12)"
# Towards which tile ports 0 and 1 lead, by NoC: the first travels right then down, the second up
# then left.
_STEPS = (((1, 0), (0, 1)), ((0, -1), (-1, 0)))
_LINK_PORTS = 2


@dataclass(frozen=True)
class _Network:
    """What is drawn of one NoC."""

    number: int
    grid: go.Figure
    links: go.Figure
    links_shown: int
    links_used: int


def write_replay(
    replayed: Replay, command: str, path: Path | str, *, made_with: Provenance | None = None
) -> None:
    """Write the page; it needs no other file and no network.

    Args:
        replayed: with the links' load sampled.
        command: what was typed.
        path: the HTML file.
        made_with: the foot of the page; by default the version of Towpath and the date.
    """
    cores = [core for core in replayed.cores if core.end_cycle_measured > core.begin_cycle]
    requests = _by_core(replayed.requests)
    carried = replayed.link_flits.sum(axis=(0, 2)) if replayed.link_flits.size else ()
    write_page(
        path,
        "replay.html.jinja",
        made_with=made_with,
        replayed=replayed,
        command=command,
        facts=_facts(replayed, cores),
        lines=_lines(replayed),
        cores_figure=cores_figure(_evenly(cores, CORES_SHOWN_MAX)),
        cores_shown=min(len(cores), CORES_SHOWN_MAX),
        cores_used=len(cores),
        phases_figure=phases_figure(requests),
        requests_figure=requests_figure(requests),
        networks=[_network(replayed, noc) for noc, flits in enumerate(carried) if flits],
    )


def _facts(replayed: Replay, cores: list[CoreReplay]) -> list[tuple[str, str]]:
    moved_bytes = sum(request.size_bytes for request in replayed.requests)
    paces = {
        "gaps": "as long after the call before as software takes",
        "times": "not before their time in the trace",
    }
    return [
        ("Trace", replayed.name),
        ("Chip", replayed.chip),
        ("Processors", str(len(cores))),
        ("Requests", f"{len(replayed.requests):,}"),
        ("Payload", f"{moved_bytes:,} B"),
        ("Calls come", paces[replayed.pace]),
    ]


def _lines(replayed: Replay) -> list[tuple[str, int, int, str]]:
    """Name, predicted, measured and error of the three figures."""
    lines = []
    for name, words in FIGURE_NAMES.items():
        predicted, measured = (
            getattr(own, name) for own in (replayed.predicted, replayed.measured)
        )
        error = f"{100 * (predicted / measured - 1):+.1f} %" if measured else "N/A"
        lines.append((words, predicted, measured, error))
    return lines


def _evenly(values: list, count_max: int) -> list:
    if len(values) <= count_max:
        return values
    return [values[place] for place in np.linspace(0, len(values) - 1, count_max).astype(int)]


def _by_core(requests: Sequence[RequestReplay]) -> dict[str, list[RequestReplay]]:
    by_core: dict[str, list[RequestReplay]] = {}
    for request in requests:
        name = f"({request.core[0]}, {request.core[1]}) {request.processor}"
        by_core.setdefault(name, []).append(request)
    return by_core


# --- cores and requests ---------------------------------------------------------------------------


def cores_figure(cores: list[CoreReplay]) -> go.Figure:
    """Per processor from its begin to its last event, measured behind predicted."""
    figure = go.Figure()
    for name, color, width, ends in (
        ("measured", _MEASURED_COLOR, 0.86, [core.end_cycle_measured for core in cores]),
        ("predicted", _PREDICTED_COLOR, 0.4, [core.end_cycle_predicted for core in cores]),
    ):
        figure.add_bar(
            orientation="h",
            name=name,
            base=[core.begin_cycle for core in cores],
            x=[end - core.begin_cycle for core, end in zip(cores, ends, strict=True)],
            y=[core.name for core in cores],
            width=width,
            marker={"color": color, "line_width": 0},
            customdata=ends,
            hovertemplate=f"%{{y}} {name}<br>from %{{base:,}} to %{{customdata:,}}<extra></extra>",
        )
    return _by_processor(figure, len(cores), "overlay", "cycle")


def phases_figure(requests: dict[str, list[RequestReplay]]) -> go.Figure:
    """Per processor the mean cycles of a request, by what it was doing."""
    names = _evenly(list(requests), CORES_SHOWN_MAX)
    means = [np.mean([one.phase_cycles for one in requests[name]], axis=0) for name in names]
    figure = go.Figure()
    for phase, (words, color) in enumerate(zip(PHASES, _PHASE_COLORS, strict=True)):
        figure.add_bar(
            orientation="h",
            name=words,
            x=[mean[phase] for mean in means],
            y=names,
            marker={"color": color, "line_width": 0},
            hovertemplate=f"%{{y}} {words}<br>%{{x:,.0f}} cycles<extra></extra>",
        )
    return _by_processor(figure, len(names), "stack", "cycles per request, mean")


def _by_processor(figure: go.Figure, processors: int, barmode: str, title: str) -> go.Figure:
    """Bars in a row for each."""
    figure.update_layout(layout(height=90 + max(13 * processors, 60)), barmode=barmode)
    figure.update_xaxes(title=title)
    figure.update_yaxes(autorange="reversed", type="category", showgrid=False, tickfont_size=10)
    return figure


def requests_figure(requests: dict[str, list[RequestReplay]]) -> go.Figure:
    """Every request of a processor over time; the menu has those that end last."""
    latest = sorted(requests, key=lambda name: -requests[name][-1].completed_cycle)
    shown = latest[:REQUEST_CORES_MAX]
    figure = go.Figure()
    for place, name in enumerate(shown):
        own = requests[name][:REQUESTS_PER_CORE_MAX]
        begins = np.array([request.issued_cycle for request in own], dtype=np.int64)
        words = [f"{one.kind} {one.size_bytes} B, {one.core} and {one.to}" for one in own]
        for phase, (phase_words, color) in enumerate(zip(PHASES, _PHASE_COLORS, strict=True)):
            cycles = np.array([request.phase_cycles[phase] for request in own], dtype=np.int64)
            figure.add_bar(
                orientation="h",
                name=phase_words,
                base=begins.tolist(),
                x=cycles.tolist(),
                y=list(range(len(own))),
                width=0.86,
                customdata=words,
                marker={"color": color, "line_width": 0},
                visible=place == 0,
                hovertemplate=f"%{{customdata}}<br>{phase_words} %{{x:,}} cycles from "
                "%{base:,} on<extra></extra>",
            )
            begins += cycles
    owners = [place for place in range(len(shown)) for _ in PHASES]
    buttons = [
        {
            "label": name,
            "method": "update",
            "args": [{"visible": [owner == place for owner in owners]}],
        }
        for place, name in enumerate(shown)
    ]
    rows = max((min(len(requests[name]), REQUESTS_PER_CORE_MAX) for name in shown), default=1)
    figure.update_layout(layout(height=150 + min(max(10 * rows, 120), 900)), barmode="overlay")
    if buttons:
        figure.update_layout(
            updatemenus=[
                {"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
                 "pad": {"b": 6}, "showactive": True}
            ],
            legend={"x": 1, "xanchor": "right"},
        )  # fmt: skip
    figure.update_xaxes(title="cycle")
    figure.update_yaxes(title="request", autorange="reversed", showgrid=False)
    return figure


# --- links ----------------------------------------------------------------------------------------


class _Link(NamedTuple):
    """A link between tiles, with its ends on the grid; `to` may be just beyond the border."""

    number: int
    tile: tuple[int, int]
    to: tuple[int, int]
    to_wrapped: tuple[int, int]


def _links(grid: tuple[int, int], noc: int) -> list[_Link]:
    columns, rows = grid
    links = []
    for number in range(columns * rows * _LINK_PORTS):
        tile, port = divmod(number, _LINK_PORTS)
        y, x = divmod(tile, columns)
        step_x, step_y = _STEPS[noc][port]
        to = (x + step_x, y + step_y)
        links.append(_Link(4 * tile + port, (x, y), to, (to[0] % columns, to[1] % rows)))
    return links


def _link_name(link: _Link) -> str:
    (x, y), (to_x, to_y) = link.tile, link.to_wrapped
    return f"({x}, {y}) > ({to_x}, {to_y})"


def _network(replayed: Replay, noc: int) -> _Network:
    flits = replayed.link_flits[:, noc]
    links = _links(replayed.grid, noc)
    used = [link for link in links if flits[:, link.number].any()]
    return _Network(
        noc,
        grid_figure(replayed, noc),
        links_figure(replayed, noc),
        min(len(used), LINKS_SHOWN_MAX),
        len(used),
    )


def links_figure(replayed: Replay, noc: int) -> go.Figure:
    """The busiest links over time, as dark as the share of cycles in which a flit left."""
    flits = replayed.link_flits[:, noc]
    links = [link for link in _links(replayed.grid, noc) if flits[:, link.number].any()]
    links.sort(key=lambda link: -int(flits[:, link.number].sum()))
    links = links[:LINKS_SHOWN_MAX]
    cycles = replayed.link_sample_cycles
    percents = 100 * flits[:, [link.number for link in links]].T / cycles
    figure = go.Figure(
        go.Heatmap(
            z=np.minimum(np.rint(percents), 100).astype(np.uint8),
            x=(np.arange(len(flits)) + 0.5) * cycles,
            y=[_link_name(link) for link in links],
            zmin=0,
            zmax=100,
            ygap=1,
            colorscale=[[0, "rgba(59,116,184,0.04)"], [1, "rgba(59,116,184,1)"]],
            colorbar={"ticksuffix": " %", "thickness": 10, "len": 1, "outlinewidth": 0},
            hovertemplate="%{y} around cycle %{x:,.0f}<br>busy %{z} %<extra></extra>",
        )
    )
    figure.update_layout(layout(height=90 + max(13 * len(links), 60)))
    figure.update_xaxes(title="cycle", showgrid=False)
    figure.update_yaxes(autorange="reversed", type="category", showgrid=False, tickfont_size=10)
    return figure


def grid_figure(replayed: Replay, noc: int) -> go.Figure:
    """Tiles and links of one NoC, every link by its load over the whole run."""
    columns, rows = replayed.grid
    total = replayed.link_flits[:, noc].sum(axis=0)
    busy = total / max(len(replayed.link_flits) * replayed.link_sample_cycles, 1)
    links = _links(replayed.grid, noc)
    figure = go.Figure()
    for level, color in enumerate(_HEAT):
        own = [link for link in links if _level(busy[link.number]) == level]
        figure.add_scatter(
            x=[at for link in own for at in _line(link, 0)],
            y=[at for link in own for at in _line(link, 1)],
            mode="lines",
            line={"color": color, "width": 2 + level},
            name=f"{100 * level // len(_HEAT)} to {100 * (level + 1) // len(_HEAT)} %",
            hoverinfo="skip",
        )
    figure.add_scatter(
        x=[(2 * link.tile[0] + link.to[0]) / 3 for link in links],
        y=[(2 * link.tile[1] + link.to[1]) / 3 for link in links],
        mode="markers",
        marker={"size": 14, "opacity": 0},
        text=[f"{_link_name(link)}<br>busy {busy[link.number]:.1%}" for link in links],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
    _add_tiles(figure, replayed, busy)
    figure.update_layout(layout(height=110 + 46 * rows))
    figure.update_xaxes(showgrid=False, dtick=1, range=[-0.8, columns - 0.2], constrain="domain")
    figure.update_yaxes(showgrid=False, dtick=1, range=[rows - 0.2, -0.8], scaleanchor="x")
    return figure


def _add_tiles(figure: go.Figure, replayed: Replay, busy: np.ndarray) -> None:
    columns, _ = replayed.grid
    numbers = range(len(replayed.tile_kinds))
    figure.add_scatter(
        x=[number % columns for number in numbers],
        y=[number // columns for number in numbers],
        mode="markers",
        marker={
            "symbol": "square",
            "size": 20,
            "color": [_TILE_COLORS.get(kind, _OTHER_TILE_COLOR) for kind in replayed.tile_kinds],
            "line": {"color": "rgba(128,138,150,0.8)", "width": 1},
        },
        text=[
            f"({number % columns}, {number // columns}) {kind.replace('_', ' ')}<br>"
            f"receives {busy[4 * number + 2]:.1%}, sends {busy[4 * number + 3]:.1%} of the time"
            for number, kind in zip(numbers, replayed.tile_kinds, strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def _level(busy: float) -> int:
    return min(int(busy * len(_HEAT)), len(_HEAT) - 1)


def _line(link: _Link, axis: int) -> tuple[float | None, ...]:
    """One axis of a link's line; around the border it is two stubs."""
    here, there = link.tile[axis], link.to[axis]
    if link.to == link.to_wrapped:
        return here, there, None
    step = there - here
    end = link.to_wrapped[axis]
    return here, here + 0.6 * step, None, end - 0.6 * step, end, None
