# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of devices that links join."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def joined(devices: Sequence[T], links: Iterable[tuple[T, T]]) -> list[list[T]]:
    """The groups of devices between which a path of links exists.

    Args:
        devices: all devices.
        links: pairs of them.

    Returns:
        The groups by their first devices. Devices have the order of `devices`.

    >>> joined(["a", "b", "c"], [("a", "c")])
    [['a', 'c'], ['b']]
    """
    group_of = {device: [device] for device in devices}
    for one, other in links:
        small, large = sorted((group_of[one], group_of[other]), key=len)
        if small is not large:
            large += small
            group_of |= dict.fromkeys(small, large)
    place = {device: number for number, device in enumerate(devices)}
    unique = {id(group): sorted(group, key=place.__getitem__) for group in group_of.values()}
    return sorted(unique.values(), key=lambda group: place[group[0]])
