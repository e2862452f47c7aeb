# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Shows a machine: as text, with every value and its source, or as a drawing."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from towpath.pages import spec_text
from towpath.pages.heat import DARK, heat, heat_scale
from towpath.specs.layout import NETWORK, Layout, PlacedWire
from towpath.specs.machine_spec import KernelCost, LinkType, MachineSpec
from towpath.specs.spec_model import Quantity


def describe(spec: MachineSpec) -> str:
    """The machine as text: its parts, its links and its costs, with the source of each value."""
    layout = spec.layout()
    host = [device for device in layout.devices if device.host == 0]
    kinds = Counter(device.kind for device in host)
    outside = Counter(device.kind for device in layout.devices if device.host == NETWORK)
    lines = [f"{spec.name}: {spec.description}", ""]
    lines += [f"  {'hosts':<16}{spec.host_count}", f"  {'ranks':<16}{spec.ranks}"]
    lines += [f"  {'in each host':<16}{_counted(kinds)}"]
    if outside:
        lines += [f"  {'between hosts':<16}{_counted(outside)}"]
    costs = [("GPU cost", _cost_rows(spec))]
    if len(kinds_of_hosts := spec.host_kinds()) > 1:
        costs = [(f"GPU cost in hosts of {kind.name}", _cost_rows(kind)) for kind in kinds_of_hosts]
    for title, rows in (("links", _link_rows(spec, layout)), *costs):
        lines += ["", f"{title}"]
        for heading, figures in rows:
            lines.append(f"  {heading}")
            for name, figure in figures:
                lines += _row(name, figure)
    return "\n".join(lines + spec_text.notes(spec.notes)) + "\n"


Rows = list[tuple[str, list[tuple[str, "Quantity[float]"]]]]


def _link_rows(spec: MachineSpec, layout: Layout) -> Rows:
    rows: Rows = []
    wires = Counter((wire.link_type, wire.parallel) for wire in layout.wires)
    for name, link_type in spec.link_types.items():
        used = [
            f"{number} wires of {link_type.rate_gb_per_s.value * parallel:g} GB/s"
            for (used_name, parallel), number in wires.items()
            if used_name == name
        ]
        heading = f"{name} ({link_type.kind}): {', '.join(used) or 'not used'}"
        figures = [
            ("rate_gb_per_s", link_type.rate_gb_per_s),
            ("latency_ns", link_type.latency_ns),
            ("message_overhead_ns", link_type.message_overhead_ns),
        ]
        rows.append((heading, figures))
    return rows


_OPTIONAL_COSTS = (
    "copy_rate_gb_per_s",
    "forward_rate_gb_per_s",
    "adapter_rate_gb_per_s",
    "adapter_overhead_ns",
    "start_overhead_ns",
    "overlap_ns",
)
_SWITCH_COSTS = (
    "in_switch_rate_gb_per_s",
    "in_switch_stage_ns",
    "in_switch_copy_rate_gb_per_s",
)


def _cost_rows(spec: MachineSpec) -> Rows:
    cost = spec.gpu_cost
    rows: Rows = [("per run", [("launch_ns", cost.launch_ns)])]
    if cost.in_switch_reduction:
        figures = [
            (name, figure) for name in _SWITCH_COSTS if (figure := getattr(cost, name)) is not None
        ]
        rows.append(("through a switch that combines and copies", figures))
    for name, protocol in (("simple", cost.simple), ("ll", cost.ll), ("ll128", cost.ll128)):
        heading = f"{name}, {'its flag follows a fence' if protocol.fences else 'without a fence'}"
        figures = [
            ("block_rate_gb_per_s", protocol.block_rate_gb_per_s),
            ("send_overhead_ns", protocol.send_overhead_ns),
            ("receive_overhead_ns", protocol.receive_overhead_ns),
        ]
        figures += [
            (name, figure)
            for name in _OPTIONAL_COSTS
            if (figure := getattr(protocol, name)) is not None
        ]
        rows.append((heading, figures))
    if cost.kernel is not None:
        rows.append((_kernel_heading(cost.kernel), _quantities_of(cost.kernel)))
    return rows


