# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of kernels for exchanges and rings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from towpath.specs.sizes import format_size
from towpath.studies.exchange import DOCUMENT, STAGES, ExchangeStudy, Ring, best
from towpath.studies.page import COLORS, Axis, Curve, Finding, Page, PlainTable, Plot, Section

_HOW = (
    "GB/s are sent and received together, per GPU. Time is that of the kernel: a copy in it "
    "counts; launch, barriers and copies of the host do not. Each value is the best of the blocks, "
    "slices and sizes that were tried."
)


def exchange_page(study: ExchangeStudy, command: str) -> Page:
    """The page of `towpath bench exchange`."""
    largest = max(row.size_bytes for row in study.exchanges)
    routes = dict.fromkeys(row.route for row in study.exchanges)
    how = "The best number of threads at each point."
    if study.is_the_documents:
        how += " Dotted: the values of the document."
    plots = [sweep_plot(study, route, largest) for route in routes]
    exchange = Section("Two GPUs exchange a buffer", [best_table(study)], _HOW)
    sweep = Section("Bytes per thread", plots, how, in_text=False)
    rings = [
        Section(title, [ring_plot(title, rings), ring_table(rings)])
        for title, rings in _ring_parts(study)
    ]
    title = f"Kernels of puts with signals on {study.machine}"
    return Page(title, command, [exchange, sweep, *rings], list(_findings(study)))


def _findings(study: ExchangeStudy) -> Iterator[Finding]:
    rows = best(study.exchanges)
    for route in dict.fromkeys(row.route for row in rows):
        row = max((row for row in rows if row.route == route), key=lambda row: row.gb_per_s)
        yield Finding(
            f"Exchange {route}",
            f"{row.gb_per_s:.1f} GB/s at {format_size(row.size_bytes)} ({STAGES[row.stage]}, "
            f"{row.threads} threads, {row.bytes_per_thread} bytes each)",
        )
    for title, rings in _ring_parts(study):
        ends = []
        for size_bytes in dict.fromkeys(
            (min(ring.size_bytes for ring in rings), max(ring.size_bytes for ring in rings))
        ):
            ring = min(
                (ring for ring in rings if ring.size_bytes == size_bytes),
                key=lambda ring: ring.time_us,
            )
            ends.append(f"{ring.time_us:.1f} us at {format_size(size_bytes)} ({ring.variant})")
        yield Finding(title, "; ".join(ends))


def best_table(study: ExchangeStudy) -> PlainTable:
    """The best exchange of each stage on each route, with the document's value."""
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
    """All-reduces: one line per size, and one column per variant."""
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


def _ring_parts(study: ExchangeStudy) -> list[tuple[str, list[Ring]]]:
    parts = [("All-reduce inside a host", study.inside)]
    if study.between:
        parts.append(("All-reduce over two hosts", study.between))
    return parts


def sweep_plot(study: ExchangeStudy, route: str, size_bytes: int) -> Plot:
    """Bandwidth over bytes per thread on one route, one line per kernel with its best number of
    blocks.
    """
    rows = [
        row for row in best(study.exchanges, "size_bytes", "bytes_per_thread")
        if (row.route, row.size_bytes) == (route, size_bytes)
    ]  # fmt: skip
    ends = [min(row.bytes_per_thread for row in rows), max(row.bytes_per_thread for row in rows)]
    curves = []
    for place, stage in enumerate(STAGES):
        own = sorted(
            (row for row in rows if row.stage == stage), key=lambda row: row.bytes_per_thread
        )
        color = COLORS[place % len(COLORS)]
        texts = [
            f"{STAGES[stage]}, {row.bytes_per_thread} B per thread, {row.threads} threads: "
            f"{row.gb_per_s:.1f} GB/s"
            for row in own
        ]
        curves.append(
            Curve(
                STAGES[stage], [row.bytes_per_thread for row in own],
                [row.gb_per_s for row in own], texts, color=color,
            )
        )  # fmt: skip
        if study.is_the_documents and (route, stage) in DOCUMENT:
            level = DOCUMENT[route, stage]
            name = f"{STAGES[stage]}, document"
            curves.append(
                Curve(name, ends, [level, level], style="dot", color=color, in_legend=False)
            )
    title = f"Exchange {route}, {format_size(size_bytes)}"
    return Plot(title, Axis("bytes per thread", "size"), Axis("both ways (GB/s)"), curves)


def ring_plot(title: str, rings: Sequence[Ring]) -> Plot:
    """Time over size, both logarithmic, one line per variant."""
    curves = []
    for variant in dict.fromkeys(ring.variant for ring in rings):
        own = [ring for ring in rings if ring.variant == variant]
        curves.append(
            Curve(variant, [ring.size_bytes for ring in own], [ring.time_us for ring in own])
        )
    return Plot(title, Axis("size", "size"), Axis("time (us)", "log"), curves)
