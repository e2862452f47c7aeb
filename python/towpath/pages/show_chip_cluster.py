# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Shows a cluster of chips: as text, or as a drawing of chips, their cores and their links."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Literal, NamedTuple

from towpath.pages import spec_text
from towpath.pages.heat import DARK, heat, heat_scale
from towpath.pages.show_chip import FILLS, HATCHING, LETTER, TEXT_STYLE, legend_of_tiles
from towpath.specs.chip_cluster_spec import ChipClusterSpec, EthernetEnd, EthernetLink

_UNBROKEN = "\N{NO-BREAK SPACE}"  # for a space at which no line is to end


def describe_chip_cluster(spec: ChipClusterSpec) -> str:
    """The cluster as text: its chips, their positions, and the Ethernet cores that each link
    joins.
    """
    kinds = Counter(placed.chip.name for placed in spec.chips)
    reserved = sum(link.is_reserved for link in spec.links)
    facts = {
        "chips": ", ".join(f"{number} {name}" for name, number in kinds.items()),
        "links": _links_in_words(spec),
        "from": spec.source,
    }
    if reserved:
        facts["dispatcher"] = f"takes {reserved} of the links ({spec.dispatcher_source})"
    lines = [f"{spec.name}: {spec.description}", "", *spec_text.facts(facts, 12), ""]
    lines += _chip_table(spec)
    if spec.links:
        lines += ["", *_link_table(spec)]
    return "\n".join(lines + spec_text.notes(spec.notes)) + "\n"


def _links_in_words(spec: ChipClusterSpec) -> str:
    if not spec.links:
        return "none"
    rates = {
        figures.line_rate_gb_per_s.value
        for link in spec.links
        if (figures := spec.chips[link.one.chip].chip.ethernet) is not None
    }
    rate = " or ".join(f"{rate:g}" for rate in sorted(rates))
    return f"{len(spec.links)}, of {rate} GB/s each way"


def _chip_table(spec: ChipClusterSpec) -> list[str]:
    lines = ["chip  kind            x   y  rack  shelf  host   workers  Ethernet in use"]
    for number, placed in enumerate(spec.chips):
        channels = spec.channels_of(number)
        joined = sum(end in spec.link_of_end for end in channels)
        columns, rows = placed.chip.worker_grid()
        lines.append(
            f"{number:>4}  {placed.chip.name[:12]:<12} {placed.x:>4}{placed.y:>4}{placed.rack:>6}"
            f"{placed.shelf:>7}  {'PCIe' if placed.has_host_link else '-':<5}"
            f"{f'{columns} x {rows}':>9}  {joined} of {len(channels)}"
        )
    return lines


def _link_table(spec: ChipClusterSpec) -> list[str]:
    """A line per pair of chips: the channels and their tiles.

    The words of a link are not wrapped.
    """
    lines = ["chips      links: channel (tile) of the one, of the other"]
    for (one, other), links in spec.links_by_pair().items():
        joined = ", ".join(_link_in_words(spec, link) for link in links)
        lines += spec_text.paragraph(joined, f"{f'{one} - {other}':<11}")
    return [line.replace(_UNBROKEN, " ") for line in lines]


def _link_in_words(spec: ChipClusterSpec, link: EthernetLink) -> str:
    ends = (f"E{end.channel} ({spec.core_of(end)})" for end in (link.one, link.other))
    text = " - ".join(ends) + (" for the dispatcher" if link.is_reserved else "")
    return text.replace(" ", _UNBROKEN)


# --- the drawing ------------------------------------------------------------------------------

Side = Literal["left", "right", "up", "down"]

_MARGIN = 28
_TITLE_HEIGHT = 78
_WIDTH_MIN = 700
_HEADER = 28  # height of a card's head: the chip's number, and whether it is on PCIe
_PADDING = 26  # inside a card: half a port and some space
_PORT_WIDTH = 28
_PORT_HEIGHT = 16
_PORT_PITCH = {"left": 21, "right": 21, "up": 34, "down": 34}
_STUB = 14
_STUB_ROOM = {"left": 58, "right": 58, "up": 40, "down": 40}
_LABELLED_TILE_MIN = 14  # smaller ones have no room for a number