def _kernel_heading(kernel: KernelCost) -> str:
    initiator = "threads of the GPU" if kernel.gpu_initiated_adapters else "proxies of the CPU"
    return f"kernel; {initiator} hand puts to adapters"


def _quantities_of(block: KernelCost) -> list[tuple[str, Quantity[float]]]:
    named = ((name, getattr(block, name)) for name in type(block).model_fields)
    return [(name, value) for name, value in named if isinstance(value, Quantity)]


def _row(name: str, figure: Quantity[float]) -> list[str]:
    return spec_text.paragraph(figure.source, f"    {name:<22}{figure.value:>9g}  ")


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in kinds.items())


# --- the drawing ------------------------------------------------------------------------------

_HOSTS_DRAWN = 4
_GPUS_DRAWN = 16
_COLUMN = 46
_BOX_WIDTH = 38
_BOX_HEIGHT = 26
_ROW = 76
_MARGIN = 28
_HOST_GAP = 22
_HOST_PADDING = 18
_MORE_WIDTH = 150
_WIDTH_MIN = 440
_TITLE_HEIGHT = 74
_LEGEND_ROW = 22

_LINK_COLOURS = {"nvlink": "#4d9a1f", "pcie": "#d08a1d", "network": "#2f6fc4", "socket": "#8a63b8"}
_FILLS = {
    "gpu": ("#e3f1d5", "#4d9a1f"),
    "nvswitch": ("#cfe6b8", "#4d9a1f"),
    "nic": ("#dde9f8", "#2f6fc4"),
    "network_switch": ("#c6dbf4", "#2f6fc4"),
    "pcie_bridge": ("#fbecd2", "#d08a1d"),
    "cpu": ("#ece3f5", "#8a63b8"),
}
_STYLE = (
    "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#222b36}"
    ".title{font-size:20px;font-weight:600}.small{font-size:12px;fill:#5c6773}"
    ".box{font-size:10.5px;text-anchor:middle}.host{font-size:12px;font-weight:600}"
    "path.wire{fill:none;stroke-linecap:round}path.wire:hover{stroke:#111}"
)


class _Point(NamedTuple):
    x: float
    y: float


@dataclass
class _Canvas:
    """The drawing so far. Positions are the centers of boxes, by device number."""

    at: dict[int, _Point] = field(default_factory=dict)
    width_of: dict[int, float] = field(default_factory=dict)
    frames: list[str] = field(default_factory=list)
    width: float = 0
    height: float = 0
    more: _Point | None = None  # where the hosts that are not drawn are joined to the leaves


def draw_svg(spec: MachineSpec, load: Mapping[int, float] | None = None) -> str:
    """The machine as a self-contained SVG, with at most the first four hosts.

    Args:
        spec: the machine.
        load: utilization from 0 to 1 by link number, in the order of `Machine.links`; colors each
            wire by the busier of its two directions instead of by its kind.
    """
    layout = spec.layout()
    canvas = _Canvas()
    _place_hosts(spec, layout, canvas)
    _place_fabric(layout, canvas)
    wires = [*_wires_of_more(layout, canvas), *_wires(spec, layout, canvas, load)]
    boxes = [_box(layout, device, canvas) for device in canvas.at]
    legend = _legend(spec, layout, canvas, load)
    width, height = round(canvas.width), round(canvas.height)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{escape(spec.name)}">',
            f"<style>{_STYLE}{DARK}</style>",
            f'<rect width="{width}" height="{height}" rx="10" fill="#ffffff"/>',
            *_title(spec, canvas),
            *canvas.frames,
            *wires,
            *boxes,
            *legend,
            "</svg>\n",
        )
    )


