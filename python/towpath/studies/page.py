# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The content of a study as data: a page of sections with findings, tables and plots.

`pages/html.py` makes an HTML file of it, `pages/text.py` the text for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from towpath.specs.sizes import format_size

# Readable on light and dark ground, and told apart by readers who see few colors (Okabe and Ito).
COLORS = (
    "#3b74b8", "#d98324", "#2b9c80", "#b8506c", "#7c66b8", "#58a6c9", "#96793d", "#808890",
)  # fmt: skip
GREY = "rgba(128,138,150,0.45)"


@dataclass(frozen=True)
class PlainTable:
    """Headings and lines of texts.

    Attributes:
        headings: one per column.
        lines: as many texts each.
        title: empty if the section gives one.
        is_folded: whether the page shows it only on request.
    """

    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    title: str = ""
    is_folded: bool = False

    @property
    def are_numeric(self) -> list[bool]:
        """True for each column that holds only numbers, with or without units."""
        columns = zip(self.headings, *self.lines, strict=True)
        return [all(map(_is_number, column[1:])) for column in columns]


def _is_number(cell: str) -> bool:
    begins = not cell or cell in ("-", "N/A") or cell.lstrip("+-")[:1].isdecimal()
    return begins and cell.count(" ") < 2


@dataclass(frozen=True)
class Axis:
    """One axis of a plot.

    Attributes:
        title: with the unit.
        scale: "size" is logarithmic, with ticks at powers of two bytes; "share" is 0 to 1, shown
            in percent.
        ticks: values with their texts; empty: chosen by the values.
        low: where it begins; None: at the least value, or 0.
        high: where it ends; None: at the greatest value.
    """

    title: str = ""
    scale: Literal["linear", "log", "size", "share"] = "linear"
    ticks: Sequence[tuple[float, str]] = ()
    low: float | None = None
    high: float | None = None

    def text(self, value: float) -> str:
        """A value as the reader of this axis expects it."""
        if self.ticks:
            return dict(self.ticks).get(value, f"{value:.4g}")
        if self.scale == "size":
            return format_size(int(value))
        return f"{value:.1%}" if self.scale == "share" else f"{value:.4g}"