_LINK_COLOUR = "#d08a1d"
_RESERVED_COLOUR = "#8a63b8"
_HOST_COLOUR = "#2f6fc4"
_STYLE = (
    TEXT_STYLE + ".chip{font-size:14px;font-weight:600}.kind{font-size:11px;fill:#5c6773}"
    ".port{font-size:10px;text-anchor:middle}.far{font-size:10px;fill:#5c6773}"
    ".channel{text-anchor:middle;fill:#ffffff;font-weight:600}.unused{fill:#8a5a0c}"
    ".host{font-size:10px;text-anchor:middle;fill:#ffffff}"
)


class _Card(NamedTuple):
    """Position and size of a chip in the drawing."""

    x: float
    y: float
    width: float
    height: float


class _Port(NamedTuple):
    """An end of a link, on the edge of its chip."""

    x: float
    y: float
    side: Side
    is_stub: bool  # its link is not drawn; it says where that goes


@dataclass(frozen=True)
class _Layout:
    tile: int  # the side of one
    cards: list[_Card]
    ports: dict[EthernetEnd, _Port]
    width: float
    height: float


def draw_chip_cluster_svg(spec: ChipClusterSpec, load: Mapping[int, float] | None = None) -> str:
    """The cluster as a self-contained SVG: chips at their positions, with their tiles, and links.

    A link between neighbors is a line from port to port. Any other link is a stub at each end with
    the name of the opposite end.

    Args:
        spec: the cluster.
        load: utilization from 0 to 1, of link n from its first end at 2 n and from its other end at
            2 n + 1; colors each link by the busier direction.
    """
    layout = _layout(spec)
    paint = _paint(spec, load)
    width, height = layout.width, layout.height
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" aria-label="{escape(spec.name)}">',
            f"<style>{_STYLE}{DARK}</style><defs>{HATCHING}</defs>",
            f'<rect width="{width:g}" height="{height:g}" rx="10" fill="#ffffff"/>',
            *_title(spec, layout),
            *_wires(spec, layout, paint),
            *(_card(spec, number, layout, paint) for number in range(len(spec.chips))),
            *(_port(spec, end, layout.ports[end], paint) for end in sorted(layout.ports)),
            *_legend(spec, layout, is_loaded=load is not None),
            "</svg>\n",
        )
    )


# --- where things are ---


def _layout(spec: ChipClusterSpec) -> _Layout:
    """All cards have the size of the largest chip, so that rows and columns are straight."""
    tile, gap = _scale(len(spec.chips))
    positions = _positions(spec)
    sides = _sides(spec, positions)
    grids = [placed.chip.grid for placed in spec.chips]
    width = max(grid.width for grid in grids) * tile
    height = max(grid.height for grid in grids) * tile
    for (_, side), ends in _ends_by_side(spec, sides).items():
        needed = len(ends) * _PORT_PITCH[side]
        if side in ("left", "right"):
            height = max(height, needed)
        else:
            width = max(width, needed)
    width, height = width + 2 * _PADDING, height + _HEADER + 2 * _PADDING
    stubs = {side for side, is_stub in sides.values() if is_stub}
    room = {side: _STUB_ROOM[side] if side in stubs else 0 for side in _STUB_ROOM}
    columns, rows = (max(position[axis] for position in positions) + 1 for axis in (0, 1))
    all_width = columns * (width + gap) - gap + room["left"] + room["right"] + 2 * _MARGIN
    left = _MARGIN + room["left"] + max(_WIDTH_MIN - all_width, 0) / 2
    top = _TITLE_HEIGHT + room["up"] + _PORT_HEIGHT
    cards = [
        _Card(left + column * (width + gap), top + row * (height + gap), width, height)
        for column, row in positions
    ]
    bottom = top + rows * (height + gap) - gap + room["down"] + _PORT_HEIGHT
    ports = _ports(spec, sides, cards)
    return _Layout(tile, cards, ports, max(all_width, _WIDTH_MIN), bottom + _legend_height(spec))


def _legend_height(spec: ChipClusterSpec) -> int:
    return 92 if spec.links else 58


def _scale(chips: int) -> tuple[int, int]:
    """The side of a tile and the gap between cards, larger for fewer chips."""
    if chips <= 2:
        return 24, 120
    return (15, 88) if chips <= 8 else (11, 64)


def _positions(spec: ChipClusterSpec) -> list[tuple[int, int]]:
    """Column and row of every chip. Racks and shelves are side by side, and empty columns are
    removed.
    """
    columns = sorted({(chip.rack, chip.shelf, chip.x) for chip in spec.chips})
    rows = sorted({chip.y for chip in spec.chips})
    column_of = {column: number for number, column in enumerate(columns)}
    row_of = {row: number for number, row in enumerate(rows)}
    return [(column_of[chip.rack, chip.shelf, chip.x], row_of[chip.y]) for chip in spec.chips]


