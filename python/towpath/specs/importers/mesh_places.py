# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Derives the positions of chips from the pairs that are joined."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

Place = tuple[int, int]

_CORNERS_MAX = 4  # of a mesh; a line has two


def mesh_places(chips: int, pairs: Iterable[tuple[int, int]]) -> list[Place]:
    """A position (x, y) for every chip, in the mesh of the pairs, with the longer side along x.

    If the pairs do not form a mesh (a torus has no corner to start from), chips are placed row by
    row.

    >>> mesh_places(4, [(0, 2), (2, 1), (1, 3), (3, 0)])
    [(0, 0), (1, 1), (1, 0), (0, 1)]
    """
    near: list[set[int]] = [set() for _ in range(chips)]
    for one, other in pairs:
        if one != other:
            near[one].add(other)
            near[other].add(one)
    least = min(map(len, near))
    corners = [chip for chip in range(chips) if len(near[chip]) == least]
    if len(corners) <= _CORNERS_MAX:
        from_first = _distances(near, corners[0])
        for corner in sorted(corners, key=lambda chip: (-from_first[chip], chip)):
            places = _places_between(near, from_first, _distances(near, corner), corner)
            if places is not None:
                return places
    columns = math.ceil(math.sqrt(chips))
    return [(chip % columns, chip // columns) for chip in range(chips)]


def _distances(near: list[set[int]], start: int) -> list[int]:
    """Number of links from `start` to each chip; the number of chips if there is no path."""
    distances = [len(near)] * len(near)
    distances[start] = 0
    queue = deque([start])
    while queue:
        chip = queue.popleft()
        for other in near[chip]:
            if distances[other] == len(near):
                distances[other] = distances[chip] + 1
                queue.append(other)
    return distances


def _places_between(
    near: list[set[int]], from_first: list[int], from_second: list[int], second: int
) -> list[Place] | None:
    """The positions that follow from the distances to two corners of one side; None if there is no
    mesh.

    A chip at (x, y) is x + y links from the first corner and side - x + y from the second one.
    """
    side = from_first[second]
    places = []
    for one, two in zip(from_first, from_second, strict=True):
        x, is_between = divmod(one + side - two, 2)
        if is_between or not 0 <= x <= side or one < x:
            return None
        places.append((x, one - x))
    if len(set(places)) < len(places):
        return None
    for chip, others in enumerate(near):
        for other in others:
            (x, y), (other_x, other_y) = places[chip], places[other]
            if abs(x - other_x) + abs(y - other_y) != 1:
                return None
    return places
