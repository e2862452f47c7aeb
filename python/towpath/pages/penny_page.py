# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The study of the library's CUDA kernels, as text, as JSON, and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import plotly.graph_objects as go

from towpath.pages.plain_text import table_text
from towpath.pages.plots import CURVE_COLORS, layout, size_axis
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.specs.sizes import format_size
from towpath.studies.penny import PennyStudy, Timed
from towpath.studies.plain_table import PlainTable

HOW = (
    "Every thread of every block ran, and the data was checked. Time is that of the slowest "
    "kernel, without its launch; GB/s are twice the array over the time. The model is that of "
    "`towpath bench exchange`, which has neither threads nor data."
)


def fastest(study: PennyStudy) -> list[Timed]:
    """The fastest shape of each kernel at each size."""
    found: dict[tuple[str, int], Timed] = {}
    for row in study.rows:
        key = (row.point.kernel, row.point.size_bytes)
        if key not in found or row.time_us < found[key].time_us:
            found[key] = row
    return list(found.values())


def table(rows: list[Timed]) -> PlainTable:
    """A line for each row, beside the model."""
    lines = []
    for row in rows:
        point = row.point
        model = ["-", "-"]
        if row.model_us is not None:
            model = [f"{row.model_us:.1f}", f"{100 * (row.time_us / row.model_us - 1):+.1f} %"]
        lines.append([
            point.kernel, format_size(point.size_bytes), str(point.threads),
            str(point.bytes_per_thread), str(point.rings), f"{row.time_us:.1f}",
            f"{row.gb_per_s:.1f}", *model,
        ])  # fmt: skip
    headings = ["kernel", "size", "block_size", "packet_size", "rings", "us", "GB/s", "model (us)",
                "difference"]  # fmt: skip
    return PlainTable(headings, lines)


def study_text(study: PennyStudy) -> Iterator[str]:
    """The fastest shapes, for a terminal."""
    yield f"# Kernels on {study.machine}, the fastest shape for each size"
    yield HOW
    yield from table_text(table(fastest(study)))


def write_study(study: PennyStudy, folder: Path, *, made_with: Provenance | None = None) -> None:
    """Write study.html; it needs no other file and no network.

    Args:
        study: what was found.
        folder: where it goes.
        made_with: becomes the page's foot; by default the version of Towpath and the date.
    """
    shapes = {(row.point.threads, row.point.bytes_per_thread) for row in study.rows}
    # One shape makes no plot of shapes.
    sizes = sorted({row.point.size_bytes for row in study.rows}) if len(shapes) > 1 else []
    figures = [("Time by size, the fastest shape", size_figure(study))]
    figures += [
        (f"Blocks and packets at {format_size(size)}", shape_figure(study, size))
        for size in dict.fromkeys((*sizes[:1], *sizes[-1:]))
    ]
    write_page(
        folder / "study.html", "penny_study.html.jinja", made_with=made_with, study=study, how=HOW,
        best=table(fastest(study)), all_rows=table(study.rows), figures=figures,
    )  # fmt: skip


def size_figure(study: PennyStudy) -> go.Figure:
    """Time over size, both logarithmic, a line per kernel."""
    figure = go.Figure()
    rows = fastest(study)
    for place, kernel in enumerate(dict.fromkeys(row.point.kernel for row in rows)):
        own = sorted((row for row in rows if row.point.kernel == kernel),
                     key=lambda row: row.point.size_bytes)  # fmt: skip
        figure.add_scatter(
            x=[row.point.size_bytes for row in own],
            y=[row.time_us for row in own],
            name=kernel,
            mode="lines+markers",
            line={"color": CURVE_COLORS[place % len(CURVE_COLORS)], "width": 1.6},
            text=[f"{row.point.threads} x {row.point.bytes_per_thread} B" for row in own],
            hovertemplate=f"%{{text}}: %{{y:.1f}} us<br>{kernel}<extra></extra>",
        )
    figure.update_layout(layout(height=400))
    figure.update_xaxes(title="size", **size_axis({row.point.size_bytes for row in rows}))
    figure.update_yaxes(title="time (us)", type="log", dtick="D2")
    return figure


def shape_figure(study: PennyStudy, size_bytes: int) -> go.Figure:
    """Time over bytes per thread at one size, a line per kernel and number of threads."""
    figure = go.Figure()
    rows = [row for row in study.rows if row.point.size_bytes == size_bytes]
    kernels = list(dict.fromkeys(row.point.kernel for row in rows))
    threads = sorted({row.point.threads for row in rows})
    dashes = ("solid", "dash", "dot", "dashdot")
    for kernel in kernels:
        for place, count in enumerate(threads):
            own = sorted(
                (row for row in rows if (row.point.kernel, row.point.threads) == (kernel, count)),
                key=lambda row: row.point.bytes_per_thread,
            )
            color = CURVE_COLORS[kernels.index(kernel) % len(CURVE_COLORS)]
            figure.add_scatter(
                x=[row.point.bytes_per_thread for row in own],
                y=[row.time_us for row in own],
                name=f"{kernel}, {count} threads",
                mode="lines+markers",
                line={"color": color, "width": 1.6, "dash": dashes[place % len(dashes)]},
                hovertemplate="%{x} B per thread: %{y:.1f} us<extra></extra>",
            )
    figure.update_layout(layout(height=400))
    packets = {row.point.bytes_per_thread for row in rows}
    figure.update_xaxes(title="packet_size (bytes per thread)", **size_axis(packets))
    figure.update_yaxes(title="time (us)", type="log", dtick="D2")
    return figure
