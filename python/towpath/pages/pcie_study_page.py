# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The study of a host link as text, as JSON, and as two HTML pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from towpath.pages.plain_text import table_text
from towpath.pages.plots import CURVE_COLORS, layout, size_axis
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.specs.sizes import format_size
from towpath.studies.pcie_study import Cause, Row, SlowRead
from towpath.studies.plain_table import PlainTable

SLOW_READ_PAGE = "why_is_my_read_slow.html"
READ_HOW = (
    "Reads have two columns: the host's buffer begins on a line of 64 bytes, or it does not and "
    "every load crosses two lines. Which it was is not recorded, so that the document's figure is "
    "held against both: it is explained, not predicted."
)


@dataclass(frozen=True)
class PcieStudy:
    """What a run found out.

    Attributes:
        title: one line.
        command: what was typed.
        facts: term and value, about host, chip and run.
        is_the_documents: whether the document measured this host and chip.
        tables: the document's four, ours beside theirs, by title.
        comparisons: ways side by side, by title.
        causes: the document's explanations, held against the model without them.
        sweep: bandwidth over size.
        slow_reads: where the time of one goes.
    """

    title: str
    command: str
    facts: list[tuple[str, str]]
    is_the_documents: bool
    tables: dict[str, list[Row]]
    comparisons: dict[str, list[Row]]
    causes: list[Cause]
    sweep: list[Row]
    slow_reads: list[SlowRead]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = asdict(self)
        for cause, one in zip(plain["causes"], self.causes, strict=True):
            cause["outcome"] = one.outcome
        return plain


# --- tables ---------------------------------------------------------------------------------------


def document_table(rows: list[Row], has_errors: bool) -> PlainTable:
    """One of the document's tables beside ours, in MB/s."""
    headings = ["size", "write", "document", "read, aligned", "read, not aligned", "document"]
    if has_errors:
        headings[3:3] = ["error"]
        headings += ["error, aligned", "error, not aligned", "nearer"]
    lines = []
    for row in rows:
        line = [
            format_size(row["size_bytes"]), f"{row['write_mb_per_s']:.0f}",
            str(row["document_write_mb_per_s"]), f"{row['read_aligned_mb_per_s']:.1f}",
            f"{row['read_misaligned_mb_per_s']:.1f}", str(row["document_read_mb_per_s"]),
        ]  # fmt: skip
        if has_errors:
            line[3:3] = [f"{row['write_error_pct']:+.1f} %"]
            line += [f"{row[f'read_{how}_error_pct']:+.1f} %" for how in ("aligned", "misaligned")]
            line.append("aligned" if row["aligned_is_nearer"] else "not aligned")
        lines.append(line)
    return PlainTable(headings, lines)


def comparison_table(rows: list[Row]) -> PlainTable:
    """Ways side by side, in MB/s."""
    headings = ["way", "target", "size", "MB/s"]
    further = {"windows": "windows configured", "map_time_us": "pinning and mapping (us)"}
    shown = [name for name in further if any(name in row for row in rows)]
    lines = [
        [row["way"], row["target"], format_size(row["size_bytes"]), f"{row['mb_per_s']:.1f}"]
        + [f"{row[name]:.0f}" for name in shown]
        for row in rows
    ]
    return PlainTable(headings + [further[name] for name in shown], lines)


def causes_table(found: list[Cause]) -> PlainTable:
    """Each effect with its cause, and without."""
    lines = [
        [
            cause.effect, cause.cause, f"{cause.with_cause:.2f} x",
            f"{cause.without_cause:.2f} x", cause.outcome, cause.numbers,
        ]
        for cause in found
    ]  # fmt: skip
    return PlainTable(["effect", "cause", "with it", "without", "effect", "figures"], lines)


def slow_read_table(read: SlowRead) -> PlainTable:
    """Where the time of one read goes."""
    lines = [
        [name, f"{time_us:.2f}", f"{100 * time_us / read.time_us:.1f} %",
         f"{each_ns:.1f}" if each_ns else ""]
        for name, time_us, each_ns in read.parts
    ]  # fmt: skip
    return PlainTable(["part", "us", "share", "ns per round trip"], lines)


