# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric of a cluster of chips: which places it has, and where ranks run."""

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
            f"{quoted(machine)} has no link between chips that kernels may use; allowed are "
            "clusters whose chips are joined, such as n300"
        )


def is_ring(cluster: _core.ChipCluster, chips: list[int]) -> bool:
    """Whether kernels have a link of its own for each step from chip to chip and back."""
    pairs = zip(chips, chips[1:] + chips[:1], strict=True)
    steps = Counter((min(pair), max(pair)) for pair in pairs)
    return all(len(cluster.channels_to(*pair)) >= count for pair, count in steps.items())


def planes(cluster: _core.ChipCluster) -> int:
    """The parallel links that all neighbours of the usual fabric have."""
    return _core.fabric_planes(cluster, _core.FabricShape.usual(cluster))


def ranks_in_ring(cluster: _core.ChipCluster) -> list[int]:
    """Places of the usual fabric in an order in which neighbouring ranks are neighbouring chips.

    The last and the first are, too, on a ring, and on a mesh of which a side is even: if both are
    odd, no way along its links comes back to where it began.

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
    """Whether an algorithm's ranks are those of a mesh or torus, row by row."""
    return any(known.needs_grid for known in _core.algorithms() if known.name == algorithm)


def is_pairwise(algorithm: str) -> bool:
    """Whether each rank sends to each other one, to which there is one way, not two round a ring.

    >>> is_pairwise("ring_all_gather"), is_pairwise("all_pairs_all_to_all")
    (False, True)
    """
    return algorithm.startswith("all_pairs")


def is_multicast(algorithm: str) -> bool:
    """Whether each rank sends to all others at once, both ways, over all links that it has.

    >>> is_multicast("multicast_all_gather"), is_multicast("ring_all_gather")
    (True, False)
    """
    return algorithm.startswith("multicast")


def layout_of(cluster: _core.ChipCluster, on_grid: bool) -> Layout:
    """Ranks on the whole mesh, row by row, or on the usual fabric, in a ring.

    Raises:
        ValueError: the chips do not fill a mesh.
    """
    if not on_grid:
        return Layout(_core.FabricShape.usual(cluster), tuple(ranks_in_ring(cluster)))
    mesh = _core.FabricShape.mesh(cluster)
    return Layout(mesh, tuple(range(len(mesh.chips))))


def reaches_of(shape: _core.FabricShape) -> tuple[_core.Reach, ...]:
    """How ranks on a fabric reach each other: all at once along a line or round a ring."""
    on_line = len(shape.dimensions) == 1
    return (_core.Reach.fifo, *((_core.Reach.multicast,) if on_line else ()))


def is_grid(shape: _core.FabricShape) -> bool:
    """Whether it has several columns and several rows."""
    sizes = [size for size, _ in shape.dimensions]
    return len(sizes) == 2 and min(sizes) > 1


def grid_of(shape: _core.FabricShape) -> dict[str, int | bool]:
    """The options of grid algorithms on a mesh or torus whose ranks are placed row by row."""
    (columns, row_rings), (_, column_rings) = [*shape.dimensions, (1, False)][:2]
    return {"columns": columns, "row_rings": row_rings, "column_rings": column_rings}


def _round_trip(width: int, height: int) -> list[tuple[int, int]]:
    """Along the first row, in turns through the others, and back along the first column."""
    way = [(x, 0) for x in range(width)]
    for y in range(1, height):
        way += [(x, y) for x in _turned(range(1, width), y)]
    return way + [(0, y) for y in range(height - 1, 0, -1)]


def _turned(columns: range, row: int) -> range:
    """The columns in the order in which a way that turns after each row takes them."""
    return columns[::-1] if row % 2 == 1 else columns
