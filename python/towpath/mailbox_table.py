# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The study of a cluster with mailboxes as tables: headings and lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from towpath.mailbox_study import (
    PUBLISHED_AT_1_GHZ_NS,
    PUBLISHED_CYCLES,
    PUBLISHED_LATENCIES,
    MailboxStudy,
)

Row = dict[str, Any]

_FIGURES = {
    "mode_ns": "most iterations, one way (ns)",
    "mean_ns": "mean, one way (ns)",
    "max_ns": "slowest, one way (ns)",
    "mean_round_trip_ns": "mean, round trip (ns)",
}


@dataclass(frozen=True)
class Table:
    """Headings, and lines with as many cells."""

    title: str
    headings: tuple[str, ...]
    lines: list[tuple[str, ...]]


def study_tables(study: MailboxStudy) -> list[Table]:
    """All tables, in the order in which they are read."""
    return [
        latency_table(study),
        breakdown_table(study),
        parts_table(study),
        phase_table(study),
        *(plateau_table(name, row) for name, row in study.latencies.items()),
        projection_table(study),
        *(sweep_table(name, rows) for name, rows in study.sweeps.items()),
    ]


def latency_table(study: MailboxStudy) -> Table:
    lines = []
    for has_interruptions, figure, published in PUBLISHED_LATENCIES:
        own = study.latencies["with" if has_interruptions else "without"][figure]
        where = "with interrupts" if has_interruptions else "without"
        difference = f"{100 * (own / published - 1):+.1f}%"
        lines.append((where, _FIGURES[figure], f"{own:.1f}", f"{published:.0f}", difference))
    headings = ("interrupts", "figure", "here", "published", "difference")
    return Table("Latency", headings, lines)


def breakdown_table(study: MailboxStudy) -> Table:
    lines = [
        (row["what"], str(row["cycle"]), str(row["published_cycle"]),
         f"{row['cycle'] - row['published_cycle']:+d}")
        for row in study.breakdown
    ]  # fmt: skip
    return Table("A round trip in cycles", ("event", "here", "published", "difference"), lines)


def parts_table(study: MailboxStudy) -> Table:
    lines = [(row["what"], row["kind"], f"{row['cycles']:g}", "") for row in study.parts]
    for kind, published in PUBLISHED_CYCLES.items():
        own = sum(row["cycles"] for row in study.parts if row["kind"] == kind)
        lines.append((f"all {kind}", "", f"{own:g}", str(published)))
    whole = sum(row["cycles"] for row in study.parts)
    lines.append(("one way", "", f"{whole:g}", str(sum(PUBLISHED_CYCLES.values()))))
    return Table("One way in cycles of node 0", ("part", "kind", "here", "published"), lines)


def phase_table(study: MailboxStudy) -> Table:
    headings = (
        "phase", "answer leaves", "answer arrives", "seen after", "on node 1 after", "round trip",
    )  # fmt: skip
    return Table(
        "The phases in which polls and packets meet (cycles)",
        headings,
        [tuple(str(value) for value in row.values()) for row in study.phases],
    )


def plateau_table(name: str, row: Row) -> Table:
    lines = [
        (
            plateau["what"],
            str(plateau["iterations"]),
            f"{100 * plateau['iterations'] / row['iterations']:.3f}%",
            "-" if plateau["median_ns"] is None else f"{plateau['median_ns']:.0f}",
            "-" if plateau["max_ns"] is None else f"{plateau['max_ns']:.0f}",
        )
        for plateau in row["plateaus"]
    ]
    headings = ("what came between", "iterations", "share", "median (ns)", "slowest (ns)")
    title = "with interrupts" if name == "with" else "without interrupts"
    return Table(f"Plateaus {title}, one way", headings, lines)


def projection_table(study: MailboxStudy) -> Table:
    lines = [
        (row["what"], row["how"], f"{row['one_way_ns']:.0f}",
         f"{100 * (row['one_way_ns'] / PUBLISHED_AT_1_GHZ_NS - 1):+.1f}%")
        for row in study.projections
    ]  # fmt: skip
    headings = ("what a clock of 1 GHz changes", "how", "one way (ns)", "against the published 340")
    return Table("The projection to 1 GHz", headings, lines)


def sweep_table(name: str, rows: list[Row]) -> Table:
    words = {
        "one_way_ns": "one way (ns)",
        "messages_per_us": "messages per us, back-pressure",
        "dropped_pct": "dropped without it (%)",
    }
    columns = [column for column in rows[0] if column != "value"]
    lines = [(f"{row['value']:g}", *(f"{row[column]:.1f}" for column in columns)) for row in rows]
    return Table(f"Over {name}", (name, *(words[column] for column in columns)), lines)


def table_text(table: Table) -> Iterator[str]:
    """The table for a terminal: the first column to the left, the others to the right."""
    yield f"# {table.title}"
    widths = [
        max(len(line[column]) for line in (table.headings, *table.lines))
        for column in range(len(table.headings))
    ]
    for line in (table.headings, *table.lines):
        cells = (f"{cell:>{width}}" for cell, width in zip(line[1:], widths[1:], strict=True))
        yield f"  {line[0]:<{widths[0]}}  {'  '.join(cells)}"


def tables_text(tables: Iterable[Table]) -> str:
    return "\n\n".join("\n".join(table_text(table)) for table in tables)
