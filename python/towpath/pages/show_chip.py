# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Shows a chip: as text, with every value and its source, or as a drawing of its grid."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from html import escape

from towpath.pages import spec_text
from towpath.pages.heat import DARK
from towpath.specs.chip_spec import ChipSpec, Coordinate, TileKindName


def describe_chip(spec: ChipSpec) -> str:
    """The chip as text: its tiles and the costs of moving data on it, with the source of each
    value.
    """
    kinds = Counter(spec.tile_kinds().values())
    columns, rows = spec.worker_grid()
    tiles = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    facts = {
        "grid": f"{spec.grid.width} x {spec.grid.height} tiles: {tiles}",
        "workers": f"{columns * rows}, a logical grid of {columns} x {rows}",
        "harvested": f"{_harvested(spec)} ({spec.harvesting.source})",
        "DRAM": _dram_in_words(spec),
        "tiles from": spec.tiles.source,
    }
    lines = [f"{spec.name}: {spec.description}", "", *spec_text.facts(facts, 16), ""]
    return "\n".join(lines + spec_text.figures(spec) + spec_text.notes(spec.notes)) + "\n"


def _harvested(spec: ChipSpec) -> str:
    lines = spec.harvesting.harvested
    if not lines:
        return f"no {spec.harvesting.axis}"
    return f"{spec.harvesting.axis} {', '.join(map(str, lines))}"


def _dram_in_words(spec: ChipSpec) -> str:
    groups, dram = len(spec.tiles.dram), spec.dram
    if not groups:
        return "none"
    channels = groups * dram.channels_per_group.value
    size = channels * dram.channel_bytes.value / 2**30
    rate_gb_per_s = channels * dram.channel_rate_bytes_per_cycle.value * spec.clock_mhz.value / 1000
    return f"{groups} groups, {channels} channels, {size:g} GiB, {rate_gb_per_s:.4g} GB/s"


# --- the drawing ------------------------------------------------------------------------------

_BOX_WIDTH = 44
_BOX_HEIGHT = 32
_GAP = 18
_PITCH_X = _BOX_WIDTH + _GAP
_PITCH_Y = _BOX_HEIGHT + _GAP
_LANE = 6  # the two NoCs pass the middle of a tile at this distance
_MARGIN = 28
_AXIS = 34  # room for stubs and the numbers of rows and columns
_TITLE_HEIGHT = 84
_LEGEND_HEIGHT = 104
_WIDTH_MIN = 700
LETTER = 7  # width of a letter of small text, rather too wide

_NOC_COLOURS = ("#2f6fc4", "#c4572f")
FILLS: dict[TileKindName, tuple[str, str]] = {
    "worker": ("#e3f1d5", "#4d9a1f"),
    "dram": ("#dde9f8", "#2f6fc4"),
    "ethernet": ("#fbecd2", "#d08a1d"),
    "pcie": ("#ece3f5", "#8a63b8"),
    "arc": ("#f8dfe6", "#b8436a"),
    "router_only": ("#f2f4f6", "#aab3bd"),
    "harvested": ("url(#harvested)", "#8d97a2"),
}
_SHORT = {"ethernet": "ETH", "pcie": "PCIe", "arc": "ARC", "router_only": "", "harvested": ""}
TEXT_STYLE = (
    "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#222b36}"
    ".title{font-size:20px;font-weight:600}.small{font-size:12px;fill:#5c6773}"
)
_STYLE = (
    TEXT_STYLE
    + ".tile{font-size:11px;text-anchor:middle}.place{font-size:8.5px;text-anchor:middle;"
    "fill:#5c6773}.axis{font-size:10.5px;text-anchor:middle;fill:#5c6773}"
)
HATCHING = (
    '<pattern id="harvested" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#eceff2"/>'
    '<rect width="2" height="6" fill="#c3cad2"/></pattern>'
)
_ARROWS = "".join(
    f'<marker id="noc{noc}" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" '
    f'orient="auto-start-reverse"><path d="M0 0L6 3L0 6z" fill="{colour}"/></marker>'
    for noc, colour in enumerate(_NOC_COLOURS)
)


