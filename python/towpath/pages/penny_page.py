# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the library's CUDA kernels."""

from __future__ import annotations

from collections.abc import Iterator

from towpath.specs.sizes import format_size
from towpath.studies.page import COLORS, Axis, Curve, Finding, Page, PlainTable, Plot, Section
from towpath.studies.penny import PennyStudy, Timed

_HOW = (
    "Every thread of every block ran, and the data was checked. Time is that of the slowest "
    "kernel, without its launch; GB/s are twice the array over the time. The model is that of "
    "towpath bench exchange, which has neither threads nor data."
)


def penny_page(study: PennyStudy, command: str) -> Page:
    """The page of `towpath bench penny`."""
    rows = fastest(study)
    shapes = {(row.point.threads, row.point.bytes_per_thread) for row in study.rows}
    # One shape makes no plot of shapes.
    sizes = sorted({row.point.size_bytes for row in study.rows}) if len(shapes) > 1 else []
    sections = [Section("Over size", [size_plot(rows)], in_text=False)]
    if sizes:
        plots = [shape_plot(study, size) for size in dict.fromkeys((sizes[0], sizes[-1]))]
        sections.append(Section("Blocks and packets", plots, in_text=False))
    sections.append(Section("Every shape", [table(study.rows)], is_folded=True, in_text=False))
    return Page(
        f"Kernels on {study.machine}", command, sections, list(_findings(study, rows)),
        table(rows), _HOW,
    )  # fmt: skip


def fastest(study: PennyStudy) -> list[Timed]:
    """The fastest shape of each kernel at each size."""
    found: dict[tuple[str, int], Timed] = {}
    for row in study.rows:
        key = (row.point.kernel, row.point.size_bytes)
        if key not in found or row.time_us < found[key].time_us:
            found[key] = row
    return list(found.values())


def _findings(study: PennyStudy, rows: list[Timed]) -> Iterator[Finding]:
    for size_bytes in sorted({row.point.size_bytes for row in rows}):
        best = min((row for row in rows if row.point.size_bytes == size_bytes),
                   key=lambda row: row.time_us)  # fmt: skip
        yield Finding(
            f"Fastest at {format_size(size_bytes)}",
            f"{best.point.kernel}, {best.time_us:.1f} us, {best.gb_per_s:.1f} GB/s "
            f"({best.point.threads} threads, {best.point.bytes_per_thread} bytes each)",
        )
    for kernel, sizes_bytes in study.not_divided.items():
        sizes = ", ".join(map(format_size, sizes_bytes))
        yield Finding(f"{kernel} did not run at {sizes}", "its blocks divide the array in no shape")


def table(rows: list[Timed]) -> PlainTable:
    """A line for each row, with the time of the model."""
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


def size_plot(rows: list[Timed]) -> Plot:
    """Time over size, both logarithmic, one line per kernel."""
    curves = []
    for kernel in dict.fromkeys(row.point.kernel for row in rows):
        own = sorted((row for row in rows if row.point.kernel == kernel),
                     key=lambda row: row.point.size_bytes)  # fmt: skip
        texts = [
            f"{kernel}, {format_size(row.point.size_bytes)}: {row.time_us:.1f} us with "
            f"{row.point.threads} x {row.point.bytes_per_thread} B"
            for row in own
        ]
        curves.append(
            Curve(kernel, [row.point.size_bytes for row in own], [row.time_us for row in own],
                  texts)
        )  # fmt: skip
    title = "Time by size, the fastest shape"
    return Plot(title, Axis("size", "size"), Axis("time (us)", "log"), curves)


def shape_plot(study: PennyStudy, size_bytes: int) -> Plot:
    """Time over bytes per thread at one size, one line per kernel and number of threads."""
    rows = [row for row in study.rows if row.point.size_bytes == size_bytes]
    kernels = list(dict.fromkeys(row.point.kernel for row in rows))
    threads = sorted({row.point.threads for row in rows})
    curves = []
    for kernel in kernels:
        for place, count in enumerate(threads):
            own = sorted(
                (row for row in rows if (row.point.kernel, row.point.threads) == (kernel, count)),
                key=lambda row: row.point.bytes_per_thread,
            )
            curves.append(Curve(
                f"{kernel}, {count} threads", [row.point.bytes_per_thread for row in own],
                [row.time_us for row in own], style=("line", "open", "dash", "dot")[place % 4],
                color=COLORS[kernels.index(kernel) % len(COLORS)],
            ))  # fmt: skip
    return Plot(
        f"At {format_size(size_bytes)}", Axis("packet_size (bytes per thread)", "size"),
        Axis("time (us)", "log"), curves,
    )  # fmt: skip
