# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a replayed trace: cycles, cores, waits of requests, and the load of links."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from towpath.studies.page import (
    GREY,
    Axis,
    Bars,
    BarSeries,
    Curve,
    Finding,
    Heat,
    Lanes,
    Page,
    PlainTable,
    Plot,
    Section,
)
from towpath.studies.replay import FIGURE_NAMES, PHASES, CoreReplay, Replay, RequestReplay

CORES_SHOWN_MAX = 128
REQUEST_CORES_MAX = 16  # in the menu of the requests
REQUESTS_PER_CORE_MAX = 200
LINKS_SHOWN_MAX = 60

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


def replay_page(replayed: Replay, command: str) -> Page:
    """The page of `towpath replay`, with the load of links if it was sampled."""
    cores = [core for core in replayed.cores if core.end_cycle_measured > core.begin_cycle]
    requests = _by_core(replayed.requests)
    carried = replayed.link_flits.sum(axis=(0, 2)) if replayed.link_flits.size else ()
    waits = (
        "It waits to start while no virtual channel or buffer takes it, leaves flit by flit, "
        "travels to the other end, and is answered: with the data of a read, or with the "
        "acknowledgement of a write. Long answers of reads are data that waits at its source or "
        "on the way."
    )
    sections = [
        Section("Where requests wait", [
            phases_bars(requests), phases_table(replayed), requests_lanes(requests),
        ], waits),
        Section("Cores", [cores_bars(cores), cores_table(cores)]),
        *(_network(replayed, noc) for noc, flits in enumerate(carried) if flits),
    ]  # fmt: skip
    return Page(
        f"{replayed.name} on {replayed.chip}", command, sections, _findings(replayed),
        _cycles_table(replayed), facts=_facts(replayed, cores),
    )  # fmt: skip


def _findings(replayed: Replay) -> list[Finding]:
    found = []
    for name, words in FIGURE_NAMES.items():
        predicted, measured = (
            getattr(own, name) for own in (replayed.predicted, replayed.measured)
        )
        answer = (
            f"{predicted:,} cycles predicted, {measured:,} measured, {_error(predicted, measured)}"
        )
        found.append(Finding(words[:1].upper() + words[1:], answer))
    return found


def _cycles_table(replayed: Replay) -> PlainTable:
    lines = []
    for name, words in FIGURE_NAMES.items():
        predicted, measured = (
            getattr(own, name) for own in (replayed.predicted, replayed.measured)
        )
        lines.append([words, str(predicted), str(measured), _error(predicted, measured)])
    return PlainTable(["cycles", "predicted", "measured", "error"], lines)


def _error(predicted: int, measured: int) -> str:
    return f"{100 * (predicted / measured - 1):+.1f}%" if measured else "-"


def phases_table(replayed: Replay) -> PlainTable:
    """Median and longest of each phase of a request."""
    lines = []
    for number, words in enumerate(PHASES):
        cycles = [request.phase_cycles[number] for request in replayed.requests]
        median = statistics.median_low(cycles) if cycles else 0
        lines.append([words, str(median), str(max(cycles, default=0))])
    return PlainTable(["cycles per request", "median", "longest"], lines)


def cores_table(cores: list[CoreReplay]) -> PlainTable:
    """First and last event of each processor."""
    lines = [
        [core.name, str(core.begin_cycle), str(core.end_cycle_predicted),
         str(core.end_cycle_measured),
         _error(core.end_cycle_predicted - core.begin_cycle,
                core.end_cycle_measured - core.begin_cycle)]
        for core in cores
    ]  # fmt: skip
    headings = ["core", "begin", "last event", "measured", "error"]
    return PlainTable(headings, lines, "Every processor", is_folded=True)


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


def cores_bars(all_cores: list[CoreReplay]) -> Bars:
    """A bar per processor from its start to its last event, measured behind predicted."""
    cores = _evenly(all_cores, CORES_SHOWN_MAX)
    begins = [core.begin_cycle for core in cores]
    how = (
        "A bar per processor from its kernel's begin to its last event: wide and grey as traced, "
        "narrow and blue as simulated."
    )
    if len(cores) < len(all_cores):
        how += f" {len(cores)} of {len(all_cores)} processors are shown, evenly chosen."
    series = [
        BarSeries("measured", [core.end_cycle_measured - core.begin_cycle for core in cores],
                  begins, GREY, 0.86),
        BarSeries("predicted", [core.end_cycle_predicted - core.begin_cycle for core in cores],
                  begins, _PREDICTED_COLOR, 0.4),
    ]  # fmt: skip
    title = "Begin and last event of each processor"
    return Bars(title, Axis("cycle"), [core.name for core in cores], series, how)


def phases_bars(requests: dict[str, list[RequestReplay]]) -> Bars:
    """Mean cycles of a request in each phase, per processor."""
    names = _evenly(list(requests), CORES_SHOWN_MAX)
    means = [np.mean([one.phase_cycles for one in requests[name]], axis=0) for name in names]
    series = [
        BarSeries(words, [float(mean[phase]) for mean in means], color=color)
        for phase, (words, color) in enumerate(zip(PHASES, _PHASE_COLORS, strict=True))
    ]
    return Bars("Cycles per request by phase", Axis("cycles per request, mean"), names, series)


