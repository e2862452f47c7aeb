# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The NoC study as one HTML page: verdicts, a figure per pattern and NoC, and every number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from towpath.pages.noc_table import (
    BandwidthTable,
    bandwidth_sections,
    bandwidth_table,
    classes_table,
    flow_control_table,
    stalled_vcs_table,
    throttle_table,
)
from towpath.pages.plots import CURVE_COLORS, layout, size_axis
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.specs.sizes import format_size
from towpath.studies.noc_findings import Finding, Row
from towpath.studies.noc_study import is_reduced
from towpath.studies.plain_table import PlainTable


@dataclass(frozen=True)
class Study:
    """What a run found out.

    Attributes:
        title: one line.
        command: what was typed.
        facts: term and value, about the chip and the run.
        parts: rows by part of the study.
        findings: verdicts.
    """

    title: str
    command: str
    facts: list[tuple[str, str]]
    parts: dict[str, list[Row]]
    findings: list[Finding]


@dataclass(frozen=True)
class _Figure:
    title: str
    figure: go.Figure


@dataclass(frozen=True)
class _Section:
    title: str
    figures: list[_Figure]
    table: BandwidthTable


def write_study(study: Study, path: Path | str, *, made_with: Provenance | None = None) -> None:
    """Write the page; it needs no other file and no network.

    `made_with` becomes its foot; by default that is the version of Towpath and the date.
    """
    parts = study.parts
    write_page(
        path,
        "noc_study.html.jinja",
        made_with=made_with,
        study=study,
        sections=_sections(parts.get("patterns", [])),
        loopback=_sections(parts.get("loopback", [])),
        orders=_order_figures(parts.get("orders", [])),
        order_tables=_sections(parts.get("orders", [])),
        throttle=_throttle_figures(parts.get("throttle", [])),
        throttle_table=_table(throttle_table, parts.get("throttle", [])),
        flow_control=_table(flow_control_table, parts.get("flow_control", [])),
        classes=_table(classes_table, parts.get("classes", [])),
        stalled_vcs=_table(stalled_vcs_table, parts.get("stalled_vcs", [])),
        is_reduced=is_reduced,
    )


def _table(table, rows: list[Row]) -> PlainTable | None:
    return table(rows) if rows else None


def _sections(rows: list[Row]) -> list[_Section]:
    """A section per pattern and order."""
    sections = []
    for title, own in bandwidth_sections(rows):
        most = _most(own)
        figures = [
            _Figure(f"NoC {noc}", bandwidth_figure([r for r in own if r["noc"] == noc], most))
            for noc in sorted({row["noc"] for row in own})
        ]
        sections.append(_Section(title, figures, bandwidth_table(own)))
    return sections


def bandwidth_figure(rows: Iterable[Row], most: float) -> go.Figure:
    """Bandwidth over size on one NoC, a line per VC count; the axis reaches `most`."""
    rows = sorted(rows, key=lambda row: row["size_bytes"])
    figure = go.Figure()
    for vcs in sorted({row["vcs"] for row in rows}):
        name = f"{vcs} VC{'s' if vcs > 1 else ''}"
        _add_curve(figure, name, vcs - 1, [row for row in rows if row["vcs"] == vcs])
    _finish_bandwidth(figure, rows, most)
    return figure


def _order_figures(rows: list[Row]) -> list[_Figure]:
    """Both orders of one pattern on one NoC in a figure."""
    figures = []
    for pattern, noc in dict.fromkeys((row["pattern"], row["noc"]) for row in rows):
        own = [row for row in rows if (row["pattern"], row["noc"]) == (pattern, noc)]
        own.sort(key=lambda row: row["size_bytes"])
        figure = go.Figure()
        for turned, name in ((False, "same order for all"), (True, "randomised order")):
            curve = [row for row in own if row["turned"] == turned]
            _add_curve(figure, name, int(turned), curve)
        _finish_bandwidth(figure, own, _most([row for row in rows if row["pattern"] == pattern]))
        words = pattern.replace("_", "-").capitalize()
        figures.append(_Figure(f"{words}, NoC {noc}", figure))
    return figures


