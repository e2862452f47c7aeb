# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The study of a cluster with mailboxes as one HTML page: histograms, timeline, sweeps, tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from towpath.pages.mailbox_table import study_tables
from towpath.pages.plots import CURVE_COLORS, layout
from towpath.pages.provenance import Provenance
from towpath.pages.report import write_page
from towpath.studies.mailbox_study import MailboxStudy
from towpath.studies.plain_table import PlainTable

_BINS_PER_DECADE = 40


@dataclass(frozen=True)
class Drawing:
    """A figure with its title."""

    title: str
    figure: go.Figure


@dataclass(frozen=True)
class TablesPage:
    """A page of figures and tables.

    Attributes:
        title: its heading.
        command: the command line that made it.
        facts: names and values of what was measured on.
        drawings: the figures, in their order.
        tables: the tables below them.
    """

    title: str
    command: str
    facts: list[tuple[str, str]]
    drawings: list[Drawing]
    tables: list[PlainTable]

    def write(self, path: Path, made_with: Provenance | None = None) -> None:
        """Write it, with `made_with` as its foot; it needs no other file and no network."""
        write_page(
            path, "tables.html.jinja", made_with=made_with, title=self.title,
            command=self.command, facts=self.facts, drawings=self.drawings, tables=self.tables,
        )  # fmt: skip


def write_mailbox_study(
    study: MailboxStudy, title: str, command: str, facts: list[tuple[str, str]], path: Path, *,
    made_with: Provenance | None = None,
) -> None:  # fmt: skip
    """Write the page; it needs no other file and no network.

    `made_with` becomes its foot; by default that is the version of Towpath and the date.
    """
    drawings = [Drawing("One way by iteration, with and without interrupts", series_figure(study))]
    if study.waves:
        drawings.append(Drawing("Two round trips, signals of both nodes", wave_figure(study)))
    drawings.append(Drawing("A round trip", breakdown_figure(study)))
    drawings += [
        Drawing(f"One way {words} interrupts", histogram_figure(study.latencies[words]))
        for words in ("with", "without")
    ]
    drawings += [
        Drawing(f"One way over {name}", sweep_figure(name, rows))
        for name, rows in study.sweeps.items()
        if "one_way_ns" in rows[0]
    ]
    TablesPage(title, command, facts, drawings, study_tables(study)).write(path, made_with)


def series_figure(study: MailboxStudy) -> go.Figure:
    """The time of single iterations, with interrupts on the left and without on the right."""
    figure = make_subplots(
        cols=2, shared_yaxes=True, horizontal_spacing=0.03,
        subplot_titles=("with interrupts", "without"),
    )  # fmt: skip
    for column, words in enumerate(("with", "without"), start=1):
        series = study.latencies[words]["series"]
        figure.add_scatter(
            x=[place for place, _ in series], y=[time_ns for _, time_ns in series],
            mode="markers", marker={"size": 4, "color": CURVE_COLORS[0]}, row=1, col=column,
            hovertemplate="iteration %{x}: %{y:.0f} ns<extra></extra>",
        )  # fmt: skip
    figure.update_layout(layout(height=340))
    figure.update_xaxes(title="iteration", type="linear")
    figure.update_yaxes(type="log")
    figure.update_yaxes(title="one way (ns)", col=1)
    figure.update_layout(showlegend=False)
    return figure


def wave_figure(study: MailboxStudy) -> go.Figure:
    """Signals over cycles, as a logic analyser shows them."""
    figure = go.Figure()
    shown = [row for row in study.waves if len(row["changes"]) > 1]
    end = max(cycle for row in shown for cycle, _ in row["changes"])
    names = []
    for place, row in enumerate(shown):
        names.append(f"{row['signal']}, node {row['node']}")
        cycles = [cycle for cycle, _ in row["changes"]] + [end]
        values = [value for _, value in row["changes"]]
        figure.add_scatter(
            x=cycles, y=[-place + 0.7 * value for value in [*values, values[-1]]],
            mode="lines", line={"shape": "hv", "width": 1, "color": CURVE_COLORS[row["node"]]},
            hovertemplate=f"cycle %{{x}}: {names[-1]}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(layout(height=60 + 26 * len(shown)))
    figure.update_xaxes(title="cycle", type="linear")
    figure.update_yaxes(
        tickvals=[-place + 0.35 for place in range(len(names))], ticktext=names, automargin=True,
        type="linear", showgrid=False,
    )  # fmt: skip
    figure.update_layout(showlegend=False)
    return figure


def histogram_figure(row: dict[str, Any], color: str = CURVE_COLORS[0]) -> go.Figure:
    """How many iterations took how long, both axes logarithmic."""
    times_ns = np.asarray(row["times_ns"])
    exponents = np.floor(np.log10(times_ns) * _BINS_PER_DECADE)
    bins, places = np.unique(exponents, return_inverse=True)
    counts = np.bincount(places, weights=row["counts"])
    edges = 10 ** (bins / _BINS_PER_DECADE)
    widths = edges * (10 ** (1 / _BINS_PER_DECADE) - 1)
    figure = go.Figure()
    figure.add_bar(
        x=edges, y=counts, width=widths, offset=0, marker={"color": color},
        hovertemplate="from %{x:.0f} ns: %{y} iterations<extra></extra>",
    )  # fmt: skip
    figure.update_layout(layout(height=340))
    figure.update_xaxes(title="one way (ns)", type="log")
    figure.update_yaxes(title="iterations", type="log")
    figure.update_layout(bargap=0, showlegend=False)
    return figure


def breakdown_figure(study: MailboxStudy) -> go.Figure:
    """Events of a round trip by cycle, here and as published for the document's cluster."""
    figure = go.Figure()
    ends = [("cycle", "here", "circle"), ("published_cycle", "published", "circle-open")]
    for number, (column, name, symbol) in enumerate(ends[: 1 + study.is_the_documents]):
        figure.add_scatter(
            x=[row[column] for row in study.breakdown],
            y=[row["what"] for row in study.breakdown],
            name=name, mode="markers",
            marker={"symbol": symbol, "size": 9 + 5 * number, "color": CURVE_COLORS[number]},
            hovertemplate="cycle %{x}: %{y}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(layout(height=340))
    figure.update_xaxes(title="cycle", type="linear")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def sweep_figure(name: str, rows: list[dict[str, Any]]) -> go.Figure:
    figure = go.Figure()
    figure.add_scatter(
        x=[row["value"] for row in rows], y=[row["one_way_ns"] for row in rows],
        mode="lines+markers", line={"color": CURVE_COLORS[0]},
        hovertemplate="%{x}: %{y:.0f} ns<extra></extra>",
    )  # fmt: skip
    figure.update_layout(layout(height=340))
    figure.update_xaxes(title=name, type="log")
    figure.update_yaxes(title="one way (ns)", rangemode="tozero")
    figure.update_layout(showlegend=False)
    return figure