def _sides(
    spec: ChipClusterSpec, positions: list[tuple[int, int]]
) -> dict[EthernetEnd, tuple[Side, bool]]:
    """The side of its chip on which each end is drawn, and True if it is a stub."""
    sides = {}
    for link in spec.links:
        for end, other in ((link.one, link.other), (link.other, link.one)):
            sides[end] = _side_towards(positions[end.chip], positions[other.chip])
    return sides


def _side_towards(here: tuple[int, int], there: tuple[int, int]) -> tuple[Side, bool]:
    across, down = there[0] - here[0], there[1] - here[1]
    if down == 0 and abs(across) == 1:
        return ("right" if across > 0 else "left"), False
    if across == 0 and abs(down) == 1:
        return ("down" if down > 0 else "up"), False
    if down == 0:  # round a ring: away from those in between
        return ("left" if across > 0 else "right"), True
    if across == 0:
        return ("up" if down > 0 else "down"), True
    return ("down" if down > 0 else "up"), True


def _ends_by_side(
    spec: ChipClusterSpec, sides: dict[EthernetEnd, tuple[Side, bool]]
) -> dict[tuple[int, Side], list[EthernetEnd]]:
    """The ends on each side of each chip; neighbors have them in the same order."""
    ends: dict[tuple[int, Side], list[EthernetEnd]] = {}
    for link in spec.links:
        for end in (link.one, link.other):
            ends.setdefault((end.chip, sides[end][0]), []).append(end)
    for on_side in ends.values():
        on_side.sort(key=lambda end: (sides[end][1], min(end, spec.connected(end) or end)))
    return ends


def _ports(
    spec: ChipClusterSpec, sides: dict[EthernetEnd, tuple[Side, bool]], cards: list[_Card]
) -> dict[EthernetEnd, _Port]:
    ports = {}
    for (chip, side), ends in _ends_by_side(spec, sides).items():
        card = cards[chip]
        for number, end in enumerate(ends):
            offset = (number - (len(ends) - 1) / 2) * _PORT_PITCH[side]
            if side in ("left", "right"):
                x = card.x if side == "left" else card.x + card.width
                y = card.y + (card.height + _HEADER) / 2 + offset
            else:
                x = card.x + card.width / 2 + offset
                y = card.y if side == "up" else card.y + card.height
            ports[end] = _Port(x, y, side, sides[end][1])
    return ports


# --- what is drawn there ---


def _title(spec: ChipClusterSpec, layout: _Layout) -> list[str]:
    kinds = Counter(placed.chip.name for placed in spec.chips)
    hosts = sum(placed.has_host_link for placed in spec.chips)
    chips = ", ".join(f"{number} {name}" for name, number in kinds.items())
    facts = f"{chips}; {hosts} on PCIe; links: {_links_in_words(spec)}"
    letters = int(layout.width - 2 * _MARGIN) // LETTER
    lines = (spec.name, spec.description, facts)
    return [
        f'<text class="{"title" if y == 36 else "small"}" x="{_MARGIN}" y="{y}">'
        f"{escape(textwrap.shorten(line, letters, placeholder='...'))}</text>"
        for line, y in zip(lines, (36, 56, 73), strict=True)
    ]


def _card(spec: ChipClusterSpec, number: int, layout: _Layout, paint: _Paint) -> str:
    placed, card = spec.chips[number], layout.cards[number]
    place = f"x {placed.x}, y {placed.y}, rack {placed.rack}, shelf {placed.shelf}"
    parts = [
        f'<g class="card"><title>chip {number}: {escape(placed.chip.name)} at {place}</title>'
        f'<rect x="{card.x:g}" y="{card.y:g}" width="{card.width:g}" height="{card.height:g}" '
        f'rx="9" fill="#fbfcfd" stroke="#9aa5b1" stroke-width="1.2"/></g>',
        *_header(spec, number, card),
        *_tiles(spec, number, layout, paint),
    ]
    return "\n".join(parts)


