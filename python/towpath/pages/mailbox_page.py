# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The page of a cluster with mailboxes: latency, breakdown, histograms, sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from towpath.studies.mailbox_live import LiveStudy, live_tables
from towpath.studies.mailbox_study import (
    PUBLISHED_AT_1_GHZ_NS,
    PUBLISHED_CYCLES,
    PUBLISHED_LATENCIES,
    MailboxStudy,
)
from towpath.studies.page import COLORS, Axis, Curve, Finding, Page, PlainTable, Plot, Section

Row = dict[str, Any]

_BINS_PER_DECADE = 40
_FIGURES = {
    "mode_ns": "most iterations, one way (ns)",
    "mean_ns": "mean, one way (ns)",
    "max_ns": "slowest, one way (ns)",
    "mean_round_trip_ns": "mean, round trip (ns)",
}


def mailbox_page(
    study: MailboxStudy, title: str, command: str, facts: Sequence[tuple[str, str]]
) -> Page:
    """The page of `towpath bench mailbox`."""
    latency = [histogram_plot(f"One way {words} interrupts", study.latencies[words])
               for words in ("without", "with")]  # fmt: skip
    plateaus = [plateau_table(name, row) for name, row in study.latencies.items()]
    series = [series_plot(study, words) for words in ("without", "with")]
    waves = []
    if study.waves:
        waves = [Section("Signals of both nodes", [wave_plot(study)], in_text=False)]
    sections = [
        Section("Latency", [*latency, latency_table(study), *plateaus]),
        Section("A round trip", [
            breakdown_plot(study), breakdown_table(study), parts_table(study), phase_table(study),
        ]),
        *waves,
        Section("The projection to 1 GHz", [projection_table(study)]),
        *(_sweep_section(name, rows) for name, rows in study.sweeps.items()),
        Section("One way by iteration", series, is_folded=True, in_text=False),
    ]  # fmt: skip
    if study.assumptions:
        sections.append(Section("Assumptions", [assumption_table(study)]))
    return Page(title, command, sections, list(_findings(study)), facts=facts)


def _findings(study: MailboxStudy) -> Iterator[Finding]:
    for words in ("without", "with"):
        row = study.latencies[words]
        published = {figure: value for has, figure, value in PUBLISHED_LATENCIES
                     if has == (words == "with")}  # fmt: skip
        parts = []
        for figure, name in (("mode_ns", "most iterations"), ("mean_ns", "mean"),
                             ("max_ns", "slowest")):  # fmt: skip
            beside = ""
            if study.is_the_documents and figure in published:
                beside = f" (published: {published[figure]:.0f})"
            parts.append(f"{name} {row[figure]:.0f} ns{beside}")
        yield Finding(f"One way {words} interrupts", ", ".join(parts))
    kinds = {kind: sum(row["cycles"] for row in study.parts if row["kind"] == kind)
             for kind in PUBLISHED_CYCLES}  # fmt: skip
    if study.parts:
        whole = sum(row["cycles"] for row in study.parts)
        parts = [f"{cycles:g} {kind}" for kind, cycles in kinds.items()]
        yield Finding("One way in cycles of node 0", f"{whole:g}: {', '.join(parts)}")
    if study.projections:
        last = study.projections[-1]
        words = f"{last['one_way_ns']:.0f} ns ({last['what']}; {last['how']})"
        yield Finding("One way with a clock of 1 GHz", words)


def live_mailbox_page(study: LiveStudy, command: str, facts: Sequence[tuple[str, str]]) -> Page:
    """The page of `towpath bench mailbox --live`."""
    plots = [histogram_plot("Mailbox", study.message), histogram_plot("Cache line", study.line)]
    latency, *others = live_tables(study)
    found = [Finding(
        "One way",
        f"median {study.message['median_ns']:.0f} ns, {study.median_ratio():.2f} times that of a "
        f"cache line; 99 % within {study.message['p99_ns']:.0f} ns",
    )]  # fmt: skip
    sections = [Section("Latency", [*plots, latency]),
                *(Section(table.title, [table]) for table in others)]  # fmt: skip
    return Page("Small messages between two processes", command, sections, found, facts=facts)


