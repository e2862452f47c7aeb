# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The study of a cluster with mailboxes as tables: headings and lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from towpath.studies.mailbox_study import (
    PUBLISHED_AT_1_GHZ_NS,
    PUBLISHED_CYCLES,
    PUBLISHED_LATENCIES,
    MailboxStudy,
)
from towpath.studies.plain_table import PlainTable

Row = dict[str, Any]

_FIGURES = {
    "mode_ns": "most iterations, one way (ns)",
    "mean_ns": "mean, one way (ns)",
    "max_ns": "slowest, one way (ns)",
    "mean_round_trip_ns": "mean, round trip (ns)",
}


def study_tables(study: MailboxStudy) -> list[PlainTable]:
    """All tables, in the order in which they are read."""
    return [
        latency_table(study),
        breakdown_table(study),
        parts_table(study),
        phase_table(study),
        *(plateau_table(name, row) for name, row in study.latencies.items()),
        projection_table(study),
        *(sweep_table(name, rows) for name, rows in study.sweeps.items()),
        *([assumption_table(study)] if study.assumptions else []),
    ]


def latency_table(study: MailboxStudy) -> PlainTable:
    lines = []
    for has_interruptions, figure, published in PUBLISHED_LATENCIES:
        where = "with" if has_interruptions else "without"
        own = study.latencies[where][figure]
        difference = f"{100 * (own / published - 1):+.1f}%"
        lines.append((where, _FIGURES[figure], f"{own:.1f}", f"{published:.0f}", difference))
    headings = ("interrupts", "figure", "here", "published", "difference")
    return _beside_published(study, "Latency", headings, lines, 2)


def breakdown_table(study: MailboxStudy) -> PlainTable:
    lines = [
        (row["what"], str(row["cycle"]), str(row["published_cycle"]),
         f"{row['cycle'] - row['published_cycle']:+d}")
        for row in study.breakdown
    ]  # fmt: skip
    title = "A round trip in cycles, in the phase in which node 0 waits longest for its poll"
    return _beside_published(study, title, ("event", "here", "published", "difference"), lines, 2)


def parts_table(study: MailboxStudy) -> PlainTable:
    lines = [(row["what"], row["kind"], f"{row['cycles']:g}", "") for row in study.parts]
    for kind, published in PUBLISHED_CYCLES.items():
        own = sum(row["cycles"] for row in study.parts if row["kind"] == kind)
        lines.append((f"all {kind}", "", f"{own:g}", str(published)))
    whole = sum(row["cycles"] for row in study.parts)
    lines.append(("one way", "", f"{whole:g}", str(sum(PUBLISHED_CYCLES.values()))))
    headings = ("part", "kind", "here", "published")
    return _beside_published(study, "One way in cycles of node 0", headings, lines, 1)


def _beside_published(
    study: MailboxStudy, title: str, headings: tuple[str, ...],
    lines: Sequence[tuple[str, ...]],
    columns: int,
) -> PlainTable:  # fmt: skip
    """The last columns speak of the document, so that no other cluster has them."""
    kept = len(headings) - (0 if study.is_the_documents else columns)
    return PlainTable(headings[:kept], [line[:kept] for line in lines], title)


def phase_table(study: MailboxStudy) -> PlainTable:
    headings = (
        "phase", "answer leaves", "answer arrives", "seen after", "on node 1 after", "round trip",
    )  # fmt: skip
    lines = [tuple(str(value) for value in row.values()) for row in study.phases]
    return PlainTable(headings, lines, "The phases in which polls and packets meet (cycles)")


def plateau_table(name: str, row: Row) -> PlainTable:
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
    return PlainTable(headings, lines, f"Plateaus {name} interrupts, one way")


def projection_table(study: MailboxStudy) -> PlainTable:
    lines = [
        (row["what"], row["how"], f"{row['one_way_ns']:.0f}",
         f"{100 * (row['one_way_ns'] / PUBLISHED_AT_1_GHZ_NS - 1):+.1f}%")
        for row in study.projections
    ]  # fmt: skip
    headings = ("what a clock of 1 GHz changes", "how", "one way (ns)", "against the published 340")
    return _beside_published(study, "The projection to 1 GHz", headings, lines, 1)


def sweep_table(name: str, rows: list[Row]) -> PlainTable:
    words = {
        "one_way_ns": "one way (ns)",
        "messages_per_us": "messages per us, back-pressure",
        "dropped_pct": "dropped without it (%)",
    }
    columns = [column for column in rows[0] if column != "value"]
    lines = [(f"{row['value']:g}", *(f"{row[column]:.1f}" for column in columns)) for row in rows]
    return PlainTable((name, *(words[column] for column in columns)), lines, f"Over {name}")


def assumption_table(study: MailboxStudy) -> PlainTable:
    lines = [(row["what"], row["here"], row["effect"]) for row in study.assumptions]
    title = "What the document does not fix"
    return PlainTable(("assumption", "here", "what it changes"), lines, title)
