# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What `towpath tune COLLECTIVE` found, as text and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import plotly.graph_objects as go

from towpath.pages.plain_text import table_text
from towpath.pages.plots import CURVE_COLORS, layout, size_axis, time_axis
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.pages.table import format_time
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs.sizes import format_size
from towpath.studies.plain_table import PlainTable
from towpath.tuning.collective import CHUNKS_PER_CHANNEL, Timing, Tuning
from towpath.tuning.rule import RULE

_DASHES = {"Simple": "solid", "LL": "dot", "LL128": "dash"}


def candidate_name(source: ScheduleSource) -> str:
    """What tells it from other candidates.

    >>> candidate_name(ScheduleSource(algorithm="ring_all_reduce", channels=2, both_ways=True))
    'ring_all_reduce, Simple, 2 channels both ways'
    """
    channels = f"{source.channels} channel{'s' if source.channels > 1 else ''}"
    parts = [source.algorithm or "", source.protocol,
             channels + " both ways" * source.both_ways]  # fmt: skip
    # Only the first option counts where an algorithm does not look at it.
    if source.chunks_per_channel != CHUNKS_PER_CHANNEL[0]:
        parts.append(f"{source.chunks_per_channel} chunks each")
    return ", ".join(parts)


def winners_table(tuning: Tuning) -> PlainTable:
    """A line per size: what the rule chooses, and the fastest of all."""
    lines = [
        [
            str(chosen.size_bytes), candidate_name(chosen.source), format_time(chosen.time_us),
            f"{chosen.bus_gb_per_s():.2f}", format_time(best.time_us),
            "" if best is chosen else candidate_name(best.source),
        ]
        for chosen, best in zip(tuning.winners(), tuning.fastest(), strict=True)
    ]  # fmt: skip
    headings = ["size (B)", "choice", "time (us)", "busbw (GB/s)", "fastest (us)", "fastest"]
    return PlainTable(headings, lines)


def all_table(tuning: Tuning) -> PlainTable:
    """Every candidate's time at every size."""
    sizes = tuning.sizes_bytes
    times: dict[ScheduleSource, dict[int, float]] = {}
    for timing in tuning.timings:
        times.setdefault(timing.source, {})[timing.size_bytes] = timing.time_us
    lines = [
        [candidate_name(source),
         *(format_time(own[size]) if size in own else "" for size in sizes)]
        for source, own in times.items()
    ]  # fmt: skip
    return PlainTable(["time (us)", *map(format_size, sizes)], lines)


def tuning_text(tuning: Tuning) -> Iterator[str]:
    """The choices for a terminal."""
    yield f"# {tuning.collective}, {tuning.kind} on {tuning.where}: {tuning.candidates} candidates"
    yield f"# {RULE}"
    yield from (f"# {note}" for note in tuning.notes)
    yield from table_text(winners_table(tuning))


def write_tuning(
    tuning: Tuning, command: str, path: Path, *, made_with: Provenance | None = None
) -> None:
    """Write the page; it needs no other file and no network.

    `made_with` becomes its foot; by default that is the version of Towpath and the date.
    """
    write_page(
        path,
        "tune_collective.html.jinja",
        made_with=made_with,
        title=f"{tuning.collective} on {tuning.where}",
        command=command,
        rule=RULE,
        tuning=tuning,
        winners=winners_table(tuning),
        everything=all_table(tuning),
        bandwidth=_bandwidth_figure(tuning),
        time=_time_figure(tuning),
    )


# --- figures --------------------------------------------------------------------------------------


def _time_figure(tuning: Tuning) -> go.Figure:
    figure = _curves(tuning, lambda timing: timing.time_us)
    figure.update_yaxes(**time_axis([timing.time_us for timing in tuning.timings]))
    return figure


def _bandwidth_figure(tuning: Tuning) -> go.Figure:
    figure = _curves(tuning, Timing.bus_gb_per_s)
    figure.update_yaxes(title="bus bandwidth (GB/s)", rangemode="tozero")
    return figure


def _curves(tuning: Tuning, value) -> go.Figure:
    """The best of each algorithm and protocol, and the choices."""
    best: dict[tuple[str, str], dict[int, Timing]] = {}
    for timing in tuning.timings:
        own = best.setdefault((timing.source.algorithm or "", timing.source.protocol), {})
        if timing.size_bytes not in own or timing.time_us < own[timing.size_bytes].time_us:
            own[timing.size_bytes] = timing
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in sorted(best)))
    figure = go.Figure()
    for (algorithm, protocol), own in sorted(best.items()):
        color = CURVE_COLORS[algorithms.index(algorithm) % len(CURVE_COLORS)]
        line = {"color": color, "width": 1.6, "dash": _DASHES[protocol]}
        _add(figure, f"{algorithm}, {protocol}", list(own.values()), value,
             mode="lines", line=line)  # fmt: skip
    _add(figure, "choice", tuning.winners(), value, mode="markers",
         marker={"size": 9, "color": "rgba(0,0,0,0)", "line": {"width": 1.6, "color": "#808890"}},
    )  # fmt: skip
    figure.update_layout(layout(height=440))
    figure.update_xaxes(title="size", **size_axis(set(tuning.sizes_bytes)))
    return figure


def _add(figure: go.Figure, name: str, timings: list[Timing], value, **style) -> None:
    figure.add_scatter(
        name=name,
        x=[timing.size_bytes for timing in timings],
        y=[value(timing) for timing in timings],
        text=[f"{format_size(each.size_bytes)}, {candidate_name(each.source)}" for each in timings],
        hovertemplate="%{text}: %{y:.4g}<extra></extra>",
        **style,
    )
