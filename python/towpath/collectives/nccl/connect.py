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

    If a ring leaves a node by another adapter than it enters, odd nodes swap the rings of each
    pair, so that a ring stays on one rail from one node to the next.

    Args:
        graph: the ring graph of a node; all nodes are equal.
        nodes: number of nodes.
        channels: number of rings; the rings of the graph are repeated.
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
    """A node's position among the nodes: its parent and children, -1 for none."""

    up: int
    down: tuple[int, int]


def binary_tree(nodes: int, node: int) -> Tree:
    """The position of a node in a tree of alternating leaves and inner nodes; 0 is the root."""
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
    """The positions of a node in both trees. The second tree is a mirror of the first if the number
    of nodes is even, and shifted by one if it is odd, so that no node is an inner node of both.
    """
    first = binary_tree(nodes, node)
    if nodes % 2:
        other = binary_tree(nodes, (node - 1) % nodes)
        named = [-1 if one == -1 else (one + 1) % nodes for one in (other.up, *other.down)]
    else:
        other = binary_tree(nodes, nodes - 1 - node)
        named = [-1 if one == -1 else nodes - 1 - one for one in (other.up, *other.down)]
    return first, Tree(named[0], (named[1], named[2]))


def heads(graph: Graph) -> list[int]:
    """The GPU of each NVLS channel that reduces for its node, each listed once."""
    return list(dict.fromkeys(channel.gpus[0] for channel in graph.channels))


def duplicated(ring: Graph, nodes: int, is_new: bool, least: int, most: int) -> int:
    """Final number of channels of rings and trees.

    Args:
        ring: the ring graph.
        nodes: number of nodes.
        is_new: True if the GPUs are Hopper or later.
        least: from NCCL_MIN_NCHANNELS and NCCL_MIN_CTAS.
        most: from NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS.
    """
    count = min(64, ring.channel_count * 2)
    if is_new and nodes > 1 and ring.intra_gb_per_s > 45.0 and count < 16:
        count *= 2
    return max(min(count, most), min(least, 64))


def in_order(pattern: Pattern, gpus: int, channel: Channel) -> bool:
    """True if a channel passes every GPU once, as rings and trees do."""
    return pattern in (Pattern.NVLS, Pattern.COLLNET_DIRECT) or sorted(channel.gpus) == list(
        range(gpus)
    )
