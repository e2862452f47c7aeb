#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/towpath.svg: predicted against measured times, and a machine under load.

Usage: .venv/bin/python tools/readme_picture.py
"""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

import towpath

TABLES = {
    "gpu_collectives/all_reduce_two_h100_servers": ("NCCL, two H100 servers", "#3b74b8"),
    "gpu_collectives/all_reduce_one_h100_server": ("inference kernels, one H100", "#d98324"),
    "chip_collectives/eight_chips": ("eight Tenstorrent chips", "#2b9c80"),
}
LEFT, TOP, SIDE = 84, 56, 400
DECADES = (1, 6)  # powers of ten, microseconds
WIDTH, HEIGHT = 1080, 520


def place(time_us: float) -> float:
    """Position along an axis, 0 to SIDE."""
    low, high = DECADES
    return (math.log10(time_us) - low) / (high - low) * SIDE


def scatter() -> list[str]:
    """The elements of the left half."""
    bottom = TOP + SIDE
    parts = [
        f'<text class="title" x="{LEFT}" y="26">Predicted against measured</text>',
        f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}"/>',
        f'<line class="identity" x1="{LEFT}" y1="{bottom}" x2="{LEFT + SIDE}" y2="{TOP}"/>',
        f'<text class="axis" x="{LEFT + SIDE / 2}" y="{bottom + 42}">measured (us)</text>',
        f'<text class="axis" transform="translate(18 {TOP + SIDE / 2}) rotate(-90)">'
        "predicted (us)</text>",
    ]
    for power in range(DECADES[0], DECADES[1] + 1):
        at, text = place(10**power), f"{10**power:,}"
        parts.append(f'<text class="tick x" x="{LEFT + at:.1f}" y="{bottom + 18}">{text}</text>')
        parts.append(f'<text class="tick y" x="{LEFT - 8}" y="{bottom - at + 4:.1f}">{text}</text>')
    for number, (table, (words, color)) in enumerate(TABLES.items()):
        found = towpath.validate(table)
        rows = [row for row in found.rows if row["predicted"]]
        parts += [
            f'<circle cx="{LEFT + place(row["measured"]):.1f}" '
            f'cy="{bottom - place(row["predicted"]):.1f}" r="3.2" fill="{color}"/>'
            for row in rows
        ]
        error = found.statistics.median_pct
        y = TOP + SIDE - 50 + 18 * number
        parts.append(f'<circle cx="{LEFT + 58}" cy="{y - 4}" r="4" fill="{color}"/>')
        label = escape(f"{words}: {len(rows)} rows, median {error:.1f} %")
        parts.append(f'<text class="label" x="{LEFT + 68}" y="{y}">{label}</text>')
    return parts


def machine() -> str:
    """The right half: the machine, each link colored by its load."""
    loaded = towpath.load("dgx-h100", hosts=2)
    result = loaded.run("all_reduce", size_bytes="64M", data=False)
    drawing = result.topology_svg
    assert drawing is not None
    return drawing.replace("<svg ", '<svg x="500" y="40" ', 1).replace(
        'width="886" height="612"', f'width="570" height="{570 * 612 / 886:.0f}"', 1
    )


def main() -> None:
    style = (
        "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#222b36}"
        ".title{font-size:19px;font-weight:600}.axis{font-size:13px;text-anchor:middle}"
        ".tick{font-size:11.5px;fill:#5c6773}.tick.x{text-anchor:middle}.tick.y{text-anchor:end}"
        ".label{font-size:12.5px}.frame{fill:none;stroke:#b8c0c9}"
        ".identity{stroke:#808890;stroke-dasharray:5 4}circle{fill-opacity:.75}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Predicted against measured times, and two DGX H100 servers under load">',
        f"<style>{style}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *scatter(),
        '<text class="title" x="500" y="26">An all-reduce of 64 MiB on two DGX H100</text>',
        machine(),
        "</svg>",
    ]
    Path(__file__).parents[1].joinpath("docs/towpath.svg").write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