@dataclass(frozen=True)
class Curve:
    """Points of a plot; a NaN between two points interrupts the line.

    Attributes:
        name: in the legend.
        x: one value per point.
        y: likewise.
        texts: what a reader sees who points at each; empty: name and values; None: nothing.
        labels: what stands beside each point; empty: nothing.
        style: how the points are drawn; "open" has hollow points on its line, "stem" has a line
            from each point to the axis, "step" has a horizontal line from each point to the next.
        color: empty: the next one of `COLORS`.
        width: of the line, in pixels.
        hollow: numbers of the points that are drawn hollow.
        in_legend: whether the legend names it.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    texts: Sequence[str] | None = ()
    labels: Sequence[str] = ()
    style: Literal["line", "plain", "dash", "dot", "open", "points", "square", "step", "stem"] = (
        "line"
    )
    color: str = ""
    width: float = 1.8
    hollow: Sequence[int] = ()
    in_legend: bool = True


@dataclass(frozen=True)
class Plot:
    """Curves over one pair of axes."""

    title: str
    x: Axis
    y: Axis
    curves: Sequence[Curve]
    how: str = ""
    height: int = 320

    def table(self) -> PlainTable:
        """Every number of it: a line per x, a column per curve."""
        places = sorted({x for curve in self.curves for x in curve.x})
        values = [dict(zip(curve.x, curve.y, strict=True)) for curve in self.curves]
        lines = [
            [self.x.text(x), *(self.y.text(own[x]) if x in own else "" for own in values)]
            for x in places
        ]
        names = [f"{curve.name} ({self.y.title})" for curve in self.curves]
        return PlainTable([self.x.title, *names], lines, self.title)

    def to_dict(self) -> dict[str, Any]:
        """It as plain data for JSON."""
        curves = [{"name": each.name, "x": each.x, "y": each.y} for each in self.curves]
        return {
            "title": self.title, "how": self.how, "x_title": self.x.title, "y_title": self.y.title,
            "curves": curves,
        }  # fmt: skip


@dataclass(frozen=True)
class BarSeries:
    """A bar in each row: where it begins and how long it is."""

    name: str
    lengths: Sequence[float]
    begins: Sequence[float] = ()
    color: str = ""
    thickness: float = 0.7


@dataclass(frozen=True)
class Bars:
    """Horizontal bars in named rows; series without begins are stacked."""

    title: str
    x: Axis
    rows: Sequence[str]
    series: Sequence[BarSeries]
    how: str = ""


@dataclass(frozen=True)
class Heat:
    """Rows of percentages over one axis, as dark as they are high.

    Attributes:
        percents: a sequence of whole numbers from 0 to 100 per row, all of one length.
        what: what a percentage is of: "of its thread blocks move data".
    """

    title: str
    x: Axis
    rows: Sequence[str]
    percents: Sequence[Sequence[int]]
    what: str
    how: str = ""


@dataclass(frozen=True)
class Lanes:
    """A timeline of lanes: one group at a time, which a menu chooses.

    Attributes:
        groups: the spans of each group, as (lane, begin, end, kind, text); kind and text are
            numbers of `kinds` and `texts`.
        kinds: names and colors.
        texts: what a reader sees who points at a span.
        lane: what a lane is: "thread block".
        unit: of begin and end.
        span: where the axis begins and ends.
    """

    title: str
    groups: Mapping[str, Sequence[tuple[int, float, float, int, int]]]
    kinds: Sequence[tuple[str, str]]
    texts: Sequence[str]
    lane: str
    unit: str
    span: tuple[float, float]
    how: str = ""


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG text; no script in it runs."""

    title: str
    svg: str
    how: str = ""


@dataclass(frozen=True)
class Finding:
    """A question and its answer, or a claim, a verdict on it, and the values that it rests on.

    Attributes:
        question: what was asked or claimed.
        answer: the sentence with its values.
        verdict: of a claim: "shown", "refuted", "not tested".
        reason: the mechanism behind it.
        mood: whether it is good news (True), bad (False) or neither.
    """

    question: str
    answer: str
    verdict: str = ""
    reason: str = ""
    mood: bool | None = None

    @property
    def sentence(self) -> str:
        """It in one line."""
        verdict = f" [{self.verdict}]" if self.verdict else ""
        return ": ".join(part for part in (self.question + verdict, self.answer) if part)


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading.
        parts: in their order; plots that follow each other stand side by side.
        how: how it was measured, or how to read it.
        facts: names and values.
        notes: sentences that the reader should know.
        is_folded: whether the page shows it only on request.
        in_text: whether the text for a terminal has it.
    """

    title: str
    parts: Sequence[Part] = ()
    how: str = ""
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    is_folded: bool = False
    in_text: bool = True

    @property
    def tables(self) -> Iterator[PlainTable]:
        """Its tables; those of its plots if it has no others."""
        own = [part for part in self.parts if isinstance(part, PlainTable)]
        yield from own or (part.table() for part in self.parts if isinstance(part, Plot))


Drawing = Plot | Bars | Heat | Lanes | Picture
Part = PlainTable | Drawing | Section


@dataclass(frozen=True)
class Page:
    """The findings of a command.

    Attributes:
        title: one line.
        command: what was typed.
        in_short: the answers, first on the page.
        headline: the table below them.
        how: how to read that.
        facts: names and values of what was measured, and on what.
        sections: the rest.
        related: texts and file names of other pages in the same folder.
    """

    title: str
    command: str
    sections: Sequence[Section]
    in_short: Sequence[Finding] = ()
    headline: PlainTable | None = None
    how: str = ""
    facts: Sequence[tuple[str, str]] = ()
    related: Sequence[tuple[str, str]] = field(default_factory=tuple)