def _rows_of_host(layout: Layout, host: int) -> list[list[int]]:
    """The devices of a host in rows from top to bottom: NICs, CPUs, bridges by depth, GPUs,
    NVSwitch.
    """
    here = [n for n, device in enumerate(layout.devices) if device.host == host]
    by_kind: dict[str, list[int]] = {}
    for device in here:
        by_kind.setdefault(layout.devices[device].kind, []).append(device)
    depths: dict[int, list[int]] = {}
    for bridge, depth in _bridge_depths(layout, set(here)).items():
        depths.setdefault(depth, []).append(bridge)
    bridges = [depths[depth] for depth in sorted(depths)]
    gpus = by_kind.get("gpu", [])[:_GPUS_DRAWN]
    rows = [by_kind.get("nic", []), by_kind.get("cpu", []), *bridges, gpus]
    if len(gpus) < len(by_kind.get("gpu", [])):
        own = _serving(layout, set(here), gpus)
        rows = [[device for device in row if device in own] for row in rows]
    rows.append(by_kind.get("nvswitch", []))
    return [row for row in rows if row]


def _serving(layout: Layout, within: set[int], gpus: list[int]) -> set[int]:
    """These GPUs, with the bridges, adapters and CPUs to which they are joined."""
    near = _neighbours(layout, within)
    found = set(gpus)
    frontier = list(gpus)
    while frontier:
        device = frontier.pop()
        kind = layout.devices[device].kind
        for other in near[device]:
            other_kind = layout.devices[other].kind
            is_way = other_kind in ("pcie_bridge", "nic", "cpu") and kind not in ("nic", "cpu")
            if (is_way or (kind == "cpu" and other_kind == "nic")) and other not in found:
                found.add(other)
                frontier.append(other)
    return found


def _neighbours(layout: Layout, within: set[int]) -> dict[int, list[int]]:
    near: dict[int, list[int]] = {device: [] for device in within}
    for wire in layout.wires:
        if wire.a in within and wire.b in within:
            near[wire.a].append(wire.b)
            near[wire.b].append(wire.a)
    return near


def _bridge_depths(layout: Layout, within: set[int]) -> dict[int, int]:
    """The number of bridges from each PCIe bridge up to its CPU."""
    near = _neighbours(layout, within)
    frontier = [device for device in within if layout.devices[device].kind == "cpu"]
    depths: dict[int, int] = {}
    depth = 0
    while frontier:
        below = sorted({n for device in frontier for n in near[device]} - depths.keys())
        frontier = [n for n in below if layout.devices[n].kind == "pcie_bridge"]
        depths.update(dict.fromkeys(frontier, depth))
        depth += 1
    orphans = (n for n in within if layout.devices[n].kind == "pcie_bridge" and n not in depths)
    depths.update(dict.fromkeys(orphans, 0))
    return depths


def _columns(layout: Layout, rows: list[list[int]]) -> dict[int, float]:
    """The column of each device: GPUs one by one, and other devices by their neighbors."""
    row_of = {device: number for number, row in enumerate(rows) for device in row}
    near = _neighbours(layout, set(row_of))
    kind = {device: layout.devices[device].kind for device in row_of}
    of_kind = defaultdict(list)
    for device in sorted(row_of):
        of_kind[kind[device]].append(device)
    nics = of_kind["nic"]
    columns: dict[int, float] = {gpu: number for number, gpu in enumerate(of_kind["gpu"])}
    inner = [row for row in reversed(rows) if kind[row[0]] in ("pcie_bridge", "cpu")]

    def is_child(device: int, other: int) -> bool:
        return row_of[other] > row_of[device] or kind[other] == "nic"

    children = {
        device: [n for n in near[device] if is_child(device, n)] for row in inner for device in row
    }
    _centre_over_children(columns, children)
    _place_beside_parents(columns, nics, near)
    _centre_over_children(columns, children)
    for row in rows:
        columns.update(_spread({device: columns.get(device, 0) for device in row}))
    first = min(columns.values())
    return {device: column - first for device, column in columns.items()}


def _centre_over_children(columns: dict[int, float], children: dict[int, list[int]]) -> None:
    """Moves devices, in their order, to the middle of their children that have a column."""
    for device, below in children.items():
        placed = [columns[child] for child in below if child in columns]
        if placed:
            columns[device] = sum(placed) / len(placed)


