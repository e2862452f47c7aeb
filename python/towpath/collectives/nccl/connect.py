# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Joins the channels of all nodes: rings from node to node, double binary trees, duplicates.

Follows src/graph/connect.cc and src/graph/trees.cc (NVIDIA/nccl, commit 5067397c).
"""

from __future__ import annotations

from typing import NamedTuple

from towpath.collectives.nccl.communicator import Channel, Graph, Pattern


def rings(graph: Graph, nodes: int, channels: int) -> list[list[int]]:
    """Every channel's ring through all nodes, as ranks numbered node by node.

    Where a ring leaves a node by another adapter than it enters, odd nodes swap the rings of each
    pair, so that a ring goes from one node to the next on one rail.

    Args:
        graph: the ring graph of a node; all nodes are alike.
        nodes: how many nodes there are.
        channels: how many rings; the graph's are repeated.
    """
    count = len(graph.channels)
    swaps = graph.cross_nic == 2 and count % 2 == 0
    gpus = len(graph.channels[0].gpus)
    found = []
    for channel in range(channels):
        number = channel % count
        ring: list[int] = []
        for node in range(nodes):
            here = number ^ 1 if swaps and node % 2 == 1 else number
            ring += [node * gpus + gpu for gpu in graph.channels[here].gpus]
        found.append(ring)
    return found


class Tree(NamedTuple):
    """A node's place among nodes: its parent and children, -1 for none."""

    up: int
    down: tuple[int, int]


def binary_tree(nodes: int, node: int) -> Tree:
    """The place of a node in a tree where leaves and inner nodes alternate; 0 is the root."""
    bit = 1
    while bit < nodes and not bit & node:
        bit <<= 1
    if node == 0:
        return Tree(-1, (-1, bit >> 1 if nodes > 1 else -1))
    up = (node ^ bit) | (bit << 1)
    if up >= nodes:
        up = node ^ bit
    low = bit >> 1
    first = node - low if low else -1
    second = node + low if low else -1
    while second >= nodes:
        second = node + low if low else -1
        low >>= 1
    return Tree(up, (first, second))


def double_binary_tree(nodes: int, node: int) -> tuple[Tree, Tree]:
    """The place of a node in both trees: the second one mirrors the first where the number of nodes
    is even, and is shifted by one where it is odd, so that no node is inside both."""
    first = binary_tree(nodes, node)
    if nodes % 2:
        other = binary_tree(nodes, (node - 1) % nodes)
        named = [-1 if one == -1 else (one + 1) % nodes for one in (other.up, *other.down)]
    else:
        other = binary_tree(nodes, nodes - 1 - node)
        named = [-1 if one == -1 else nodes - 1 - one for one in (other.up, *other.down)]
    return first, Tree(named[0], (named[1], named[2]))


def heads(graph: Graph) -> list[int]:
    """The GPU of each NVLS channel that reduces for its node, each once."""
    return list(dict.fromkeys(channel.gpus[0] for channel in graph.channels))


def duplicated(ring: Graph, nodes: int, is_new: bool, least: int, most: int) -> int:
    """How many channels rings and trees have at last.

    Args:
        ring: the ring graph.
        nodes: how many nodes there are.
        is_new: whether the GPUs are Hopper or later.
        least: from NCCL_MIN_NCHANNELS and NCCL_MIN_CTAS.
        most: from NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS.
    """
    count = min(64, ring.channel_count * 2)
    if is_new and nodes > 1 and ring.intra_gb_per_s > 45.0 and count < 16:
        count *= 2
    return max(min(count, most), min(least, 64))


def in_order(pattern: Pattern, gpus: int, channel: Channel) -> bool:
    """Whether a channel passes every GPU once, as rings and trees do."""
    return pattern in (Pattern.NVLS, Pattern.COLLNET_DIRECT) or sorted(channel.gpus) == list(
        range(gpus)
    )