def _throttle_figures(rows: list[Row]) -> list[_Figure]:
    figures = []
    for noc in sorted({row["noc"] for row in rows}):
        own = [row for row in rows if row["noc"] == noc]
        figures += [
            _Figure(f"Accepted over offered, NoC {noc}", accepted_figure(own)),
            _Figure(f"Latency over offered, NoC {noc}", latency_figure(own)),
        ]
    return figures


def accepted_figure(rows: Iterable[Row]) -> go.Figure:
    """Accepted over offered bandwidth, a line per VC count, beside the line of what is offered."""
    rows = list(rows)
    figure = go.Figure()
    ends = [0, max(row["offered_bytes_per_cycle"] for row in rows)]
    figure.add_scatter(
        x=ends, y=ends, name="offered", mode="lines", hoverinfo="skip",
        line={"color": "#808890", "width": 1, "dash": "dot"},
    )  # fmt: skip
    _add_load_curves(figure, rows, "bandwidth_bytes_per_cycle", "%{y:.2f} B/cycle accepted")
    accepted = max(row["bandwidth_bytes_per_cycle"] for row in rows)
    figure.update_yaxes(title="accepted (B/cycle per core)", range=[0, 1.6 * accepted])
    return figure


def latency_figure(rows: Iterable[Row]) -> go.Figure:
    """Median latency over offered bandwidth, a line per VC count."""
    figure = go.Figure()
    _add_load_curves(figure, rows, "latency_median_cycles", "%{y:,} cycles")
    figure.update_yaxes(
        title="median latency since due (cycles)", type="log", dtick=1, tickformat=",~g"
    )
    return figure


def _add_load_curves(figure: go.Figure, rows: Iterable[Row], field: str, hover: str) -> None:
    rows = sorted(rows, key=lambda row: row["offered_bytes_per_cycle"])
    for vcs in sorted({row["vcs"] for row in rows}):
        own = [row for row in rows if row["vcs"] == vcs]
        name = f"{vcs} VC{'s' if vcs > 1 else ''}"
        figure.add_scatter(
            x=[row["offered_bytes_per_cycle"] for row in own],
            y=[row[field] for row in own],
            name=name,
            mode="lines+markers",
            line={"color": _color(vcs - 1), "width": 1.6},
            marker={"size": 6},
            hovertemplate=f"%{{x:.2f}} B/cycle offered: {hover}<br>{name}<extra></extra>",
        )
    figure.update_layout(layout(height=340))
    figure.update_xaxes(title="offered (B/cycle per core)", rangemode="tozero")


def _add_curve(figure: go.Figure, name: str, place: int, rows: list[Row]) -> None:
    """Later curves are thinner, so that those they cover are seen."""
    symbols = ["circle-open" if is_reduced(row) else "circle" for row in rows]
    figure.add_scatter(
        x=[row["size_bytes"] for row in rows],
        y=[row["bandwidth_bytes_per_cycle"] for row in rows],
        name=name,
        mode="lines+markers",
        line={"color": _color(place), "width": 4.8 - 1.1 * place},
        marker={"size": 10 - 1.4 * place, "symbol": symbols},
        text=[format_size(row["size_bytes"]) for row in rows],
        hovertemplate=f"%{{text}}: %{{y:.2f}} B/cycle<br>{name}<extra></extra>",
    )


def _most(rows: Iterable[Row]) -> float:
    return max(row["bandwidth_bytes_per_cycle"] for row in rows)


def _finish_bandwidth(figure: go.Figure, rows: list[Row], most: float) -> None:
    figure.update_layout(layout(height=340))
    figure.update_xaxes(title="transaction size", **size_axis({row["size_bytes"] for row in rows}))
    figure.update_yaxes(title="bandwidth (B/cycle per master)", range=[0, 1.07 * most])


def _color(index: int) -> str:
    return CURVE_COLORS[index % len(CURVE_COLORS)]