def _place_beside_parents(
    columns: dict[int, float], nics: list[int], near: dict[int, list[int]]
) -> None:
    """Places adapters around the middle of their parents, or at the end if they have none."""
    parents = {nic: tuple(n for n in near[nic] if n in columns) for nic in nics}
    for nic in nics:
        if parents[nic]:
            siblings = [other for other in nics if parents[other] == parents[nic]]
            middle = sum(columns[n] for n in parents[nic]) / len(parents[nic])
            columns[nic] = middle + siblings.index(nic) - (len(siblings) - 1) / 2
        else:
            columns[nic] = max(columns.values()) + 1


def _spread(wanted: dict[int, float]) -> dict[int, float]:
    """Keeps the order of the wanted positions but moves neighbors at least one column apart."""
    placed: dict[int, float] = {}
    last = float("-inf")
    for device in sorted(wanted, key=lambda device: (wanted[device], device)):
        last = placed[device] = max(wanted[device], last + 1)
    return placed


def _place_hosts(spec: MachineSpec, layout: Layout, canvas: _Canvas) -> None:
    has_fabric = any(device.host == NETWORK for device in layout.devices)
    has_spine = any(_is_spine(device.name) for device in layout.devices)
    top = _TITLE_HEIGHT + _MARGIN + (_ROW * 1.35 * has_fabric) + (_ROW * has_spine)
    x = float(_MARGIN)
    bottom = top
    for host in range(min(spec.host_count, _HOSTS_DRAWN)):
        rows = _rows_of_host(layout, host)
        columns = _columns(layout, rows)
        count = max(columns.values()) + 1
        width = max(count * _COLUMN + 2 * _HOST_PADDING, 120)
        for number, row in enumerate(rows):
            y = top + _HOST_PADDING + 16 + number * _ROW
            for device in row:
                is_wide = layout.devices[device].kind == "nvswitch"
                left = x + (width - count * _COLUMN) / 2
                own = left + (columns[device] + 0.5) * _COLUMN
                canvas.at[device] = _Point(x + width / 2 if is_wide else own, y)
                canvas.width_of[device] = width - 2 * _HOST_PADDING if is_wide else _BOX_WIDTH
        arcs = _arc_room(layout, rows)
        height = _HOST_PADDING + 16 + (len(rows) - 1) * _ROW + 54 + arcs
        hidden = spec.gpus_per_host - _GPUS_DRAWN
        label = f"host {host}" + (f", {hidden} more GPUs not drawn" if hidden > 0 else "")
        canvas.frames.append(_frame((x, top), (width, height), label, dashed=False))
        bottom = max(bottom, top + height)
        x += width + _HOST_GAP
    more = spec.host_count - _HOSTS_DRAWN
    if more > 0:
        label = f"… {more} more host{'s' if more > 1 else ''}"
        canvas.frames.append(_frame((x, top), (_MORE_WIDTH, bottom - top), label, dashed=True))
        canvas.more = _Point(x + _MORE_WIDTH / 2, top)
        x += _MORE_WIDTH + _HOST_GAP
    canvas.width = max(x - _HOST_GAP + _MARGIN, _WIDTH_MIN)
    canvas.height = bottom + _MARGIN


def _arc_room(layout: Layout, rows: list[list[int]]) -> float:
    """Height of the arcs below the GPUs of a host."""
    gpus = next((row for row in rows if layout.devices[row[0]].kind == "gpu"), [])
    shown = set(gpus)
    spans = [
        abs(gpus.index(wire.a) - gpus.index(wire.b))
        for wire in layout.wires
        if wire.a in shown and wire.b in shown
    ]
    return _sag(max(spans)) if spans else 0


def _sag(span: float) -> float:
    return 14 + 11 * span


def _frame(at: tuple[float, float], size: tuple[float, float], label: str, *, dashed: bool) -> str:
    (x, y), (width, height) = at, size
    dash = ' stroke-dasharray="5 5"' if dashed else ""
    fill = "#fbfcfd" if dashed else "#f6f8fa"
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="10" '
        f'fill="{fill}" stroke="#c9d1da"{dash}/>'
        f'<text class="host" x="{x + 14:.0f}" y="{y + height - 12:.0f}">{escape(label)}</text>'
    )