def _header(spec: ChipClusterSpec, number: int, card: _Card) -> list[str]:
    placed = spec.chips[number]
    x, y = card.x + _PADDING, card.y + 31
    parts = [f'<text class="chip" x="{x:g}" y="{y:g}">{number}</text>']
    name = textwrap.shorten(placed.chip.name, 14, placeholder="...")
    x_of_name = x + 9 * len(str(number)) + 7
    parts.append(f'<text class="kind" x="{x_of_name:g}" y="{y:g}">{escape(name)}</text>')
    if placed.has_host_link:
        right = card.x + card.width - _PADDING
        parts.append(
            f'<rect x="{right - 32:g}" y="{y - 12:g}" width="32" height="15" rx="7.5" '
            f'fill="{_HOST_COLOUR}"/>'
            f'<text class="host" x="{right - 16:g}" y="{y - 1:g}">PCIe</text>'
        )
    return parts


def _tiles(spec: ChipClusterSpec, number: int, layout: _Layout, paint: _Paint) -> list[str]:
    """The grid of the chip, in the coordinates of NoC 0, with Ethernet cores by their use."""
    chip, card, side = spec.chips[number].chip, layout.cards[number], layout.tile
    end_at = {spec.core_of(end): end for end in spec.channels_of(number)}
    left = card.x + (card.width - chip.grid.width * side) / 2
    top = card.y + _HEADER + (card.height - _HEADER - chip.grid.height * side) / 2
    parts = []
    for at, kind in chip.tile_kinds().items():
        fill, stroke = FILLS[kind]
        title = f"{at}: {kind}"
        x, y = left + at.x * side, top + at.y * side
        label = ""
        if end := end_at.get(at):
            title += f" E{end.channel}, {_use_of(spec, end)}{paint.words.get(end, '')}"
            fill = paint.colours.get(end, fill)
            if side >= _LABELLED_TILE_MIN:
                unused = "" if end in spec.link_of_end else " unused"
                label = (
                    f'<text class="channel{unused}" x="{x + side / 2 - 0.5:g}" '
                    f'y="{y + side * 0.68:g}" font-size="{side * 0.52:g}">{end.channel}</text>'
                )
        parts.append(
            f'<g class="tile"><title>{title}</title><rect x="{x:g}" y="{y:g}" '
            f'width="{side - 1}" height="{side - 1}" rx="{min(side / 6, 3):.1f}" fill="{fill}" '
            f'stroke="{stroke}" stroke-width="{side / 25:.2g}"/>{label}</g>'
        )
    return parts


def _use_of(spec: ChipClusterSpec, end: EthernetEnd) -> str:
    other = spec.connected(end)
    if other is None:
        return "not connected"
    use = f"joined to E{other.channel} ({spec.core_of(other)}) of chip {other.chip}"
    return use + (" for the dispatcher" if spec.link_of_end[end].is_reserved else "")


@dataclass(frozen=True)
class _Paint:
    """Color of each end of a link, and the text about its load."""

    colours: dict[EthernetEnd, str]
    words: dict[EthernetEnd, str]


def _paint(spec: ChipClusterSpec, load: Mapping[int, float] | None) -> _Paint:
    paint = _Paint({}, {})
    for number, link in enumerate(spec.links):
        colour = _RESERVED_COLOUR if link.is_reserved else _LINK_COLOUR
        if load is not None:
            busy = [load.get(2 * number + way, 0.0) for way in (0, 1)]
            colour = heat(max(busy))
            paint.words[link.one] = f"; busy {busy[0]:.0%} from here, {busy[1]:.0%} to here"
            paint.words[link.other] = f"; busy {busy[1]:.0%} from here, {busy[0]:.0%} to here"
        paint.colours[link.one] = paint.colours[link.other] = colour
    return paint


def _wires(spec: ChipClusterSpec, layout: _Layout, paint: _Paint) -> list[str]:
    parts = []
    for link in spec.links:
        one, other = layout.ports[link.one], layout.ports[link.other]
        if not one.is_stub:
            title = _title_of_end(spec, link.one, paint)
            parts.append(
                f'<g class="wire"><title>{title}</title><path d="M{one.x:g} {one.y:g}'
                f'L{other.x:g} {other.y:g}" {_stroke(link, paint.colours[link.one])}/></g>'
            )
            continue
        for end in (link.one, link.other):
            parts.append(_stub(spec, end, layout.ports[end], paint))
    return parts


def _title_of_end(spec: ChipClusterSpec, end: EthernetEnd, paint: _Paint) -> str:
    return f"{end.chip} E{end.channel}: {_use_of(spec, end)}{paint.words.get(end, '')}"


