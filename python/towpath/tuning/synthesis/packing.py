# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Trees and rings over all ranks that divide the load among the links: each new one avoids loaded
links.

A link's length grows with its load (multiplicative weights, as in Garg and Koenemann's packing of
flows). Each tree is a shortest one, and each ring is a short round trip. Then each pattern is
removed and chosen again while this reduces the load of the most loaded link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from towpath.tuning.synthesis.network import Network

# How much longer the most loaded link is than an idle one, as a power of e: in each pass more.
_STEEPNESS = (8, 8, 12, 12, 18, 18, 27, 27, 40, 40, 60, 60)

Tree = tuple[int, ...]  # the parent of each rank, -1 for the root
Ring = tuple[int, ...]  # the ranks in order


@dataclass(frozen=True)
class Packing:
    """Patterns that each carry an equal share of the array.

    Attributes:
        patterns: trees or rings.
        time_ns_per_byte: time that the most loaded link needs for the array, per byte of it.
    """

    patterns: tuple[tuple[int, ...], ...]
    time_ns_per_byte: float


def pack_trees(network: Network, count: int, seed: int, *, host_trees: bool) -> Packing:
    """Trees for all-reduce: sums go up and results go down, so each hop is used in both directions.

    Args:
        network: the links.
        count: number of trees.
        seed: selects one of several equal hops.
        host_trees: True if a tree enters each host once.
    """
    random = np.random.default_rng(seed)

    def choose(lengths: np.ndarray, number: int) -> tuple[int, ...]:
        hops = network.incidence @ lengths
        hops = hops + hops.T
        hops = hops * (1 + 0.01 * random.random(hops.shape))
        return _shortest_tree(network, hops, number % network.ranks, host_trees)

    def links(tree: tuple[int, ...]) -> np.ndarray:
        used = np.zeros(len(network.links))
        for rank, parent in enumerate(tree):
            if parent >= 0:
                used += network.incidence[rank, parent] + network.incidence[parent, rank]
        return used

    return _pack(network, count, choose, links, random)


def pack_rings(network: Network, count: int, seed: int) -> Packing:
    """Rings; an all-reduce sends twice the share of (ranks-1)/ranks over each hop.

    Args:
        network: the links.
        count: number of rings.
        seed: selects one of several equal hops.
    """
    random = np.random.default_rng(seed)

    def choose(lengths: np.ndarray, number: int) -> tuple[int, ...]:
        hops = network.incidence @ lengths
        hops = hops * (1 + 0.01 * random.random(hops.shape))
        return _short_round_trip(hops, number % network.ranks)

    def links(ring: tuple[int, ...]) -> np.ndarray:
        used = np.zeros(len(network.links))
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
            used += network.incidence[a, b]
        return used * 2 * (network.ranks - 1) / network.ranks

    return _pack(network, count, choose, links, random)


def _pack(
    network: Network,
    count: int,
    choose: Callable[[np.ndarray, int], tuple[int, ...]],
    links: Callable[[tuple[int, ...]], np.ndarray],
    random: np.random.Generator,
) -> Packing:
    rates = network.rates_gb_per_s
    loads = np.zeros(len(rates))

    def lengths(steepness: float) -> np.ndarray:
        times = loads / rates
        worst = times.max()
        return np.exp(steepness * times / worst if worst > 0 else times) / rates

    patterns: list[tuple[int, ...]] = []
    for number in range(count):
        patterns.append(choose(lengths(_STEEPNESS[0]), number))
        loads += links(patterns[-1])
    best = (float((loads / rates).max()), tuple(patterns))
    for steepness in _STEEPNESS:
        for place in random.permutation(count):
            loads -= links(patterns[place])
            patterns[place] = choose(lengths(steepness), int(place))
            loads += links(patterns[place])
            worst = float((loads / rates).max())
            if worst < best[0] * (1 - 1e-9):
                best = (worst, tuple(patterns))
    return Packing(best[1], best[0] / count)


def _shortest_tree(network: Network, hops: np.ndarray, start: int, host_trees: bool) -> Tree:
    """Prim's tree, preferring the hop nearest to the start among equal ones; rooted where it is
    shallowest.
    """
    ranks = network.ranks
    penalty = float(hops[np.isfinite(hops)].max()) * ranks if host_trees else 0.0
    hosts = np.array(network.hosts)
    costs = hops + penalty * (hosts[:, None] != hosts[None, :])
    parents = np.full(ranks, -1)
    depths = np.zeros(ranks, dtype=int)
    nearest = np.full(ranks, start)
    is_outside = np.ones(ranks, dtype=bool)
    is_outside[start] = False
    best = costs[start].copy()
    for _ in range(ranks - 1):
        rank = int(np.where(is_outside, best, np.inf).argmin())
        parent = int(nearest[rank])
        parents[rank] = parent
        depths[rank] = depths[parent] + 1
        is_outside[rank] = False
        # A hop from here has to be clearly shorter, as it makes the tree deeper.
        is_nearer = is_outside & (costs[rank] < best * 0.97)
        best = np.where(is_nearer, costs[rank], best)
        nearest = np.where(is_nearer, rank, nearest)
    return _rooted_in_the_middle(parents)


def _rooted_in_the_middle(parents: np.ndarray) -> Tree:
    neighbours: list[list[int]] = [[] for _ in parents]
    for rank, parent in enumerate(parents):
        if parent >= 0:
            neighbours[rank].append(int(parent))
            neighbours[parent].append(rank)

    def walk(root: int) -> tuple[list[int], list[int]]:
        """Ranks from near to far, and their parents."""
        order, above = [root], [-1] * len(parents)
        for rank in order:
            for other in neighbours[rank]:
                if other != above[rank]:
                    above[other] = rank
                    order.append(other)
        return order, above

    one_end = walk(0)[0][-1]
    order, above = walk(one_end)
    way = [order[-1]]  # the longest way through the tree, from its other end
    while above[way[-1]] >= 0:
        way.append(above[way[-1]])
    return tuple(walk(way[len(way) // 2])[1])


def _short_round_trip(hops: np.ndarray, start: int) -> Ring:
    """Repeatedly visits the nearest remaining rank, reverses pieces while this shortens the trip,
    and then takes the shorter direction.
    """
    both = hops + hops.T
    ranks = len(hops)
    ring = [start]
    is_left = np.ones(ranks, dtype=bool)
    is_left[start] = False
    while len(ring) < ranks:
        following = int(np.where(is_left, both[ring[-1]], np.inf).argmin())
        ring.append(following)
        is_left[following] = False
    order = np.array(ring)
    for _ in range(ranks * ranks):
        following_ranks = np.roll(order, -1)
        own = both[order, following_ranks]
        # Reversing what is between i and j joins i to j and what follows i to what follows j.
        gains = own[:, None] + own[None, :]
        gains = gains - both[np.ix_(order, order)]
        gains = gains - both[np.ix_(following_ranks, following_ranks)]
        gains = np.triu(gains, 2)
        i, j = np.unravel_index(int(gains.argmax()), gains.shape)
        if gains[i, j] <= 1e-9 * own.max():
            break
        order[i + 1 : j + 1] = order[i + 1 : j + 1][::-1]
    there = float(hops[order, np.roll(order, -1)].sum())
    back = float(hops[order[::-1], np.roll(order[::-1], -1)].sum())
    return tuple(int(rank) for rank in (order if there <= back else order[::-1]))