def draw_chip_svg(spec: ChipSpec) -> str:
    """The chip's grid as a self-contained SVG, in the coordinates of NoC 0."""
    _, top = _origin(spec)
    width = max(_grid_width(spec) + 2 * (_MARGIN + _AXIS), _WIDTH_MIN)
    height = top + spec.grid.height * _PITCH_Y - _GAP + _AXIS + _LEGEND_HEIGHT
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{escape(spec.name)}">',
            f"<style>{_STYLE}{DARK}</style><defs>{HATCHING}{_ARROWS}</defs>",
            f'<rect width="{width}" height="{height}" rx="10" fill="#ffffff"/>',
            *_title(spec, width),
            *_rings(spec),
            *_axes(spec),
            *_tiles(spec),
            *_legend(spec, height - _LEGEND_HEIGHT + 10),
            "</svg>\n",
        )
    )


def _origin(spec: ChipSpec) -> tuple[int, int]:
    """The upper left corner of the grid; a small grid is centered."""
    spare = max(_WIDTH_MIN - _grid_width(spec) - 2 * (_MARGIN + _AXIS), 0)
    return _MARGIN + _AXIS + spare // 2, _TITLE_HEIGHT + _AXIS


def _grid_width(spec: ChipSpec) -> int:
    return spec.grid.width * _PITCH_X - _GAP


def _corner(spec: ChipSpec, at: Coordinate) -> tuple[int, int]:
    left, top = _origin(spec)
    return left + at.x * _PITCH_X, top + at.y * _PITCH_Y


def _title(spec: ChipSpec, width: int) -> list[str]:
    columns, rows = spec.worker_grid()
    rate_gb_per_s = spec.router.flit_bytes.value * spec.clock_mhz.value / 1000
    facts = (
        f"{columns} x {rows} workers, {_harvested(spec)} harvested, "
        f"{spec.clock_mhz.value / 1000:g} GHz, {rate_gb_per_s:.4g} GB/s per link of a NoC"
    )
    letters = (width - 2 * _MARGIN) // LETTER
    description = textwrap.shorten(spec.description, letters, placeholder="...")
    return [
        f'<text class="title" x="{_MARGIN}" y="36">{escape(spec.name)}</text>',
        f'<text class="small" x="{_MARGIN}" y="56">{escape(description)}</text>',
        f'<text class="small" x="{_MARGIN}" y="73">{escape(facts)}</text>',
    ]


def _rings(spec: ChipSpec) -> list[str]:
    """Every row and column of both NoCs: a line beneath the tiles, an arrow in each gap."""
    lines = []
    last = Coordinate(spec.grid.width - 1, spec.grid.height - 1)
    for y in range(spec.grid.height):
        places = [_corner(spec, Coordinate(x, y)) for x in range(spec.grid.width)]
        middle = places[0][1] + _BOX_HEIGHT // 2
        ends = [left - _GAP for left, _ in places] + [places[last.x][0] + _BOX_WIDTH]
        for noc, lane in ((0, -_LANE), (1, _LANE)):
            lines += [_link(noc, end, middle + lane, _GAP, 0) for end in ends]
    for x in range(spec.grid.width):
        places = [_corner(spec, Coordinate(x, y)) for y in range(spec.grid.height)]
        middle = places[0][0] + _BOX_WIDTH // 2
        ends = [top - _GAP for _, top in places] + [places[last.y][1] + _BOX_HEIGHT]
        for noc, lane in ((0, -_LANE), (1, _LANE)):
            lines += [_link(noc, middle + lane, end, 0, _GAP) for end in ends]
    return lines