def _stroke(link: EthernetLink, colour: str) -> str:
    dashes = ' stroke-dasharray="5 4"' if link.is_reserved else ""
    return f'stroke="{colour}" stroke-width="2"{dashes}'


_AWAY = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
_ANCHOR = {"left": "end", "right": "start", "up": "middle", "down": "middle"}


def _stub(spec: ChipClusterSpec, end: EthernetEnd, port: _Port, paint: _Paint) -> str:
    """A short line away from the chip, and the end to which it leads."""
    across, down = _AWAY[port.side]
    start = _PORT_WIDTH / 2 if across else _PORT_HEIGHT / 2
    x, y = port.x + across * (start + _STUB), port.y + down * (start + _STUB)
    text_x, text_y = x + 4 * across, y + (4 if across else 11 if down > 0 else -4)
    return (
        f'<g class="stub"><title>{_title_of_end(spec, end, paint)}</title>'
        f'<path d="M{port.x:g} {port.y:g}L{x:g} {y:g}" '
        f"{_stroke(spec.link_of_end[end], paint.colours[end])}/>"
        f'<text class="far" text-anchor="{_ANCHOR[port.side]}" x="{text_x:g}" y="{text_y:g}">'
        f"{spec.connected(end)}</text></g>"
    )


def _port(spec: ChipClusterSpec, end: EthernetEnd, port: _Port, paint: _Paint) -> str:
    colour = paint.colours[end]
    return (
        f'<g class="port"><title>{end.chip} E{end.channel} ({spec.core_of(end)}): '
        f"{_use_of(spec, end)}{paint.words.get(end, '')}</title>"
        f'<rect x="{port.x - _PORT_WIDTH / 2:g}" y="{port.y - _PORT_HEIGHT / 2:g}" '
        f'width="{_PORT_WIDTH}" height="{_PORT_HEIGHT}" rx="4" fill="#ffffff" '
        f'stroke="{colour}" stroke-width="1.4"/>'
        f'<text class="port" x="{port.x:g}" y="{port.y + 3.5:g}">E{end.channel}</text></g>'
    )


def _legend(spec: ChipClusterSpec, layout: _Layout, *, is_loaded: bool) -> list[str]:
    y = layout.height - _legend_height(spec) + 22
    kinds = {kind for placed in spec.chips for kind in placed.chip.tile_kinds().values()}
    channels = (end for chip in range(len(spec.chips)) for end in spec.channels_of(chip))
    if all(end in spec.link_of_end for end in channels):
        kinds.discard("ethernet")
    labels = {kind: "ethernet, not connected" if kind == "ethernet" else kind for kind in kinds}
    parts = legend_of_tiles(labels, _MARGIN, y)
    x, y = float(_MARGIN), y + 34
    if is_loaded:
        parts += heat_scale(x, y + 4)
        if any(link.is_reserved for link in spec.links):
            text = "dashed: taken by the dispatcher"
            parts.append(f'<text class="small" x="{x + 340:g}" y="{y + 4:g}">{text}</text>')
        return parts
    samples, x = _samples_of_links(spec, x, y)
    parts += samples
    if any(port.is_stub for port in layout.ports.values()):
        text = "3/8: its other end is channel 8 of chip 3"
        parts.append(f'<text class="small" x="{x:g}" y="{y + 4:g}">{text}</text>')
    return parts


def _samples_of_links(spec: ChipClusterSpec, x: float, y: float) -> tuple[list[str], float]:
    """A port and a link of each style in the drawing, and the position of the next text."""
    parts = []
    samples = [
        (EthernetLink(EthernetEnd(0, 0), EthernetEnd(0, 0), is_reserved), text)
        for is_reserved, text in (
            (False, "Ethernet core and link; En is channel n"),
            (True, "taken by the dispatcher"),
        )
        if any(link.is_reserved == is_reserved for link in spec.links)
    ]
    for link, text in samples:
        colour = _RESERVED_COLOUR if link.is_reserved else _LINK_COLOUR
        parts.append(
            f'<rect x="{x:g}" y="{y - 7:g}" width="14" height="14" rx="3" fill="{colour}"/>'
            f'<path d="M{x + 14:g} {y:g}h26" {_stroke(link, colour)}/>'
            f'<text class="small" x="{x + 48:g}" y="{y + 4:g}">{text}</text>'
        )
        x += 66 + LETTER * len(text)
    return parts, x