def study_text(study: PcieStudy) -> Iterator[str]:
    """Every table, for a terminal; MB/s are of 2^20 bytes."""
    for title, rows in study.tables.items():
        yield f"# {title} (MB/s)"
        yield from table_text(document_table(rows, study.is_the_documents))
        yield ""
    for title, rows in study.comparisons.items():
        yield f"# {title}"
        yield from table_text(comparison_table(rows))
        yield ""
    yield "# What the document explains, with the cause and without"
    yield from table_text(causes_table(study.causes))
    for read in study.slow_reads:
        yield ""
        yield f"# Why is my read slow? {_slow_read_title(read)}"
        yield from table_text(slow_read_table(read))


def _slow_read_title(read: SlowRead) -> str:
    return (
        f"{read.title}: {read.time_us / 1e3:.2f} ms, {read.mb_per_s:.1f} MB/s, "
        f"{read.accesses} round trips"
    )


# --- pages ----------------------------------------------------------------------------------------


def write_study(study: PcieStudy, folder: Path, *, made_with: Provenance | None = None) -> None:
    """Write study.html and the page of slow reads; they need no other file and no network.

    `made_with` becomes their foot; by default that is the version of Towpath and the date.
    """
    write_page(
        folder / "study.html",
        "pcie_study.html.jinja",
        made_with=made_with,
        study=study,
        tables=[
            (title, document_table(rows, study.is_the_documents))
            for title, rows in study.tables.items()
        ],
        comparisons=[(title, comparison_table(rows)) for title, rows in study.comparisons.items()],
        causes=causes_table(study.causes),
        figures=[
            (target, sweep_figure([row for row in study.sweep if row["target"] == target]))
            for target in dict.fromkeys(row["target"] for row in study.sweep)
        ],
        read_how=READ_HOW,
    )
    write_page(
        folder / SLOW_READ_PAGE,
        "slow_read.html.jinja",
        made_with=made_with,
        study=study,
        reads=[
            (_slow_read_title(read), slow_read_table(read), slow_read_figure(read))
            for read in study.slow_reads
        ],
    )


def sweep_figure(rows: list[Row]) -> go.Figure:
    """Bandwidth over size, both logarithmic, a line per way."""
    figure = go.Figure()
    for place, way in enumerate(dict.fromkeys(row["way"] for row in rows)):
        own = [row for row in rows if row["way"] == way]
        figure.add_scatter(
            x=[row["size_bytes"] for row in own],
            y=[row["mb_per_s"] for row in own],
            name=way,
            mode="lines+markers",
            line={"color": CURVE_COLORS[place % len(CURVE_COLORS)], "width": 1.6},
            marker={"size": 6},
            text=[format_size(row["size_bytes"]) for row in own],
            hovertemplate=f"%{{text}}: %{{y:.4~g}} MB/s<br>{way}<extra></extra>",
        )
    figure.update_layout(layout(height=440))
    sizes_bytes = {row["size_bytes"] for row in rows}
    figure.update_xaxes(title="size of a transfer", **size_axis(sizes_bytes))
    figure.update_yaxes(title="bandwidth (MB/s)", type="log", dtick=1, tickformat=",~g")
    return figure


def slow_read_figure(read: SlowRead) -> go.Figure:
    """One bar, cut into the parts of the read's time."""
    figure = go.Figure()
    for place, (name, time_us, _) in enumerate(read.parts):
        figure.add_bar(
            orientation="h",
            name=name,
            x=[time_us / 1e3],
            y=[""],
            marker_color=CURVE_COLORS[place % len(CURVE_COLORS)],
            hovertemplate=f"{name}: %{{x:.3f}} ms<extra></extra>",
        )
    figure.update_layout(layout(height=150), barmode="stack", bargap=0.3)
    figure.update_xaxes(title="time (ms)")
    return figure
