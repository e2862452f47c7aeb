# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Positions of the ticks, paths and texts of a drawing, in percent of its area."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from towpath.studies.page import COLORS, Axis, Bars, Curve, Heat, Plot

_HALF_POINT = 3.2  # pixels
_TICKS_MAX = 10
_ROW_PIXELS = 15


@dataclass(frozen=True)
class Path:
    """A path in a square of 1,000 units, which is stretched to the size of the plot.

    Attributes:
        d: the path data of SVG.
        kind: class in the style sheet.
        color: color of the line, or of the area of a bar.
        width: width in pixels.
    """

    d: str
    kind: str
    color: str
    width: float = 1.8


@dataclass(frozen=True)
class Frame:
    """A drawing, ready for the template.

    Attributes:
        height: height of the area, in pixels.
        x_title: title below the area.
        y_title: title above the left edge of the area.
        x_ticks: position and text of each tick.
        y_ticks: position from the top and text of each tick.
        paths: from back to front.
        labels: x, y and text.
        points: x, y and the text shown under the pointer.
        legend: names and colors.
        image: URL of the image of a heat map; its rows and columns are `y_ticks` and `scale`.
        rows: names of a heat map's rows.
        scale: start and end of the x axis of a heat map, and the quantity of its percentages.
        is_dense: True if the texts of rows are small.
    """

    height: int
    x_title: str
    y_title: str
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    paths: list[Path] = field(default_factory=list)
    labels: list[tuple[float, float, str]] = field(default_factory=list)
    points: list[tuple[float, float, str]] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)
    image: str = ""
    rows: Sequence[str] = ()
    scale: tuple[float, float, str] | None = None
    is_dense: bool = False

    @property
    def gutter(self) -> int:
        """The width of the texts to the left of the area, in characters."""
        return max((len(text) for _, text in self.y_ticks), default=0) + 1


