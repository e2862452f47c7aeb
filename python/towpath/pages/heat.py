# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The color of a link's load: the same in all drawings."""

from __future__ import annotations

# In the style of each drawing: dark ground, with the hues that it has on white.
DARK = "@media (prefers-color-scheme:dark){svg{filter:invert(.9) hue-rotate(180deg)}}"
_STOPS = ((0.0, (205, 210, 218)), (0.5, (250, 190, 60)), (1.0, (205, 35, 35)))


def heat(busy: float) -> str:
    """Colors from gray (idle) over yellow to red (always busy).

    >>> heat(0), heat(1)
    ('#cdd2da', '#cd2323')
    """
    busy = min(max(busy, 0.0), 1.0)
    for (low, cold), (high, hot) in zip(_STOPS, _STOPS[1:], strict=False):
        if busy <= high:
            share = (busy - low) / (high - low)
            red, green, blue = (round(a + (b - a) * share) for a, b in zip(cold, hot, strict=True))
            return f"#{red:02x}{green:02x}{blue:02x}"
    raise AssertionError("the scale ends at 1")


def heat_scale(x: float, y: float) -> list[str]:
    """The scale as SVG, 320 wide, in the small text of drawings."""
    stops = "".join(f'<stop offset="{at}" stop-color="{heat(at)}"/>' for at, _ in _STOPS)
    return [
        f'<defs><linearGradient id="heat">{stops}</linearGradient></defs>'
        f'<text class="small" x="{x:g}" y="{y:.0f}">idle</text>'
        f'<rect x="{x + 34:g}" y="{y - 9:.0f}" width="160" height="9" rx="4" '
        f'fill="url(#heat)"/>'
        f'<text class="small" x="{x + 202:g}" y="{y:.0f}">busy all the time</text>'
    ]
