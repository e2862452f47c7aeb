# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The study of kernels that exchange and reduce, as text, as JSON, and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import plotly.graph_objects as go

from towpath.pages.plain_text import table_text
from towpath.pages.plots import CURVE_COLORS, layout, size_axis, time_axis
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.specs.sizes import format_size
from towpath.studies.exchange import DOCUMENT, STAGES, ExchangeStudy, Ring, best
from towpath.studies.plain_table import PlainTable

HOW = (
    "GB/s are sent and received together, per GPU. Time is that of the kernel: a copy in it "
    "counts; launch, barriers and copies of the host do not. Each value is the best of the blocks, "
    "slices and sizes that were tried."
)


def best_table(study: ExchangeStudy) -> PlainTable:
    """The best exchange of each stage on each route, beside the document's figure."""
    headings = ["route", "kernel", "size", "threads", "bytes per thread", "us", "GB/s"]
    if study.is_the_documents:
        headings += ["document", "difference"]
    lines = []
    for row in best(study.exchanges):
        line = [
            row.route, STAGES[row.stage], format_size(row.size_bytes), str(row.threads),
            str(row.bytes_per_thread), f"{row.time_us:.1f}", f"{row.gb_per_s:.1f}",
        ]  # fmt: skip
        if study.is_the_documents:
            figure = DOCUMENT.get((row.route, row.stage))
            line += (
                ["-", "-"]
                if figure is None
                else [f"{figure:.0f}", f"{100 * (row.gb_per_s / figure - 1):+.1f} %"]
            )
        lines.append(line)
    return PlainTable(headings, lines)


def ring_table(rings: Sequence[Ring]) -> PlainTable:
    """All-reduces: a line for each size, a column for each variant."""
    variants = list(dict.fromkeys(ring.variant for ring in rings))
    times = {(ring.variant, ring.size_bytes): ring.time_us for ring in rings}
    lines = []
    for size_bytes in sorted({ring.size_bytes for ring in rings}):
        found = [times.get((variant, size_bytes)) for variant in variants]
        lines.append(
            [format_size(size_bytes)]
            + ["-" if time_us is None else f"{time_us:.1f}" for time_us in found]
        )
    return PlainTable(["size", *(f"{variant} (us)" for variant in variants)], lines)


def study_text(study: ExchangeStudy) -> Iterator[str]:
    """Every table, for a terminal."""
    yield "# Two GPUs exchange a buffer"
    yield HOW
    yield from table_text(best_table(study))
    for title, rings in _ring_parts(study):
        yield ""
        yield f"# {title}"
        yield from table_text(ring_table(rings))


def _ring_parts(study: ExchangeStudy) -> list[tuple[str, list[Ring]]]:
    parts = [("All-reduce inside a host", study.inside)]
    if study.between:
        parts.append(("All-reduce over two hosts", study.between))
    return parts


# --- the page -------------------------------------------------------------------------------------


def write_study(study: ExchangeStudy, folder: Path, *, made_with: Provenance | None = None) -> None:
    """Write study.html; it needs no other file and no network.

    Args:
        study: what was found.
        folder: where it goes.
        made_with: becomes the page's foot; by default the version of Towpath and the date.
    """
    largest = max(row.size_bytes for row in study.exchanges)
    write_page(
        folder / "study.html",
        "exchange_study.html.jinja",
        made_with=made_with,
        study=study,
        how=HOW,
        best=best_table(study),
        figures=[
            (f"Exchange {route}, {format_size(largest)}", sweep_figure(study, route, largest))
            for route in dict.fromkeys(row.route for row in study.exchanges)
        ],
        rings=[(title, ring_table(rings), ring_figure(rings))
               for title, rings in _ring_parts(study)],
    )  # fmt: skip


def sweep_figure(study: ExchangeStudy, route: str, size_bytes: int) -> go.Figure:
    """Bandwidth over bytes per thread on one route, a line per kernel: the best of its blocks."""
    figure = go.Figure()
    rows = [
        row for row in best(study.exchanges, "size_bytes", "bytes_per_thread")
        if (row.route, row.size_bytes) == (route, size_bytes)
    ]  # fmt: skip
    for place, stage in enumerate(STAGES):
        own = sorted(
            (row for row in rows if row.stage == stage), key=lambda row: row.bytes_per_thread
        )
        color = CURVE_COLORS[place % len(CURVE_COLORS)]
        figure.add_scatter(
            x=[row.bytes_per_thread for row in own],
            y=[row.gb_per_s for row in own],
            name=STAGES[stage],
            mode="lines+markers",
            line={"color": color, "width": 1.6},
            text=[f"{row.threads} threads" for row in own],
            hovertemplate="%{x} B per thread, %{text}: %{y:.1f} GB/s<extra></extra>",
        )
        if study.is_the_documents and (route, stage) in DOCUMENT:
            figure.add_hline(
                y=DOCUMENT[route, stage], line={"color": color, "width": 1, "dash": "dot"}
            )
    figure.update_layout(layout(height=380))
    figure.update_xaxes(
        title="bytes per thread", **size_axis({row.bytes_per_thread for row in rows})
    )
    figure.update_yaxes(title="both ways (GB/s)", rangemode="tozero")
    return figure


def ring_figure(rings: Sequence[Ring]) -> go.Figure:
    """Time over size, both logarithmic, a line per variant."""
    figure = go.Figure()
    for place, variant in enumerate(dict.fromkeys(ring.variant for ring in rings)):
        own = [ring for ring in rings if ring.variant == variant]
        figure.add_scatter(
            x=[ring.size_bytes for ring in own],
            y=[ring.time_us for ring in own],
            name=variant,
            mode="lines+markers",
            line={"color": CURVE_COLORS[place % len(CURVE_COLORS)], "width": 1.6},
            text=[format_size(ring.size_bytes) for ring in own],
            hovertemplate=f"%{{text}}: %{{y:.1f}} us<br>{variant}<extra></extra>",
        )
    figure.update_layout(layout(height=400))
    figure.update_xaxes(title="size", **size_axis({ring.size_bytes for ring in rings}))
    figure.update_yaxes(**time_axis([ring.time_us for ring in rings]))
    return figure
