# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The measurements of the NoC study as tables: a line per size, a column per NoC and VC count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from towpath.pages.plain_text import table_text
from towpath.studies.noc_findings import Finding, Row
from towpath.studies.noc_study import is_reduced
from towpath.studies.plain_table import PlainTable

_PLACEMENTS = {"alone": "without data", "own_vc": "VC of its own", "data_vc": "the data's VC"}


@dataclass(frozen=True)
class BandwidthTable:
    """Bandwidth over size.

    Attributes:
        columns: (NoC, number of VCs).
        lines: size in bytes, and a row per column; None where nothing was measured.
    """

    columns: list[tuple[int, int]]
    lines: list[tuple[int, list[Row | None]]]


def bandwidth_table(rows: Iterable[Row]) -> BandwidthTable:
    """The rows of one pattern and order as a table."""
    at = {(row["noc"], row["vcs"], row["size_bytes"]): row for row in rows}
    columns = sorted({key[:2] for key in at})
    sizes_bytes = sorted({key[2] for key in at})
    lines = [(size, [at.get((*column, size)) for column in columns]) for size in sizes_bytes]
    return BandwidthTable(columns, lines)


def bandwidth_text(title: str, rows: Iterable[Row]) -> Iterator[str]:
    """The table for a terminal, in B/cycle per master; an asterisk marks reduced points."""
    table = bandwidth_table(rows)
    yield f"# {title}: bandwidth per master (B/cycle), median over masters"
    yield "#   size (B)" + "".join(f"  NoC {noc} VCs {vcs} " for noc, vcs in table.columns)
    for size_bytes, line in table.lines:
        yield (f"{size_bytes:>12}" + "".join(f"  {_rate(row):>12}" for row in line)).rstrip()


def _rate(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row['bandwidth_bytes_per_cycle']:.2f}" + ("*" if is_reduced(row) else " ")


def flow_control_table(rows: Iterable[Row]) -> PlainTable:
    """Latency of small messages by where they travel."""
    headings = [
        "NoC", "message", "travels on", "median (cycles)", "p95", "max",
        "messages", "data (B/cycle per sender)",
    ]  # fmt: skip
    lines = [
        [
            str(row["noc"]), row["message"].replace("_", " "), _PLACEMENTS[row["placement"]],
            f"{row['latency_median_cycles']:,}", f"{row['latency_p95_cycles']:,}",
            f"{row['latency_max_cycles']:,}", f"{row['messages']:,}",
            f"{row['data_bandwidth_bytes_per_cycle']:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    return PlainTable(headings, lines)


def classes_table(rows: Iterable[Row]) -> PlainTable:
    """Bandwidth of two classes of traffic, on one VC and on a VC each."""
    headings = ["NoC", "beside L1", "VCs", "both (B/cycle)", "to L1", "the other"]
    lines = [
        [
            str(row["noc"]), row["other"], "2" if row["placement"] == "own_vc" else "1",
            f"{row['bandwidth_bytes_per_cycle']:.2f}",
            f"{row['l1_bandwidth_bytes_per_cycle']:.2f}",
            f"{row['other_bandwidth_bytes_per_cycle']:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    return PlainTable(headings, lines)


def throttle_table(rows: Iterable[Row]) -> PlainTable:
    """Accepted against offered bandwidth."""
    headings = ["NoC", "VCs", "offered (B/cycle)", "accepted (B/cycle)", "latency since due"]
    lines = [
        [
            str(row["noc"]), str(row["vcs"]), f"{row['offered_bytes_per_cycle']:.2f}",
            f"{row['bandwidth_bytes_per_cycle']:.2f}", f"{row['latency_median_cycles']:,}",
        ]
        for row in rows
    ]  # fmt: skip
    return PlainTable(headings, lines)


def stalled_vcs_table(rows: Iterable[Row]) -> PlainTable:
    """What a flow keeps beside stalled VCs."""
    rows = list(rows)
    free = next((row["bandwidth_bytes_per_cycle"] for row in rows if row["stalled"] == 0), None)
    headings = [
        "stalled VCs",
        "rows down",
        "another VC (B/cycle)",
        "of its rate with none",
        "stalled throughout",
    ]
    lines = [
        [
            str(row["stalled"]), str(row["rows"]), f"{row['bandwidth_bytes_per_cycle']:.2f}",
            f"{row['bandwidth_bytes_per_cycle'] / free:.1%}" if free else "",
            "yes" if row["stalled_to_the_end"] else "no",
        ]
        for row in rows
    ]  # fmt: skip
    return PlainTable(headings, lines)


def findings_text(found: Iterable[Finding]) -> Iterator[str]:
    """Verdicts, each with its numbers."""
    for finding in found:
        yield f"{finding.verdict:>10}  {finding.claim}"
        yield from (f"{'':>10}  {clause}" for clause in finding.numbers)


def study_text(parts: dict[str, list[Row]]) -> Iterator[str]:
    """Every table of a run."""
    for part in ("patterns", "orders", "loopback"):
        for title, rows in bandwidth_sections(parts.get(part, [])):
            yield from bandwidth_text(title, rows)
            yield ""
    others: list[tuple[str, Any, str]] = [
        ("flow_control", flow_control_table, "Small messages beside data"),
        ("classes", classes_table, "Two classes of traffic on shared links"),
        ("throttle", throttle_table, "All-to-all, throttled"),
        ("stalled_vcs", stalled_vcs_table, "A flow beside stalled VCs"),
    ]
    for part, table, title in others:
        if parts.get(part):
            yield f"# {title}"
            yield from table_text(table(parts[part]))
            yield ""


def bandwidth_sections(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows of bandwidth over size, a table's worth at a time, with a title."""
    tables: dict[tuple[str, bool], list[Row]] = {}
    for row in rows:
        tables.setdefault((row["pattern"], row["turned"]), []).append(row)
    for own in tables.values():
        yield section_title(own), own


def section_title(rows: list[Row]) -> str:
    """What the rows of one table have in common."""
    row = rows[0]
    count = row["asked_per_destination"]
    order = ", order randomised" if row["turned"] else ""
    words = row["pattern"].replace("_", "-").capitalize()
    return f"{words}, {count} transaction{'s' if count > 1 else ''} per destination{order}"