def _link(noc: int, x: int, y: int, width: int, height: int) -> str:
    """The gap between two tiles, with an arrow in the direction of its NoC: 0 to the right and
    down.
    """
    end = "end" if noc == 0 else "start"
    return (
        f'<path d="M{x} {y}l{width} {height}" stroke="{_NOC_COLOURS[noc]}" stroke-width="1.2" '
        f'marker-{end}="url(#noc{noc})"/>'
    )


def _axes(spec: ChipSpec) -> list[str]:
    """The numbers of columns above the grid and of rows to its left."""
    left, top = _origin(spec)
    texts = []
    for x in range(spec.grid.width):
        middle = left + x * _PITCH_X + _BOX_WIDTH // 2
        texts.append(f'<text class="axis" x="{middle}" y="{top - _AXIS + 10}">{x}</text>')
    for y in range(spec.grid.height):
        middle = top + y * _PITCH_Y + _BOX_HEIGHT // 2
        texts.append(f'<text class="axis" x="{left - _AXIS + 6}" y="{middle + 4}">{y}</text>')
    return texts


def _tiles(spec: ChipSpec) -> list[str]:
    columns, _ = spec.worker_grid()
    logical = {at: divmod(n, columns)[::-1] for n, at in enumerate(spec.workers())}
    group_of = {at: n for n, group in enumerate(spec.tiles.dram) for at in group}
    boxes = []
    for at, kind in spec.tile_kinds().items():
        title, label = f"{at}: {kind}", _SHORT.get(kind, "")
        if at in logical:
            label = "{},{}".format(*logical[at])
            title += f", logical ({label})"
        elif at in group_of:
            label = f"D{group_of[at]}"
            title += f" of group {group_of[at]}"
        boxes.append(_box(spec, at, kind, label, title))
    return boxes


def _box(spec: ChipSpec, at: Coordinate, kind: TileKindName, label: str, title: str) -> str:
    x, y = _corner(spec, at)
    fill, stroke = FILLS[kind]
    middle = x + _BOX_WIDTH // 2
    text = f'<text class="tile" x="{middle}" y="{y + 15}">{label}</text>' if label else ""
    place_y = y + (26 if label else 20)
    return (
        f'<g><title>{title}</title><rect x="{x}" y="{y}" width="{_BOX_WIDTH}" '
        f'height="{_BOX_HEIGHT}" rx="4" fill="{fill}" stroke="{stroke}"/>{text}'
        f'<text class="place" x="{middle}" y="{place_y}">{at}</text></g>'
    )


def legend_of_tiles(labels: Mapping[TileKindName, str], left: float, top: float) -> list[str]:
    """A row of samples, one for each kind of tile that has a label."""
    parts = []
    for kind, (fill, stroke) in FILLS.items():
        if kind in labels:
            parts.append(
                f'<rect x="{left:g}" y="{top:g}" width="14" height="14" rx="3" fill="{fill}" '
                f'stroke="{stroke}"/>'
                f'<text class="small" x="{left + 20:g}" y="{top + 12:g}">{labels[kind]}</text>'
            )
            left += 38 + LETTER * len(labels[kind])
    return parts


def _legend(spec: ChipSpec, top: int) -> list[str]:
    kinds = Counter(spec.tile_kinds().values())
    labels = {kind: f"{number} {kind}" for kind, number in kinds.items()}
    parts = legend_of_tiles(labels, _MARGIN, top)
    ways = ("to the right, then down", "up, then to the left")
    for noc, way in enumerate(ways):
        y = top + 34 + 20 * noc
        parts.append(_link(noc, _MARGIN, y, _GAP, 0))
        text = f"NoC {noc}: {way}; every row and column is a ring"
        parts.append(f'<text class="small" x="{_MARGIN + 28}" y="{y + 4}">{text}</text>')
    text = "in a tile: a worker's place in the logical grid, or its kind; below it, its place x-y"
    parts.append(f'<text class="small" x="{_MARGIN}" y="{top + 78}">{text}</text>')
    return parts