class _Scale:
    """Conversion from values to percent of an axis."""

    def __init__(self, axis: Axis, values: Sequence[float], *, from_zero: bool = False):
        finite = [value for value in values if math.isfinite(value)]
        self.axis = axis
        self.is_log = axis.scale in ("log", "size")
        if self.is_log:
            finite = [value for value in finite if value > 0]
        low = min(finite, default=1.0) if axis.low is None else axis.low
        high = max(finite, default=1.0) if axis.high is None else axis.high
        if from_zero and axis.low is None and not self.is_log:
            low = min(low, 0.0)
        self.low, self.high = self._round(low, high)

    def _round(self, low: float, high: float) -> tuple[float, float]:
        """Rounds the ends to ticks."""
        axis = self.axis
        if self.is_log:
            if axis.scale == "size":
                return low / 1.1, max(high, low) * 1.1
            first = low if axis.low is not None else _tick_below(low)
            last = _tick_above(high) if axis.high is None else high
            return first, last if last > first else first * 10
        if high <= low:
            high = low + (abs(low) or 1.0)
        if axis.high is None:
            step = _step(low, high)
            high = step * math.ceil(high / step - 1e-9)
            low = low if axis.low is not None else step * math.floor(low / step + 1e-9)
        return low, high

    def at(self, value: float) -> float:
        """Position of a value in percent from the low end."""
        if self.is_log:
            value = max(value, self.low)
            return 100 * math.log(value / self.low) / math.log(self.high / self.low)
        return 100 * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Positions of ticks in percent with their texts."""
        axis = self.axis
        if axis.ticks:
            return [(self.at(value), text) for value, text in axis.ticks]
        return [(self.at(value), self._text(value)) for value in self._values()]

    def _text(self, value: float) -> str:
        if self.axis.scale == "size":
            return self.axis.text(value)
        if self.axis.scale == "share":
            return f"{100 * value:g} %"
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"

    def _values(self) -> list[float]:
        low, high = self.low, self.high
        if self.axis.scale == "size":
            first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
            stride = max(1, -(-(last - first) // (_TICKS_MAX - 2)))
            return [float(1 << power) for power in range(max(first, 0), last + 1, stride)]
        if self.is_log:
            first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
            steps = (1, 2, 5) if last - first <= 2 else (1,)
            stride = max(1, -(-(last - first) // _TICKS_MAX))
            values = [
                step * 10.0**power for power in range(first, last + 1, stride) for step in steps
            ]
            return [value for value in values if low * 0.999 <= value <= high * 1.001]
        step = _step(low, high)
        count = math.floor((high - low) / step + 1e-9)
        begin = step * math.ceil(low / step - 1e-9)
        return [begin + step * n for n in range(count + 1) if begin + step * n <= high + 1e-9]


def _step(low: float, high: float) -> float:
    """A round distance between ticks, for about six of them.

    >>> _step(0, 23), _step(0, 0.9)
    (5.0, 0.2)
    """
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= rough * 0.999)


def _tick_below(value: float) -> float:
    """The greatest of 1, 2 and 5 times a power of ten that does not exceed a value.

    >>> _tick_below(720), _tick_below(0.1)
    (500.0, 0.1)
    """
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-9))


def _tick_above(value: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below a value."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return min(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))


# --- curves ---------------------------------------------------------------------------------------


def plot_frame(plot: Plot) -> Frame:
    """The frame of curves."""
    x = _Scale(plot.x, [value for curve in plot.curves for value in curve.x])
    y = _Scale(plot.y, [value for curve in plot.curves for value in curve.y], from_zero=True)
    frame = Frame(
        plot.height, plot.x.title, plot.y.title, x.ticks(),
        [(100 - at, text) for at, text in y.ticks()],
    )  # fmt: skip
    for place, curve in enumerate(plot.curves):
        color = curve.color or COLORS[place % len(COLORS)]
        places = [
            (x.at(a), 100 - y.at(b)) if math.isfinite(a) and math.isfinite(b) else None
            for a, b in zip(curve.x, curve.y, strict=True)
        ]
        frame.paths.extend(_curve_paths(curve, places, color))
        frame.points.extend(_texts_at(places, _texts(plot, curve)))
        frame.labels.extend(_texts_at(places, curve.labels))
        if curve.in_legend:
            frame.legend.append((curve.name, color))
    if len(frame.legend) == 1:
        frame.legend.clear()
    return frame


def _texts(plot: Plot, curve: Curve) -> Sequence[str]:
    """The text shown when the pointer is on a point, for each point."""
    if curve.texts is None:
        return ()
    return curve.texts or [
        f"{curve.name}, {plot.x.text(a)}: {plot.y.text(b)}"
        for a, b in zip(curve.x, curve.y, strict=True)
    ]


def _texts_at(
    places: list[tuple[float, float] | None], texts: Sequence[str]
) -> Iterator[tuple[float, float, str]]:
    """The positions with a text."""
    for at, text in zip(places, texts, strict=False):
        if at is not None and text:
            yield (*at, text)


def _curve_paths(curve: Curve, places: list[tuple[float, float] | None], color: str) -> list[Path]:
    found = [at for at in places if at is not None]
    if curve.style == "stem":
        d = "".join(f"M{10 * a:.1f} 1000V{10 * b:.1f}" for a, b in found)
        return [Path(d, "line", color, max(curve.width, 2))]
    paths = []
    if curve.style not in ("points", "square"):
        kind = curve.style if curve.style in ("dash", "dot") else "line"
        paths.append(Path(_line(places, curve.style == "step"), kind, color, curve.width))
    if curve.style in ("plain", "step"):
        return paths
    size = 16.0 if curve.style == "square" else 2 * _HALF_POINT + max(curve.width - 1.8, 0)
    mark = "square" if curve.style == "square" else "point"
    paths.append(Path(_dots(found), mark, color, size))
    hollow = found if curve.style == "open" else [
        at for number, at in enumerate(places) if number in set(curve.hollow) and at is not None
    ]  # fmt: skip
    if hollow:
        paths.append(Path(_dots(hollow), "point", "var(--sheet)", size - 3))
    return paths


def _line(places: list[tuple[float, float] | None], is_step: bool) -> str:
    parts = []
    before = None
    for at in places:
        if at is not None:
            a, b = 10 * at[0], 10 * at[1]
            if before is None:
                parts.append(f"M{a:.1f} {b:.1f}")
            else:
                parts.append(f"H{a:.1f}V{b:.1f}" if is_step else f"L{a:.1f} {b:.1f}")
        before = at
    return "".join(parts)


def _dots(places: Sequence[tuple[float, float]]) -> str:
    return "".join(f"M{10 * a:.1f} {10 * b:.1f}h.01" for a, b in places)


# --- bars and heat --------------------------------------------------------------------------------


def bars_frame(bars: Bars) -> Frame:
    """The frame of horizontal bars."""
    count = len(bars.rows)
    stacked = np.zeros(count)
    drawn = []
    for series in bars.series:
        begins = np.asarray(series.begins, dtype=float) if len(series.begins) else stacked.copy()
        ends = begins + np.asarray(series.lengths, dtype=float)
        if not len(series.begins):
            stacked = ends
        drawn.append((series, begins, ends))
    values = [float(end) for _, begins, ends in drawn for end in (*begins, *ends)]
    x = _Scale(bars.x, values or [0.0], from_zero=True)
    paths, points, legend = [], [], []
    for place, (series, begins, ends) in enumerate(drawn):
        color = series.color or COLORS[place % len(COLORS)]
        thick = 1000 * series.thickness / max(count, 1)
        d = []
        for row, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            if end <= begin:
                continue
            left, right = 10 * x.at(begin), 10 * x.at(end)
            top = 1000 * (row + 0.5) / count - thick / 2
            d.append(f"M{left:.1f} {top:.1f}H{right:.1f}v{thick:.1f}H{left:.1f}z")
            text = f"{bars.rows[row]}, {series.name}: {bars.x.text(float(end - begin))}"
            points.append(((left + right) / 20, 100 * (row + 0.5) / count, text.lstrip(", ")))
        paths.append(Path("".join(d), "bar", color))
        legend.append((series.name, color))
    return Frame(
        max(_ROW_PIXELS * count, 44), bars.x.title, "", x.ticks(), _row_ticks(bars.rows), paths,
        [], points, legend if len(legend) > 1 else [], is_dense=count > 12,
    )  # fmt: skip


def _row_ticks(rows: Sequence[str]) -> list[tuple[float, str]]:
    """A text in the middle of each row, or of some rows if there are many."""
    stride = max(1, len(rows) // 64)
    return [
        (100 * (place + 0.5) / len(rows), name)
        for place, name in enumerate(rows)
        if place % stride == 0
    ]


def heat_frame(heat: Heat) -> Frame:
    """The frame of a heat map; the script reads a percentage from the pixel under the pointer."""
    count = len(heat.rows)
    low, high = heat.x.low or 0.0, heat.x.high or 1.0
    x = _Scale(Axis(heat.x.title, low=low, high=high), [])
    height = max(min(_ROW_PIXELS * count, 420), 3 * count, 44)
    return Frame(
        height, heat.x.title, "", x.ticks(), _row_ticks(heat.rows),
        image=_png(np.asarray(heat.percents)), rows=heat.rows, scale=(low, high, heat.what),
        is_dense=count > 12,
    )  # fmt: skip


def _png(percents: np.ndarray) -> str:
    """Percentages as the URL of an image in one color, with opacity proportional to the value."""
    rows, columns = percents.shape
    pixels = np.empty((rows, 1 + 4 * columns), dtype=np.uint8)
    pixels[:, 0] = 0  # no filter
    for place, value in enumerate((0x3B, 0x74, 0xB8)):
        pixels[:, 1 + place :: 4] = value
    pixels[:, 4::4] = np.rint(255 * np.clip(percents, 0, 100) / 100)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(pixels.tobytes(), 9)),
        (b"IEND", b""),
    ]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"