def _place_fabric(layout: Layout, canvas: _Canvas) -> None:
    outside = [n for n, device in enumerate(layout.devices) if device.host == NETWORK]
    leaves = [n for n in outside if not _is_spine(layout.devices[n].name)]
    spines = [n for n in outside if _is_spine(layout.devices[n].name)]
    y = _TITLE_HEIGHT + _MARGIN / 2
    if len(spines) == 1:
        canvas.at[spines[0]] = _Point(canvas.width / 2, y)
        canvas.width_of[spines[0]] = min(canvas.width * 0.4, 320)
    else:
        _place_in_row(spines, y, canvas)
    _place_in_row(leaves, y + _ROW * bool(spines), canvas)


def _is_spine(name: str) -> bool:
    return name.startswith("spine")


def _place_in_row(switches: list[int], y: float, canvas: _Canvas) -> None:
    gap = min((canvas.width - 2 * _MARGIN) / max(len(switches), 1), 120)
    start = canvas.width / 2 - gap * (len(switches) - 1) / 2
    for number, switch in enumerate(switches):
        canvas.at[switch] = _Point(start + gap * number, y)
        canvas.width_of[switch] = min(gap - 6, 64)


def _wires(
    spec: MachineSpec, layout: Layout, canvas: _Canvas, load: Mapping[int, float] | None
) -> list[str]:
    """Every wire between drawn devices, the thickest first so that thin wires stay visible."""
    drawn = [
        (number, wire)
        for number, wire in enumerate(layout.wires)
        if wire.a in canvas.at and wire.b in canvas.at
    ]
    drawn.sort(key=lambda pair: -_rate(spec, pair[1]))
    return [
        _wire(spec, layout, canvas, wire, None if load is None else _busier_way(load, number))
        for number, wire in drawn
    ]


def _busier_way(load: Mapping[int, float], wire: int) -> float:
    return max(load.get(2 * wire, 0.0), load.get(2 * wire + 1, 0.0))


def _rate(spec: MachineSpec, wire: PlacedWire) -> float:
    return spec.link_types[wire.link_type].rate_gb_per_s.value * wire.parallel


def _thickness(rate_gb_per_s: float) -> float:
    return min(0.8 + rate_gb_per_s**0.5 / 6, 7)


def _wire(
    spec: MachineSpec,
    layout: Layout,
    canvas: _Canvas,
    wire: PlacedWire,
    busy: float | None,
) -> str:
    link_type = spec.link_types[wire.link_type]
    rate = _rate(spec, wire)
    names = [layout.devices[device].name for device in (wire.a, wire.b)]
    title = f"{names[0]} to {names[1]}: {wire.link_type}, {rate:.4g} GB/s"
    title += f", {link_type.latency_ns.value:g} ns"
    colour = _LINK_COLOURS[link_type.kind]
    if busy is not None:
        colour = heat(busy)
        title += f", {busy:.0%} busy"
    return (
        f'<path class="wire" d="{_path(layout, canvas, wire)}" stroke="{colour}" '
        f'stroke-width="{_thickness(rate):.1f}" stroke-opacity="0.8">'
        f"<title>{escape(title)}</title></path>"
    )


def _path(layout: Layout, canvas: _Canvas, wire: PlacedWire) -> str:
    upper, lower = sorted((wire.a, wire.b), key=lambda device: canvas.at[device].y)
    start, end = canvas.at[upper], canvas.at[lower]
    half = _BOX_HEIGHT / 2
    if start.y == end.y:  # in one row: an arc, below GPUs and above all else
        way = 1 if layout.devices[upper].kind == "gpu" else -0.4
        sag = _sag(abs(start.x - end.x) / _COLUMN) * way * 1.25
        sag = max(sag, -1.2 * _ROW)  # within the rows above
        y = start.y + (half if way > 0 else -half)
        return _curve(_Point(start.x, y), _Point(end.x, y), y + sag)
    x = start.x
    if canvas.width_of[upper] > _BOX_WIDTH * 2:  # wires leave a wide box towards where they go
        reach = canvas.width_of[upper] / 2 - 14
        x += min(max((end.x - start.x) * 0.35, -reach), reach)
    target = _Point(x if layout.devices[lower].kind == "nvswitch" else end.x, end.y - half)
    return _curve(_Point(x, start.y + half), target, (start.y + end.y) / 2)


