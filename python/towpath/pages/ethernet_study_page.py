# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The microbenchmarks of links as one HTML page and as text."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go

from towpath.pages.plots import CURVE_COLORS, layout, size_axis
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.specs.sizes import format_size
from towpath.studies.ethernet_study import Figure


def write_ethernet_study(
    title: str, command: str, figures: list[Figure], path: Path, *,
    made_with: Provenance | None = None,
) -> None:  # fmt: skip
    """Write the page; it needs no other file and no network.

    `made_with` becomes its foot; by default that is the version of Towpath and the date.
    """
    drawn = [
        {"title": figure.title, "how": figure.how, "plot": draw_figure(figure)}
        for figure in figures
    ]
    write_page(
        path, "ethernet_study.html.jinja", made_with=made_with, title=title, command=command,
        figures=drawn,
    )  # fmt: skip


def study_text(figures: list[Figure]) -> str:
    """Every number, a table per figure."""
    lines = []
    for figure in figures:
        lines += ["", f"# {figure.title}: {figure.y_title} by {figure.x_title}"]
        for curve in figure.curves:
            points = (
                f"{_x_text(figure, x)}: {y:.4g}" for x, y in zip(curve.x, curve.y, strict=True)
            )
            lines.append(f"  {curve.name}: {', '.join(points)}")
    return "\n".join(lines[1:])


def _x_text(figure: Figure, x: float) -> str:
    return format_size(int(x)) if figure.x_title == "size" else f"{x:g}"


def draw_figure(figure: Figure) -> go.Figure:
    """Its curves, sizes on a logarithmic axis."""
    drawn = go.Figure()
    for index, curve in enumerate(figure.curves):
        drawn.add_scatter(
            x=curve.x,
            y=curve.y,
            name=curve.name,
            mode="lines+markers",
            line={"color": CURVE_COLORS[index % len(CURVE_COLORS)], "width": 1.6},
            marker={"size": 6},
            text=[_x_text(figure, x) for x in curve.x],
            hovertemplate=f"%{{text}}: %{{y:.4g}}<br>{curve.name}<extra></extra>",
        )
    drawn.update_layout(layout(height=420))
    drawn.update_xaxes(title=figure.x_title)
    drawn.update_yaxes(title=figure.y_title, rangemode="tozero")
    if figure.x_title == "size":
        drawn.update_xaxes(**size_axis({int(x) for curve in figure.curves for x in curve.x}))
    return drawn
