# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The pages of a host link: its study, and the causes of slow reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from towpath.specs.sizes import format_size
from towpath.studies.page import (
    Axis,
    Bars,
    BarSeries,
    Curve,
    Finding,
    Page,
    PlainTable,
    Plot,
    Section,
)
from towpath.studies.pcie_study import Cause, Row, SlowRead

SLOW_READ_PAGE = "why_is_my_read_slow.html"
READ_HOW = (
    "Reads have two columns: the host's buffer begins on a line of 64 bytes, or it does not and "
    "every load crosses two lines. Which it was is not recorded, so that the document's figure is "
    "held against both: it is explained, not predicted."
)


@dataclass(frozen=True)
class PcieStudy:
    """Results of a run.

    Attributes:
        title: title in one line.
        command: the given command.
        facts: terms and values about host, chip and run.
        is_the_documents: True if the document measured this host and chip.
        tables: the document's four tables compared with the simulated values, by title.
        comparisons: transfer methods compared with each other, by title.
        causes: the document's explanations, compared with the model without each cause.
        sweep: bandwidth over size.
        slow_reads: breakdown of the time of single reads.
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
        """Returns it as plain data for JSON."""
        plain = asdict(self)
        for cause, one in zip(plain["causes"], self.causes, strict=True):
            cause["outcome"] = one.outcome
        return plain


def pcie_page(study: PcieStudy) -> Page:
    """The page of `towpath bench pcie`."""
    how = f"MB/s. {READ_HOW}"
    if not study.is_the_documents:
        how += " The document measured another host or chip, so there are no errors."
    tables = [
        document_table(rows, study.is_the_documents, f"{title} (MB/s)")
        for title, rows in study.tables.items()
    ]
    targets = dict.fromkeys(row["target"] for row in study.sweep)
    sections = [
        Section("The tables of PCIe Bandwidth Benchmarking, ours beside theirs", tables, how),
        *(Section(title, [comparison_table(rows)]) for title, rows in study.comparisons.items()),
        Section("What the document explains, with the cause and without",
                [causes_table(study.causes)],
                "An effect is a ratio of two bandwidths; 1 is none."),
        Section("Bandwidth over size", [
            sweep_plot(target, [row for row in study.sweep if row["target"] == target])
            for target in targets
        ], in_text=False),
        *(Section(f"Why is my read slow? {_slow_read_title(read)}", [slow_read_table(read)],
                  is_folded=True) for read in study.slow_reads),
    ]  # fmt: skip
    return Page(
        study.title, study.command, sections, list(_findings(study)),
        how="Ten transfers one after the other; MB are 2^20 bytes.", facts=study.facts,
        related=[("Why is my read slow?", SLOW_READ_PAGE)],
    )  # fmt: skip


def _findings(study: PcieStudy) -> Iterator[Finding]:
    """The fastest method for each target, and the breakdown of the time of each slow read."""
    for target in dict.fromkeys(row["target"] for row in study.sweep):
        best = max((row for row in study.sweep if row["target"] == target),
                   key=lambda row: row["mb_per_s"])  # fmt: skip
        yield Finding(
            f"Fastest, {target}",
            f"{best['mb_per_s']:.4g} MB/s at {format_size(best['size_bytes'])}, {best['way']}",
        )
    for read in study.slow_reads:
        name, time_us, _ = max(read.parts, key=lambda part: part[1])
        yield Finding(
            _slow_read_title(read), f"{100 * time_us / read.time_us:.0f} % of it is {name}"
        )


def slow_read_page(study: PcieStudy) -> Page:
    """The page with the breakdown of the time of single reads."""
    sections = [
        Section(_slow_read_title(read), [slow_read_bars(read), slow_read_table(read)])
        for read in study.slow_reads
    ]
    answer = (
        "The processor loads from a window. Each load is a request that the chip must answer "
        "before the next one is sent: the bandwidth is the length of a load over the time of a "
        "round trip, whatever the link carries. Nothing overlaps, so the parts below add up. A "
        "load that crosses two lines of 64 bytes is two round trips."
    )
    return Page(
        "Why is my read slow?", study.command, sections,
        [Finding("One read of 1 MB, as the driver does it", answer)],
        related=[("The study", "study.html")],
    )  # fmt: skip


def sweep_plot(target: str, rows: list[Row]) -> Plot:
    """Bandwidth over size, both logarithmic, one line per transfer method."""
    curves = []
    for way in dict.fromkeys(row["way"] for row in rows):
        own = [row for row in rows if row["way"] == way]
        curves.append(
            Curve(way, [row["size_bytes"] for row in own], [row["mb_per_s"] for row in own])
        )
    y = Axis("bandwidth (MB/s)", "log")
    return Plot(target, Axis("size of a transfer", "size"), y, curves, height=400)


def slow_read_bars(read: SlowRead) -> Bars:
    """One bar, divided into the parts of the read's time."""
    series = [BarSeries(name, [time_us / 1e3]) for name, time_us, _ in read.parts]
    return Bars(_slow_read_title(read), Axis("time (ms)"), [""], series)


# --- tables ---------------------------------------------------------------------------------------


def document_table(rows: list[Row], has_errors: bool, title: str = "") -> PlainTable:
    """One of the document's tables with the simulated values, in MB/s."""
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
    return PlainTable(headings, lines, title)


def comparison_table(rows: list[Row]) -> PlainTable:
    """Transfer methods compared with each other, in MB/s."""
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
    """Each effect with and without its cause."""
    lines = [
        [
            cause.effect, cause.cause, f"{cause.with_cause:.2f} x",
            f"{cause.without_cause:.2f} x", cause.outcome, cause.numbers,
        ]
        for cause in found
    ]  # fmt: skip
    return PlainTable(["effect", "cause", "with it", "without", "effect", "figures"], lines)


def slow_read_table(read: SlowRead) -> PlainTable:
    """Breakdown of the time of one read."""
    lines = [
        [name, f"{time_us:.2f}", f"{100 * time_us / read.time_us:.1f} %",
         f"{each_ns:.1f}" if each_ns else ""]
        for name, time_us, each_ns in read.parts
    ]  # fmt: skip
    return PlainTable(["part", "us", "share", "ns per round trip"], lines)


def _slow_read_title(read: SlowRead) -> str:
    return (
        f"{read.title}: {read.time_us / 1e3:.2f} ms, {read.mb_per_s:.1f} MB/s, "
        f"{read.accesses} round trips"
    )
