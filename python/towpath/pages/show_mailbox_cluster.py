# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Describes a cluster with mailboxes: every value with its source, and a drawing of the ring."""

from __future__ import annotations

import math
from html import escape

from towpath.pages import spec_text
from towpath.pages.heat import DARK
from towpath.specs.mailbox_cluster_spec import MailboxClusterSpec

_DRAWN_MAX = 32


def describe_mailbox_cluster(spec: MailboxClusterSpec) -> str:
    """The cluster as text."""
    lines = [f"{spec.name}: {spec.description}", ""]
    return "\n".join(lines + spec_text.figures(spec) + spec_text.notes(spec.notes)) + "\n"


def draw_mailbox_cluster_svg(spec: MailboxClusterSpec) -> str:
    """The ring as a drawing; a large ring is drawn with fewer nodes."""
    count = min(spec.nodes.value, _DRAWN_MAX)
    places = [
        (
            200 + 150 * math.sin(2 * math.pi * n / count),
            200 - 150 * math.cos(2 * math.pi * n / count),
        )
        for n in range(count)
    ]
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 420" font-family="sans-serif">',
        f"<title>{escape(spec.name)}</title><style>{DARK}</style>",
        '<rect width="400" height="420" rx="10" fill="#ffffff"/>',
        '<circle cx="200" cy="200" r="150" fill="none" stroke="#808890" stroke-width="2"/>',
    ]
    for number, (x, y) in enumerate(places):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="14" fill="#3b74b8"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="11" fill="#fff" '
            f'text-anchor="middle">{number}</text>'
        )
    shown = f"{count} of {spec.nodes.value} nodes" if count < spec.nodes.value else f"{count} nodes"
    label = escape(f"{spec.name}: {shown}, {spec.ring.hop_latency_ns.value:g} ns a hop")
    parts.append(f'<text x="200" y="410" font-size="13" text-anchor="middle">{label}</text></svg>')
    return "\n".join(parts)