def requests_lanes(requests: dict[str, list[RequestReplay]]) -> Lanes:
    """Every request of a processor over time; the menu lists the processors that end last."""
    latest = sorted(requests, key=lambda name: -requests[name][-1].completed_cycle)
    groups: dict[str, list[tuple[int, float, float, int, int]]] = {}
    texts: dict[str, int] = {}
    for name in latest[:REQUEST_CORES_MAX]:
        groups[name] = []
        for lane, one in enumerate(requests[name][:REQUESTS_PER_CORE_MAX]):
            begin = one.issued_cycle
            for phase, words in enumerate(PHASES):
                text = f"{one.kind} {one.size_bytes} B, {one.core} and {one.to}, {words}"
                end = begin + one.phase_cycles[phase]
                number = texts.setdefault(text, len(texts))
                groups[name].append((lane, begin, end, phase, number))
                begin = end
    ends = [span[2] for own in groups.values() for span in own]
    begins = [span[1] for own in groups.values() for span in own]
    how = (
        "A lane per request of the processor chosen in the menu, in order of issue. The menu has "
        "the processors that end last. Drag to zoom, double-click to see all."
    )
    return Lanes(
        "Requests of one processor", dict(groups), list(zip(PHASES, _PHASE_COLORS, strict=True)),
        list(texts), "request", "cycles",
        (float(min(begins, default=0)), float(max(ends, default=1))), how,
    )  # fmt: skip


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


def _network(replayed: Replay, noc: int) -> Section:
    return Section(
        f"NoC {noc}", [grid_plot(replayed, noc), links_heat(replayed, noc)], in_text=False
    )


def links_heat(replayed: Replay, noc: int) -> Heat:
    """The busiest links over time, with darkness proportional to the share of cycles in which a
    flit left.
    """
    flits = replayed.link_flits[:, noc]
    used = [link for link in _links(replayed.grid, noc) if flits[:, link.number].any()]
    used.sort(key=lambda link: -int(flits[:, link.number].sum()))
    links = used[:LINKS_SHOWN_MAX]
    cycles = replayed.link_sample_cycles
    percents = 100 * flits[:, [link.number for link in links]].T / cycles
    how = "A row per link, the busiest on top, as dark as the share of cycles in which a flit left."
    if len(links) < len(used):
        how += f" The {len(links)} busiest of {len(used)} are shown."
    return Heat(
        "Links over time", Axis("cycle", low=0.0, high=float(len(flits) * cycles)),
        [_link_name(link) for link in links],
        np.minimum(np.rint(percents), 100).astype(np.uint8).tolist(), "of the time busy", how,
    )  # fmt: skip


def grid_plot(replayed: Replay, noc: int) -> Plot:
    """Tiles and links of one NoC, with every link colored by its load over the whole run."""
    columns, rows = replayed.grid
    total = replayed.link_flits[:, noc].sum(axis=0)
    busy = total / max(len(replayed.link_flits) * replayed.link_sample_cycles, 1)
    links = _links(replayed.grid, noc)
    curves = []
    for level, color in enumerate(_HEAT):
        own = [link for link in links if _level(busy[link.number]) == level]
        name = f"{100 * level // len(_HEAT)} to {100 * (level + 1) // len(_HEAT)} %"
        curves.append(Curve(
            name, [at for link in own for at in _line(link, 0)],
            [-at for link in own for at in _line(link, 1)], None, style="plain", color=color,
            width=2 + level,
        ))  # fmt: skip
    # Nothing is drawn of these points; they say what is under the pointer.
    texts = [f"{_link_name(link)}: busy {busy[link.number]:.1%}" for link in links]
    curves.append(Curve(
        "links", [(2 * link.tile[0] + link.to[0]) / 3 for link in links],
        [-(2 * link.tile[1] + link.to[1]) / 3 for link in links], texts, style="plain",
        color="none", in_legend=False,
    ))  # fmt: skip
    way = "right, then down" if noc == 0 else "up, then left"
    how = (
        f"Data travels {way}. Links by their part of the time in which a flit left; lines that end "
        "beyond the border continue at the other side. Blue tiles compute, orange ones are DRAM."
    )
    across = [(float(n), str(n)) for n in range(columns)]
    down = [(-float(n), str(n)) for n in range(rows)]
    return Plot(
        "Load over the whole run", Axis("", ticks=across, low=-0.8, high=columns - 0.2),
        Axis("", ticks=down, low=0.2 - rows, high=0.8), [*curves, *_tiles(replayed, busy)], how,
        height=46 * rows,
    )  # fmt: skip


def _tiles(replayed: Replay, busy: np.ndarray) -> list[Curve]:
    columns, _ = replayed.grid
    curves = []
    for kind in dict.fromkeys(replayed.tile_kinds):
        numbers = [n for n, each in enumerate(replayed.tile_kinds) if each == kind]
        texts = [
            f"({n % columns}, {n // columns}) {kind.replace('_', ' ')}: receives "
            f"{busy[4 * n + 2]:.1%}, sends {busy[4 * n + 3]:.1%} of the time"
            for n in numbers
        ]
        curves.append(Curve(
            kind, [n % columns for n in numbers], [-(n // columns) for n in numbers], texts,
            style="square", color=_TILE_COLORS.get(kind, _OTHER_TILE_COLOR), in_legend=False,
        ))  # fmt: skip
    return curves


def _level(busy: float) -> int:
    return min(int(busy * len(_HEAT)), len(_HEAT) - 1)


def _line(link: _Link, axis: int) -> tuple[float, ...]:
    """One axis of a link's line; across the border it is drawn as two stubs."""
    here, there = link.tile[axis], link.to[axis]
    if link.to == link.to_wrapped:
        return here, there, math.nan
    step = there - here
    end = link.to_wrapped[axis]
    return here, here + 0.6 * step, math.nan, end - 0.6 * step, end, math.nan