def _sweep_section(name: str, rows: list[Row]) -> Section:
    plots = [sweep_plot(name, rows)] if "one_way_ns" in rows[0] else []
    return Section(f"Over {name}", [*plots, sweep_table(name, rows)])


def series_plot(study: MailboxStudy, words: str) -> Plot:
    """The time of single iterations."""
    series = study.latencies[words]["series"]
    curve = Curve("iteration", [place for place, _ in series], [ns for _, ns in series],
                  style="points", width=0.6)  # fmt: skip
    return Plot(f"{words} interrupts", Axis("iteration"), Axis("one way (ns)", "log"), [curve])


def wave_plot(study: MailboxStudy) -> Plot:
    """Signals over cycles, in the style of a logic analyzer."""
    shown = [row for row in study.waves if len(row["changes"]) > 1]
    end = max(cycle for row in shown for cycle, _ in row["changes"])
    curves, ticks = [], []
    for place, row in enumerate(shown):
        name = f"{row['signal']}, node {row['node']}"
        ticks.append((-place + 0.35, name))
        values = [value for _, value in row["changes"]]
        curves.append(Curve(
            name, [*(cycle for cycle, _ in row["changes"]), end],
            [-place + 0.7 * value for value in [*values, values[-1]]],
            [f"{name}, cycle {cycle}" for cycle in [*(c for c, _ in row["changes"]), end]],
            style="step", color=COLORS[row["node"]], width=1.2, in_legend=False,
        ))  # fmt: skip
    axis = Axis("", ticks=ticks, low=0.3 - len(shown), high=1.0)
    return Plot("Two round trips", Axis("cycle"), axis, curves, height=26 * len(shown))


def histogram_plot(title: str, row: Row) -> Plot:
    """Number of iterations by their time, both axes logarithmic."""
    times_ns = np.asarray(row["times_ns"])
    exponents = np.floor(np.log10(times_ns) * _BINS_PER_DECADE)
    bins, places = np.unique(exponents, return_inverse=True)
    counts = np.bincount(places, weights=row["counts"])
    edges = 10 ** (bins / _BINS_PER_DECADE)
    texts = [f"from {edge:.0f} ns: {count:.0f} iterations"
             for edge, count in zip(edges, counts, strict=True)]  # fmt: skip
    curve = Curve("iterations", edges.tolist(), counts.tolist(), texts, style="stem", width=4)
    return Plot(title, Axis("one way (ns)", "log"), Axis("iterations", "log", low=0.5), [curve])


def breakdown_plot(study: MailboxStudy) -> Plot:
    """Events of a round trip by cycle, as simulated and as published for the document's cluster."""
    ends = [("cycle", "here"), ("published_cycle", "published")]
    places = [-float(place) for place in range(len(study.breakdown))]
    curves = [
        Curve(
            name, [row[column] for row in study.breakdown], places,
            [f"{row['what']}, {name}: cycle {row[column]}" for row in study.breakdown],
            style="points", hollow=range(len(places)) if number else (), width=1.8 + 4 * number,
        )
        for number, (column, name) in enumerate(ends[: 1 + study.is_the_documents])
    ]  # fmt: skip
    names = [row["what"] for row in study.breakdown]
    axis = Axis("", ticks=list(zip(places, names, strict=True)), low=0.5 - len(names), high=0.5)
    return Plot("Events by cycle", Axis("cycle", low=0), axis, curves[::-1], height=26 * len(names))


def sweep_plot(name: str, rows: list[Row]) -> Plot:
    """Time of one way over a parameter."""
    curve = Curve("one way", [row["value"] for row in rows], [row["one_way_ns"] for row in rows])
    return Plot(f"Over {name}", Axis(name, "log"), Axis("one way (ns)"), [curve])


# --- tables ---------------------------------------------------------------------------------------


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
    """The last columns, which only the document's cluster has."""
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