def _curve(start: _Point, end: _Point, bend_y: float) -> str:
    return (
        f"M{start.x:.1f} {start.y:.1f}C{start.x:.1f} {bend_y:.1f} "
        f"{end.x:.1f} {bend_y:.1f} {end.x:.1f} {end.y:.1f}"
    )


def _wires_of_more(layout: Layout, canvas: _Canvas) -> list[str]:
    """A faint wire from each leaf to the hosts outside the drawing."""
    if canvas.more is None:
        return []
    style = f'stroke="{_LINK_COLOURS["network"]}" stroke-opacity="0.35" stroke-dasharray="3 4"'
    paths = []
    for device, at in canvas.at.items():
        if layout.devices[device].host == NETWORK and not _is_spine(layout.devices[device].name):
            start = _Point(at.x, at.y + _BOX_HEIGHT / 2)
            bend_y = (start.y + canvas.more.y) / 2
            paths.append(f'<path class="wire" d="{_curve(start, canvas.more, bend_y)}" {style}/>')
    return paths


def _box(layout: Layout, device: int, canvas: _Canvas) -> str:
    placed = layout.devices[device]
    at, width = canvas.at[device], canvas.width_of[device]
    fill, stroke = _FILLS[placed.kind]
    label = placed.name.split("/", 1)[-1] if placed.host != NETWORK else placed.name
    short = label.replace("bridge", "br")
    if width < _BOX_WIDTH:
        short = short.replace("spine", "s")
    return (
        f"<g><title>{escape(placed.name)} ({placed.kind})</title>"
        f'<rect x="{at.x - width / 2:.1f}" y="{at.y - _BOX_HEIGHT / 2:.1f}" width="{width:.1f}" '
        f'height="{_BOX_HEIGHT}" rx="6" fill="{fill}" stroke="{stroke}" stroke-width="1.2"/>'
        f'<text class="box" x="{at.x:.1f}" y="{at.y + 4:.1f}">{escape(short[:14])}</text></g>'
    )


def _title(spec: MachineSpec, canvas: _Canvas) -> list[str]:
    hosts = f"{spec.host_count:,} host{'s' if spec.host_count > 1 else ''}"
    size = f"{hosts}, {spec.ranks:,} GPUs"
    room = int((canvas.width - 2 * _MARGIN) / 6.4) - len(size) - 3
    about = textwrap.shorten(spec.description, max(room, 20), placeholder=" …")
    return [
        f'<text class="title" x="{_MARGIN}" y="36">{escape(spec.name)}</text>',
        f'<text class="small" x="{_MARGIN}" y="56">{escape(size)} · {escape(about)}</text>',
    ]


def _legend(
    spec: MachineSpec, layout: Layout, canvas: _Canvas, load: Mapping[int, float] | None
) -> list[str]:
    """One sample per link type and width in the drawing, followed by the scale of the heat."""
    seen: dict[tuple[str, float], LinkType] = {}
    for wire in layout.wires:
        seen.setdefault((wire.link_type, wire.parallel), spec.link_types[wire.link_type])
    parts = []
    x, y = float(_MARGIN), canvas.height
    for (name, parallel), link_type in seen.items():
        rate = link_type.rate_gb_per_s.value * parallel
        text = f"{name}  {rate:.4g} GB/s, {link_type.latency_ns.value:g} ns"
        width = 34 + 6.6 * len(text) + 18
        if x + width > canvas.width - _MARGIN and x > _MARGIN:
            x, y = float(_MARGIN), y + _LEGEND_ROW
        colour = "#8b949e" if load is not None else _LINK_COLOURS[link_type.kind]
        parts.append(
            f'<path d="M{x:.0f} {y - 4:.0f}h24" stroke="{colour}" '
            f'stroke-width="{_thickness(rate):.1f}" stroke-linecap="round"/>'
            f'<text class="small" x="{x + 34:.0f}" y="{y:.0f}">{escape(text)}</text>'
        )
        x += width
    if load is not None:
        y += _LEGEND_ROW
        parts += heat_scale(_MARGIN, y)
    canvas.height = y + _MARGIN * 0.7
    return parts
