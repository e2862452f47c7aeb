# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The verdicts as a page, as CSV and as plain data."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from towpath.reproduce.rules import RULES, SAME, VERDICTS, WITHIN, Verdict
from towpath.reproduce.statements import TITLES
from towpath.studies.page import (
    COLORS,
    Axis,
    Curve,
    Finding,
    Page,
    Picture,
    PlainTable,
    Plot,
    Section,
)

_SEEN_MAX = 220
_NO_BREAK = "\u00a0"
_BAR = 5  # blocks on each side of a difference bar, of 5 % each
_COLUMNS = (
    "document",
    "row",
    "section",
    "says",
    "theirs",
    "condition",
    "ours",
    "difference",
    "verdict",
    "repeats",
    "reason",
    "seen",
    "run",
    "command",
)


@dataclass(frozen=True)
class Report:
    """Verdicts of some statements.

    Attributes:
        verdicts: one per statement, in the order of the documents.
        plots: data of each plot, by document.
    """

    verdicts: Sequence[Verdict]
    plots: Mapping[str, Sequence[Mapping[str, Any]]]

    @property
    def counts(self) -> dict[str, int]:
        """Number of statements by verdict."""
        found = Counter(each.verdict for each in self.verdicts)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def good(self) -> int:
        """Number of statements that are the same or within their tolerance."""
        return self.counts[SAME] + self.counts[WITHIN]

    @property
    def measured(self) -> int:
        """Number of statements that hold by a value of their own, which repeats no other row's."""
        return sum(each.is_good and not each.repeats for each in self.verdicts)

    def rows(self) -> list[dict[str, Any]]:
        """A row of plain data per statement."""
        return [_row(each) for each in self.verdicts]

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        counts = {**self.counts, "good": self.good, "measured": self.measured}
        return {"counts": counts, "rows": self.rows(), "figures": dict(self.plots)}

    def csv(self) -> str:
        """The rows as CSV."""
        text = io.StringIO()
        writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        return text.getvalue()

    def page(self, command: str) -> Page:
        """The verdicts for people, in the order of the documents and their sections."""
        documents = list(dict.fromkeys(each.statement.document for each in self.verdicts))
        sections = [*self._rest(), *(self._section(document) for document in documents)]
        rules = PlainTable(("rule", "condition"), [list(pair) for pair in RULES.items()])
        sections.append(Section("Rules of verdicts", [rules], is_folded=True, in_text=False))
        return Page(
            title="Five documents, statement by statement",
            command=command,
            sections=sections,
            in_short=[Finding("Statements", self._in_short())],
            headline=self._summary(documents),
        )

    def _in_short(self) -> str:
        parts = [f"{count} {verdict}" for verdict, count in self.counts.items() if count]
        repeats = self.good - self.measured
        own = f", {repeats} of them by the value of another row" if repeats else ""
        return f"{self.good} of {len(self.verdicts)} hold{own}: {', '.join(parts)}"

    def _summary(self, documents: Sequence[str]) -> PlainTable:
        lines = []
        for document in documents:
            own = Counter(
                each.verdict for each in self.verdicts if each.statement.document == document
            )
            counts = [str(own[verdict]) for verdict in VERDICTS]
            lines.append([document, TITLES[document], *counts, str(sum(own.values()))])
        return PlainTable(("document", "title", *VERDICTS, "all"), lines)

    def _rest(self) -> Iterator[Section]:
        """The statements that do not hold, with reasons."""
        rest = [each for each in self.verdicts if not each.is_good]
        if rest:
            lines = [
                [
                    each.statement.name,
                    _says(each),
                    each.statement.theirs,
                    ours_text(each),
                    each.verdict,
                    each.reason,
                ]
                for each in rest
            ]
            headings = ("row", "says", "theirs", "ours", "verdict", "reason")
            yield Section("Statements that do not hold", [PlainTable(headings, lines)])

    def _section(self, document: str) -> Section:
        own = [each for each in self.verdicts if each.statement.document == document]
        lines = [_line(each) for each in own]
        headings = (
            "row",
            "section",
            "says",
            "theirs",
            "ours",
            "difference",
            "verdict",
            "seen",
            "command",
        )
        drawings = [_drawing(figure) for figure in self.plots.get(document, ())]
        good = sum(each.is_good for each in own)
        return Section(
            f"{document}: {TITLES[document]}",
            [*drawings, PlainTable(headings, lines)],
            how=f"{good} of {len(own)} statements hold.",
            in_text=len(self.verdicts) <= 3,
        )


def ours_text(verdict: Verdict) -> str:
    """The value of a run as text, with the unit of the document."""
    ours = verdict.ours
    if ours is None:
        return "-"
    if isinstance(ours, bool):
        return "yes" if ours else "no"
    if isinstance(ours, str):
        return ours
    return f"{ours:.5g} {verdict.statement.unit}".strip()


def bar_text(difference: float) -> str:
    """A difference as a bar of blocks, 5 % each, to the left if it is negative.

    >>> bar_text(0.11), bar_text(-0.3)
    ('     │██   ', '█████│     ')
    """
    blocks = min(round(abs(difference) / 0.05), _BAR)
    left = "█" * blocks if difference < 0 else ""
    right = "█" * blocks if difference >= 0 else ""
    return f"{left:>{_BAR}}│{right:<{_BAR}}"


def _row(verdict: Verdict) -> dict[str, Any]:
    statement = verdict.statement
    return {
        "document": statement.document,
        "row": statement.row,
        "section": statement.section,
        "says": statement.says,
        "theirs": statement.theirs,
        "condition": statement.condition,
        "ours": verdict.ours,
        "difference": verdict.difference,
        "verdict": verdict.verdict,
        "repeats": verdict.repeats,
        "reason": verdict.reason,
        "seen": verdict.seen,
        "run": statement.run,
        "command": statement.command,
    }


def _says(verdict: Verdict) -> str:
    """The statement, and the condition of its run."""
    condition = verdict.statement.condition
    return f"{verdict.statement.says} [{condition}]" if condition else verdict.statement.says


def _line(verdict: Verdict) -> list[str]:
    statement, difference = verdict.statement, verdict.difference
    seen = verdict.reason or verdict.seen
    if verdict.repeats:
        seen = f"repeats {verdict.repeats}"
    return [
        str(statement.row),
        statement.section,
        _says(verdict),
        statement.theirs or "-",
        ours_text(verdict),
        ""
        if difference is None
        else f"{bar_text(difference)} {difference:+.1%}".replace(" ", _NO_BREAK),
        verdict.words,
        seen if len(seen) <= _SEEN_MAX else f"{seen[:_SEEN_MAX]} ...",
        statement.command,
    ]


def _drawing(figure: Mapping[str, Any]) -> Plot | Picture:
    if "svg" in figure:
        return Picture(figure["title"], figure["svg"], figure.get("how", ""))
    is_size = figure["x"] in ("packet size", "payload", "size")
    x = Axis(figure["x"], "size" if is_size else figure.get("x_scale", "linear"))
    curves = []
    colors = iter(COLORS * 2)
    color = ""
    for each in figure["curves"]:
        style = each.get("style", "line")
        # Published points have the color of the curve before them.
        color = color if style == "points" and color else next(colors)
        curves.append(Curve(each["name"], each["x"], each["y"], style=style, color=color))
    y = Axis(figure["y"], figure.get("y_scale", "linear"))
    return Plot(figure["title"], x, y, curves, figure.get("how", ""))
