# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Message sequences between two cores, drawn from the times that their kernels print."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from towpath.reproduce.core_programs import ANSWERS, ASKS, pair

_WIDTH, _LEFT, _RIGHT = 640, 150, 490
_TOP, _STEP = 46, 52
_NOW = 'DPRINT << "{0} " << uint32_t(eth_read_wall_clock()) << ENDL();'


def _flow_control_times() -> dict[str, int]:
    """Times of the events of one packet of 4 KiB in ns, as both kernels print them."""
    sync = "volatile uint32_t* ack = (volatile uint32_t*)0x30000; ack[0] = 1; ack[1] = 1;"
    found = pair(
        ASKS
        + _NOW.format("send")
        + "eth_send_bytes_over_channel(0x20000, 0x20000, 4096, 1, 4096, 256);"
        "while (!eth_is_receiver_channel_send_acked(1)) {}"
        + _NOW.format("acked")
        + "eth_wait_for_receiver_channel_done(1);"
        + _NOW.format("done"),
        ANSWERS
        + sync
        + "while (!eth_bytes_are_available_on_channel(1)) {}"
        + _NOW.format("seen")
        + "eth_receiver_channel_ack(1, 0x30000);"
        + "riscv_wait(600);"
        + _NOW.format("free")
        + "eth_receiver_channel_done(1);",
    )
    if found.run is None:
        raise RuntimeError(found.error)
    return {name: int(time) for name, time in (text.split() for text in found.printed)}


def flow_control_in_order() -> list[Any]:
    """True if the payload is seen, acknowledged, freed and reported as done in this order."""
    at = _flow_control_times()
    order = [at[name] for name in ("send", "seen", "acked", "free", "done")]
    return [order == sorted(order) and len(set(order)) == len(order), f"{at}"]


def flow_control() -> dict[str, Any]:
    """Payload, acknowledgment and completion of one packet of 4 KiB."""
    at = _flow_control_times()
    arrows = [
        ("payload of 4 KiB and bytes_sent", True, at["send"], at["seen"]),
        ("receiver_ack", False, at["seen"], at["acked"]),
        ("bytes_sent = 0: the buffer is free", False, at["free"], at["done"]),
    ]
    return {
        "title": "Flow control of one packet (flow_control1)",
        "svg": _drawing(("sender", "receiver"), arrows),
        "how": "Times in ns from the first send, printed by both kernels of the run.",
    }


def _drawing(cores: tuple[str, str], arrows: list[tuple[str, bool, int, int]]) -> str:
    """Two lifelines and an arrow per message, each at the times of its send and its sight."""
    first = arrows[0][2]
    height = _TOP + _STEP * (len(arrows) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0 0L9 4L0 8z" fill="#3b74b8"/></marker></defs>',
    ]
    for x, name in ((_LEFT, cores[0]), (_RIGHT, cores[1])):
        parts.append(
            f'<text x="{x}" y="22" text-anchor="middle" font-weight="bold">{escape(name)}</text>'
            f'<path d="M{x} 30V{height - 8}" stroke="#808890" stroke-width="1.5"/>'
        )
    for number, (text, is_right, begin, end) in enumerate(arrows):
        y = _TOP + _STEP * number
        x, to = (_LEFT, _RIGHT) if is_right else (_RIGHT, _LEFT)
        parts.append(
            f'<path d="M{x} {y + 10}L{to} {y + 40}" stroke="#3b74b8" stroke-width="1.8" '
            'marker-end="url(#head)"/>'
            f'<text x="{_WIDTH / 2}" y="{y + 16}" text-anchor="middle">{escape(text)}</text>'
        )
        for place, height_at, time in ((x, y + 14, begin), (to, y + 44, end)):
            anchor, shift = ("end", -8) if place == _LEFT else ("start", 8)
            parts.append(
                f'<text x="{place + shift}" y="{height_at}" text-anchor="{anchor}" '
                f'fill="#667080">{time - first}</text>'
            )
    return "".join([*parts, "</svg>"])
