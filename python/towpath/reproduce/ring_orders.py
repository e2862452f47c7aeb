# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Document 003: the order of its rings over two nodes, drawn from the puts of their blocks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from towpath.kernels.gpu_kernel import GpuKernel
from towpath.kernels.profile import (
    MOVED_BYTES,
    PEER,
    RECORDS_MAX,
    TRACK,
    TRACK_BLOCK,
    TRACK_IS_KERNEL,
    TRACK_PE,
    Recorded,
)
from towpath.reproduce import worklog_kernels
from towpath.reproduce.documents import document
from towpath.reproduce.worklog_times import GPUS_PER_HOST, MACHINE, PROGRAM
from towpath.specs import catalogue

Result = dict[str, Any]
_NAME = "alternating_rings::all_reduce_ring_kernel<half>"
_PES, _RINGS, _THREADS, _BYTES = 16, 8, 64, 64
_STEP, _ROW, _TOP, _RADIUS, _BEND = 70, 90, 36, 15, 50


def orders() -> Result:
    """The rings of the document's alternating kernel, each as the PEs that it passes."""
    rings = _rings(_recorded())
    hops = [list(zip(ring, [*ring[1:], ring[0]], strict=True)) for ring in rings]
    crossings = [
        [(one, other) for one, other in each if one // GPUS_PER_HOST != other // GPUS_PER_HOST]
        for each in hops
    ]
    along_rails = all(
        len(each) == 2 and all(one % GPUS_PER_HOST == other % GPUS_PER_HOST for one, other in each)
        for each in crossings
    )
    used = {one % GPUS_PER_HOST for each in crossings for one, _ in each}
    whole = all(sorted(ring) == list(range(_PES)) for ring in rings)
    return {
        "over_rails": [
            whole and along_rails and len(used) == GPUS_PER_HOST,
            "; ".join(" ".join(f"{one}>{other}" for one, other in each) for each in crossings),
        ],
        "figure": {
            "title": "Alternating rings over two nodes (RING1 and RING2)",
            "svg": _drawing({0: rings[0], 2: rings[2]}),
            "how": "Order of the puts of blocks of rings 0 and 2. The upper row is node 0.",
        },
    }


def _recorded() -> Recorded:
    """The records of one call of the kernel, with a block for each ring."""
    with tempfile.TemporaryDirectory(prefix="towpath-") as name:
        header = worklog_kernels.header(document("003"))
        Path(name, "document_kernels.h").write_text(header, encoding="utf-8")
        kernel = GpuKernel(str(PROGRAM), [_NAME], [f"-I{name}"])
        gpus = kernel.simulate(catalogue.load(MACHINE), _PES, records_max=RECORDS_MAX)
        count = _THREADS * _BYTES // 2 * _RINGS * _PES
        buffers = [gpus.symmetric(count, "float16") for _ in range(2)]
        arguments = [*buffers, gpus.symmetric(_RINGS, "uint64"), _BYTES, GPUS_PER_HOST, 1]
        gpus.launch(_NAME, (1, _RINGS), _THREADS, arguments)
        recorded = gpus.recorded()
    assert recorded is not None
    return recorded


def _rings(recorded: Recorded) -> list[list[int]]:
    """The PEs in the order of each ring, from PE 0 on.

    Raises:
        ValueError: a block sends to several PEs.
    """
    following: list[dict[int, int]] = [{} for _ in range(_RINGS)]
    for put in recorded.transfers:
        track = recorded.tracks[put[TRACK]]
        if not track[TRACK_IS_KERNEL] or put[MOVED_BYTES] < _THREADS * _BYTES:
            continue
        pe, to = int(track[TRACK_PE]), int(put[PEER])
        if following[track[TRACK_BLOCK]].setdefault(pe, to) != to:
            raise ValueError(f"a block of PE {pe} sends to several PEs")
    rings = []
    for after in following:
        ring = [0]
        while after[ring[-1]] not in ring:
            ring.append(after[ring[-1]])
        rings.append(ring)
    return rings


def _drawing(rings: dict[int, list[int]]) -> str:
    """A panel for each ring: the GPUs of both nodes, and an arrow for each hop."""
    width = _STEP * GPUS_PER_HOST + 40
    panel = 2 * _ROW + _TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {panel * len(rings)}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{panel * len(rings)}" fill="#ffffff"/>',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#3b74b8"/></marker></defs>',
    ]
    for number, (name, ring) in enumerate(rings.items()):
        top = number * panel
        parts.append(f'<text x="20" y="{top + 20}" font-weight="bold">ring {name}</text>')
        places = {
            pe: (20 + _STEP * (pe % GPUS_PER_HOST) + _STEP // 2,
                 top + _TOP + _ROW * (pe // GPUS_PER_HOST) + _RADIUS)
            for pe in ring
        }  # fmt: skip
        parts += [
            _hop(places[one], places[to])
            for one, to in zip(ring, [*ring[1:], ring[0]], strict=True)
        ]
        for pe, (x, y) in places.items():
            parts.append(
                f'<circle cx="{x}" cy="{y}" r="{_RADIUS}" fill="#eef2f6" stroke="#808890"/>'
                f'<text x="{x}" y="{y + 4}" text-anchor="middle">{pe}</text>'
            )
    return "".join([*parts, "</svg>"])


def _hop(one: tuple[int, int], other: tuple[int, int]) -> str:
    """An arrow from edge to edge of two circles, below the circles between."""
    (x, y), (to_x, to_y) = one, other
    is_far = y == to_y and abs(to_x - x) > _STEP
    if is_far:
        begin, end = (x, y + _RADIUS), (to_x, to_y + _RADIUS)
    elif y == to_y:
        side = _RADIUS if to_x > x else -_RADIUS
        begin, end = (x + side, y), (to_x - side, to_y)
    else:
        down = _RADIUS if to_y > y else -_RADIUS
        begin, end = (x, y + down), (to_x, to_y - down)
    middle = (begin[0] + end[0]) // 2, (begin[1] + end[1]) // 2 + (_BEND if is_far else 0)
    return (
        f'<path d="M{begin[0]} {begin[1]}Q{middle[0]} {middle[1]} {end[0]} {end[1]}" fill="none" '
        'stroke="#3b74b8" stroke-width="1.6" marker-end="url(#tip)"/>'
    )
