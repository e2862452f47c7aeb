# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The content of a study as data: a page of sections with findings, tables and plots.

`pages/html.py` converts it to an HTML file, and `pages/text.py` to text for a terminal.
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
        lines: texts, one per heading.
        title: empty if the section has a title.
        is_folded: True if the page shows it only on request.
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
        title: title with the unit.
        scale: "size" is logarithmic, with ticks at powers of two bytes; "share" is 0 to 1, shown in
            percent.
        ticks: values with their texts; empty: derived from the values.
        low: start of the axis; None: at the least value, or 0.
        high: end of the axis; None: at the greatest value.
    """

    title: str = ""
    scale: Literal["linear", "log", "size", "share"] = "linear"
    ticks: Sequence[tuple[float, str]] = ()
    low: float | None = None
    high: float | None = None

    def text(self, value: float) -> str:
        """A value in the format of this axis."""
        if self.ticks:
            return dict(self.ticks).get(value, f"{value:.4g}")
        if self.scale == "size":
            return format_size(int(value))
        return f"{value:.1%}" if self.scale == "share" else f"{value:.4g}"


@dataclass(frozen=True)
class Curve:
    """Points of a plot; a NaN between two points interrupts the line.

    Attributes:
        name: name in the legend.
        x: one value per point.
        y: one value per point.
        texts: text shown under the pointer at each point; empty: name and values; None: nothing.
        labels: text next to each point; empty: nothing.
        style: style of the points; "open" has hollow points on its line, "stem" has a line from
            each point to the axis, "step" has a horizontal line from each point to the next.
        color: color; empty: the next one of `COLORS`.
        width: width of the line, in pixels.
        hollow: numbers of the points that are drawn hollow.
        in_legend: True if it is in the legend.
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
        """Every value of the plot: a line per x, a column per curve."""
        places = sorted({x for curve in self.curves for x in curve.x})
        values = [dict(zip(curve.x, curve.y, strict=True)) for curve in self.curves]
        lines = [
            [self.x.text(x), *(self.y.text(own[x]) if x in own else "" for own in values)]
            for x in places
        ]
        names = [f"{curve.name} ({self.y.title})" for curve in self.curves]
        return PlainTable([self.x.title, *names], lines, self.title)

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        curves = [{"name": each.name, "x": each.x, "y": each.y} for each in self.curves]
        return {
            "title": self.title, "how": self.how, "x_title": self.x.title, "y_title": self.y.title,
            "curves": curves,
        }  # fmt: skip


@dataclass(frozen=True)
class BarSeries:
    """A bar in each row: its start and its length."""

    name: str
    lengths: Sequence[float]
    begins: Sequence[float] = ()
    color: str = ""
    thickness: float = 0.7


@dataclass(frozen=True)
class Bars:
    """Horizontal bars in named rows; series without starts are stacked."""

    title: str
    x: Axis
    rows: Sequence[str]
    series: Sequence[BarSeries]
    how: str = ""


@dataclass(frozen=True)
class Heat:
    """Rows of percentages over one axis, with darkness proportional to the value.

    Attributes:
        percents: a sequence of whole numbers from 0 to 100 per row, all of the same length.
        what: the quantity of a percentage: "of its thread blocks move data".
    """

    title: str
    x: Axis
    rows: Sequence[str]
    percents: Sequence[Sequence[int]]
    what: str
    how: str = ""


@dataclass(frozen=True)
class Lanes:
    """A timeline of lanes, with a menu that selects one group at a time.

    Attributes:
        groups: the spans of each group, as (lane, begin, end, kind, text); kind and text are
            numbers of `kinds` and `texts`.
        kinds: names and colors.
        texts: texts shown under the pointer.
        lane: the object of a lane: "thread block".
        unit: unit of begin and end.
        span: start and end of the axis.
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
    """A drawing as SVG text, in which scripts do not run."""

    title: str
    svg: str
    how: str = ""


@dataclass(frozen=True)
class Finding:
    """A question and its answer, or a claim with a verdict and the values behind it.

    Attributes:
        question: the question or claim.
        answer: the sentence with its values.
        verdict: verdict on a claim: "shown", "refuted", "not tested".
        reason: the mechanism behind it.
        mood: True for good news, False for bad news, None for neither.
    """

    question: str
    answer: str
    verdict: str = ""
    reason: str = ""
    mood: bool | None = None

    @property
    def sentence(self) -> str:
        """Returns it as one line."""
        verdict = f" [{self.verdict}]" if self.verdict else ""
        return ": ".join(part for part in (self.question + verdict, self.answer) if part)


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: heading of the section.
        parts: parts in order; consecutive plots are side by side.
        how: method of the measurement, or advice for reading it.
        facts: names and values.
        notes: sentences for the reader.
        is_folded: True if the page shows it only on request.
        in_text: True if the text for a terminal contains it.
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
        """The tables of the section, or the tables of its plots if it has none."""
        own = [part for part in self.parts if isinstance(part, PlainTable)]
        yield from own or (part.table() for part in self.parts if isinstance(part, Plot))


Drawing = Plot | Bars | Heat | Lanes | Picture
Part = PlainTable | Drawing | Section


@dataclass(frozen=True)
class Page:
    """The findings of a command.

    Attributes:
        title: title in one line.
        command: the given command.
        in_short: the answers, at the top of the page.
        headline: the table below them.
        how: advice for reading the table.
        facts: names and values of the measurement and its subject.
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
