# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric of a cluster of chips: its places, and the places of ranks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from towpath import _core
from towpath.errors import ConfigError, quoted


def check_linked(machine: str, cluster: _core.ChipCluster) -> None:
    """Requires at least one link that kernels may use.

    Raises:
        ConfigError: the cluster has none.
    """
    if all(link.is_reserved for link in cluster.links):
        raise ConfigError(
            f"{quoted(machine)} has no link between chips that kernels may use; choose a "
            "cluster with such links, such as n300"
        )


def is_ring(cluster: _core.ChipCluster, chips: list[int]) -> bool:
    """True if kernels have a separate link for each step around the ring of chips."""
    pairs = zip(chips, chips[1:] + chips[:1], strict=True)
    steps = Counter((min(pair), max(pair)) for pair in pairs)
    return all(len(cluster.channels_to(*pair)) >= count for pair, count in steps.items())


def planes(cluster: _core.ChipCluster) -> int:
    """Number of parallel links between all neighbors of the default fabric."""
    return _core.fabric_planes(cluster, _core.FabricShape.usual(cluster))


def ranks_in_ring(cluster: _core.ChipCluster) -> list[int]:
    """Places of the default fabric in an order in which consecutive ranks are on neighboring chips.

    The last and the first rank are also neighbors on a ring, and on a mesh with a side of even
    length. If both sides are odd, no closed path along the links visits all chips.

    Raises:
        ValueError: the chips do not fill a mesh.
    """
    dimensions = _core.FabricShape.usual(cluster).dimensions
    width = dimensions[0][0]
    if len(dimensions) == 1:
        return list(range(width))
    height = dimensions[1][0]
    if width == 1 or (width % 2 == 1 and height % 2 == 1):
        return [y * width + x for y in range(height) for x in _turned(range(width), y)]
    if height % 2 == 0:
        return [y * width + x for x, y in _round_trip(width, height)]
    return [y * width + x for y, x in _round_trip(height, width)]


@dataclass(frozen=True)
class Layout:
    """A fabric, and its place for each rank."""

    shape: _core.FabricShape
    places: tuple[int, ...]


def is_on_grid(algorithm: str | None) -> bool:
    """True if an algorithm places its ranks on a mesh or torus, row by row."""
    return any(known.needs_grid for known in _core.algorithms() if known.name == algorithm)


def is_pairwise(algorithm: str) -> bool:
    """True if each rank sends to every other rank by one path, rather than by two around a ring.

    >>> is_pairwise("ring_all_gather"), is_pairwise("all_pairs_all_to_all")
    (False, True)
    """
    return algorithm.startswith("all_pairs")


def is_multicast(algorithm: str) -> bool:
    """True if each rank sends to all other ranks at once, in both directions, over all its links.

    >>> is_multicast("multicast_all_gather"), is_multicast("ring_all_gather")
    (True, False)
    """
    return algorithm.startswith("multicast")


def layout_of(cluster: _core.ChipCluster, on_grid: bool) -> Layout:
    """Places ranks on the whole mesh, row by row, or on the default fabric, in a ring.

    Raises:
        ValueError: the chips do not fill a mesh.
    """
    if not on_grid:
        return Layout(_core.FabricShape.usual(cluster), tuple(ranks_in_ring(cluster)))
    mesh = _core.FabricShape.mesh(cluster)
    return Layout(mesh, tuple(range(len(mesh.chips))))


def reaches_of(shape: _core.FabricShape) -> tuple[_core.Reach, ...]:
    """The forms of access between ranks on a fabric: multicast along a line or around a ring."""
    on_line = len(shape.dimensions) == 1
    return (_core.Reach.fifo, *((_core.Reach.multicast,) if on_line else ()))


def is_grid(shape: _core.FabricShape) -> bool:
    """True if it has several columns and several rows."""
    sizes = [size for size, _ in shape.dimensions]
    return len(sizes) == 2 and min(sizes) > 1


def grid_of(shape: _core.FabricShape) -> dict[str, int | bool]:
    """The options of grid algorithms on a mesh or torus whose ranks are placed row by row."""
    (columns, row_rings), (_, column_rings) = [*shape.dimensions, (1, False)][:2]
    return {"columns": columns, "row_rings": row_rings, "column_rings": column_rings}


def _round_trip(width: int, height: int) -> list[tuple[int, int]]:
    """A closed path along the first row, back and forth through the rest, and along the first
    column.
    """
    way = [(x, 0) for x in range(width)]
    for y in range(1, height):
        way += [(x, y) for x in _turned(range(1, width), y)]
    return way + [(0, y) for y in range(height - 1, 0, -1)]


def _turned(columns: range, row: int) -> range:
    """The columns in the order of a path that turns after each row."""
    return columns[::-1] if row % 2 == 1 else columns
