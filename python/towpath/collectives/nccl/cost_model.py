# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's cost model: the time that NCCL predicts for an algorithm with a protocol.

The constants and rules are those of src/graph/tuning.cc (NVIDIA/nccl, commit 5067397c; Apache-2.0).
The model serves for choosing, not for predicting: between 2 and 32 MiB on two nodes it is 10 to 40
% too fast (docs/nccl.md has the comparison). Towpath's own model simulates the chosen candidate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from towpath.collectives.nccl.communicator import (
    ALGORITHMS,
    PROTOCOLS,
    Communicator,
    Graph,
    Path,
    Pattern,
)

# Microseconds per run, for LL, LL128 and Simple.
_BASE_US = {
    "tree": (6.8, 14.0, 8.4),
    "ring": (6.6, 14.0, 8.4),
    "collnet_direct": (0.0, 0.0, 0.0),
    "collnet_chain": (0.0, 0.0, 0.0),
    "nvls": (0.0, 0.0, 0.0),
    "nvls_tree": (0.0, 0.0, 0.0),
    "pat": (8.0, 8.0, 8.0),
}
# Microseconds per step, for LL, LL128 and Simple, over each kind of link.
_STEP_US = {
    "nvlink": {
        "tree": (0.6, 1.25, 4.0),
        "ring": (0.6, 1.9, 3.4),
        "collnet_direct": (0.0, 0.0, 3.7),
        "collnet_chain": (0.0, 0.0, 2.8),
        "nvls": (0.0, 0.0, 25.0),
        "nvls_tree": (0.0, 0.0, 25.0),
        "pat": (0.0, 0.0, 4.0),
    },
    "pcie": {
        "tree": (1.0, 1.9, 4.0),
        "ring": (1.0, 2.5, 5.7),
        "collnet_direct": (0.0, 0.0, 3.7),
        "collnet_chain": (0.0, 0.0, 2.8),
        "nvls": (0.0, 0.0, 0.0),
        "nvls_tree": (0.0, 0.0, 0.0),
        "pat": (0.0, 0.0, 4.0),
    },
    "network": {
        "tree": (5.0, 8.5, 14.0),
        "ring": (2.7, 4.0, 14.0),
        "collnet_direct": (0.0, 0.0, 31.0),
        "collnet_chain": (0.0, 0.0, 30.0),
        "nvls": (0.0, 0.0, 18.0),
        "nvls_tree": (0.0, 0.0, 20.9),
        "pat": (0.0, 0.0, 14.0),
    },
}
# GB/s of all channels in LL: on one node by the GPU; on two and on more by the CPU, whose proxy
# looks at every flag.
_LL_ONE_NODE = {"volta": 39.0, "ampere": 87.7, "hopper": 141.0, "blackwell": 282.0}
_LL_NODES_INTEL = (39.0, 20.4)
_LL_NODES_AMD = (22.5, 19.0)
# GB/s per channel, on one node, two, and more.
_RING_LL128 = {
    "volta": (20.0, 20.0, 20.0),
    "ampere": (20.0, 20.0, 20.0),
    "hopper": (36.7, 36.7, 36.7),
    "blackwell": (40.0, 40.0, 40.0),
}
_TREE_LL128 = {
    "volta": (20.0, 20.0, 20.0),
    "ampere": (20.0, 20.0, 20.0),
    "hopper": (36.7, 36.7, 29.0),
    "blackwell": (55.6, 31.67, 20.0),
}
_TREE = {
    "volta": (26.5, 18.5, 10.0),
    "ampere": (24.0, 23.6, 17.8),
    "hopper": (38.7, 41.4, 36.0),
    "blackwell": (70.0, 42.8, 24.0),
}
_NVLS_TREE = {
    "volta": (26.5, 18.5, 10.0),
    "ampere": (24.0, 23.6, 17.8),
    "hopper": (0.0, 57.7, 45.5),
    "blackwell": (0.0, 96.0, 80.0),
}
_NVLS_EFFICIENCY = {"volta": 0.0, "ampere": 0.0, "hopper": 0.85, "blackwell": 0.74}
# What the tree's bandwidth is multiplied by, from 64 B upwards, one for each power of two.
_TREE_CORRECTION = {
    "LL": (
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.0, 1.0, 1.0, 1.0,
    ),
    "LL128": (
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9,
        0.9, 0.9, 0.9, 1.0, 1.0, 1.0,
    ),
    "Simple": (
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8,
        0.7, 0.7, 0.8, 0.9, 0.9, 0.9,
    ),
}  # fmt: skip
_COLLNET = ("collnet_direct", "collnet_chain")
_NVLS = ("nvls", "nvls_tree")


class Cost(NamedTuple):
    """Cost that NCCL prints per algorithm and protocol: a fixed time, and a rate for the bytes."""

    latency_us: float
    bandwidth_gb_per_s: float


def steps(collective: str, ranks: int) -> int:
    """Number of steps of a ring."""
    if collective == "all_reduce":
        return 2 * (ranks - 1)
    return ranks - 1 if collective in ("all_gather", "reduce_scatter") else ranks


def why_not(
    communicator: Communicator, collective: str, algorithm: str, protocol: str
) -> str | None:
    """The reason for which NCCL excludes a candidate; None if it does not. Exclusions by the user,
    and LL128 over paths that may tear its lines (`why_not_ll128`), are not checked here.
    """
    graph = communicator.graph(algorithm)
    if algorithm in _NVLS:
        reason = _why_not_nvls(communicator, collective, algorithm, protocol)
    elif algorithm in _COLLNET:
        reason = _why_not_collnet(communicator, collective, algorithm, protocol)
    elif algorithm == "pat":
        reason = _why_not_pat(communicator, collective, protocol)
    elif algorithm == "tree" and collective != "all_reduce":
        reason = "the tree is for all_reduce only"
    else:
        reason = None
    if reason is None and graph is None:
        reason = "the search found no channels for it"
    return reason


def why_not_ll128(communicator: Communicator, algorithm: str) -> str | None:
    """The reason for which NCCL excludes LL128 if NCCL_PROTO does not request it: a path that may
    tear the lines of 128 bytes. None if there is no such path.
    """
    graph = communicator.graph(algorithm)
    if graph is None:
        return None
    farthest = Path.PXN if communicator.generation in ("hopper", "blackwell") else Path.PXB
    if communicator.nodes > 1 and graph.inter_path > farthest:
        return f"LL128 reaches adapters up to {farthest.name}, and one is {graph.inter_path.name}"
    if graph.intra_path > Path.NVB:
        return f"LL128 needs NVLink inside the node, and the path is {graph.intra_path.name}"
    return None


def cost(communicator: Communicator, collective: str, algorithm: str, protocol: str) -> Cost | None:
    """NCCL's latency and bandwidth of a candidate; None if NCCL excludes it."""
    graph = communicator.graph(algorithm)
    if graph is None or why_not(communicator, collective, algorithm, protocol) is not None:
        return None
    bandwidth = _bandwidth(communicator, graph, collective, algorithm, protocol)
    if bandwidth <= 0:
        return None
    return Cost(_latency(communicator, graph, collective, algorithm, protocol), bandwidth)


def time_us(
    communicator: Communicator, collective: str, algorithm: str, protocol: str, size_bytes: int
) -> float | None:
    """Time that NCCL predicts for a candidate; None if NCCL excludes it.

    Args:
        communicator: ranks, nodes and graphs.
        collective: such as "all_reduce".
        algorithm: one of `ALGORITHMS`.
        protocol: one of `PROTOCOLS`.
        size_bytes: size of the whole array.
    """
    found = cost(communicator, collective, algorithm, protocol)
    if found is None:
        return None
    latency, bandwidth = found
    if collective == "all_reduce":
        bandwidth *= _correction(communicator, algorithm, protocol, size_bytes)
        graph = communicator.graph("ring")
        if (
            (algorithm, protocol) == ("ring", "Simple")
            and graph is not None
            and communicator.nodes > 1
            and size_bytes // (communicator.channels * communicator.ranks) >= 64
        ):
            latency *= 1.9 if communicator.generation == "volta" else 1.4
    return latency + size_bytes / (1000 * bandwidth)


def times_us(
    communicator: Communicator, collective: str, size_bytes: int
) -> dict[tuple[str, str], float]:
    """The time of every candidate that NCCL considers, by (algorithm, protocol), in NCCL's order of
    comparison: it takes the first of equal candidates.
    """
    found = {}
    for algorithm in ALGORITHMS:
        for protocol in PROTOCOLS:
            time = time_us(communicator, collective, algorithm, protocol, size_bytes)
            if time is not None:
                found[algorithm, protocol] = time
    return found


def _why_not_nvls(
    communicator: Communicator, collective: str, algorithm: str, protocol: str
) -> str | None:
    graph = communicator.graph("nvls")
    if graph is None:
        return "no NVSwitch that reduces"
    if graph.channel_count < 2:
        return "NVLS needs two channels"
    if protocol != "Simple":
        return "NVLS runs under Simple only"
    if collective not in ("all_reduce", "all_gather", "reduce_scatter"):
        return f"NVLS does not do {collective}"
    if algorithm == "nvls_tree":
        if communicator.nodes == 1:
            return "NVLSTree joins nodes, and there is one"
        if collective != "all_reduce":
            return "NVLSTree is for all_reduce only"
    elif communicator.nodes > 1 and not communicator.collnet:
        return "NVLS between nodes needs a network that reduces (CollNet)"
    return None


def _why_not_collnet(
    communicator: Communicator, collective: str, algorithm: str, protocol: str
) -> str | None:
    if not communicator.collnet:
        return "the network does not reduce (CollNet)"
    if protocol != "Simple":
        return "CollNet runs under Simple only"
    if communicator.ranks // communicator.nodes > 8:
        return "CollNet takes 8 GPUs per node at most"
    if algorithm == "collnet_direct" and not communicator.has_nvswitch:
        return "CollNetDirect needs an NVSwitch"
    if collective != "all_reduce":
        return f"CollNet's model of {collective} is not known here"
    return None


def _why_not_pat(communicator: Communicator, collective: str, protocol: str) -> str | None:
    if collective not in ("all_gather", "reduce_scatter"):
        return "PAT is for all_gather and reduce_scatter only"
    if protocol != "Simple":
        return "PAT runs under Simple only"
    if communicator.nodes != communicator.ranks:
        return "PAT needs one GPU per node"
    return None


def _by_nodes(values: tuple[float, float, float], nodes: int) -> float:
    return values[min(nodes, 3) - 1]


def _ll_max(communicator: Communicator) -> float:
    if communicator.nodes == 1:
        return _LL_ONE_NODE[communicator.generation]
    by_cpu = _LL_NODES_AMD if communicator.cpu == "amd" else _LL_NODES_INTEL
    return by_cpu[0 if communicator.nodes == 2 else 1]


def _bandwidth(
    communicator: Communicator, graph: Graph, collective: str, algorithm: str, protocol: str
) -> float:
    """Bandwidth of the whole array in GB/s."""
    nodes, ranks = communicator.nodes, communicator.ranks
    if algorithm in _NVLS:
        rate = _nvls_rate(communicator, graph, collective, algorithm)
    elif nodes <= 2 or algorithm in _COLLNET:
        rate = graph.intra_gb_per_s
    else:
        rate = graph.inter_gb_per_s
    bus = graph.channel_count * rate
    if algorithm == "ring":
        bus = _ring_bus(communicator, graph, protocol, bus)
    elif algorithm == "tree":
        bus = _tree_bus(communicator, graph, collective, protocol, bus)
    elif algorithm == "pat":
        bus *= 0.75
    elif algorithm == "collnet_direct":
        factor = ranks / nodes / graph.channel_count  # GPUs per adapter
        bus /= factor - (factor - 1) / 2
        if communicator.generation in ("hopper", "blackwell"):
            bus *= 0.85
    if algorithm != "ring" and collective in ("all_gather", "reduce_scatter"):
        return bus
    if algorithm in ("ring", *_NVLS):
        return bus * ranks / steps(collective, ranks)
    return bus * 0.5


def _ring_bus(communicator: Communicator, graph: Graph, protocol: str, bus: float) -> float:
    if protocol == "LL":
        return min(_ll_max(communicator), bus * 0.5)
    if protocol == "LL128":
        per_channel = _by_nodes(_RING_LL128[communicator.generation], communicator.nodes)
        return min(bus * 0.92, graph.channel_count * per_channel)
    return bus


def _tree_bus(
    communicator: Communicator, graph: Graph, collective: str, protocol: str, bus: float
) -> float:
    generation, nodes = communicator.generation, communicator.nodes
    if collective == "all_reduce":
        bus = min(bus * 0.92, graph.channel_count * _by_nodes(_TREE[generation], nodes))
    if protocol == "LL":
        bus = min(bus / 3.8, _ll_max(communicator))
    if protocol == "LL128":
        part = 7 / 9 if nodes == 1 else 120 / 128
        per_channel = _by_nodes(_TREE_LL128[generation], nodes)
        bus = min(bus * part, graph.channel_count * per_channel)
    return bus * 0.85 if graph.pattern == Pattern.TREE else bus


def _nvls_rate(communicator: Communicator, graph: Graph, collective: str, algorithm: str) -> float:
    """GB/s of bus bandwidth per channel."""
    count = graph.channel_count
    intra = graph.intra_gb_per_s * _NVLS_EFFICIENCY[communicator.generation] * (count - 1) / count
    per_node = communicator.ranks / communicator.nodes
    intra *= 2 if collective == "all_reduce" else (per_node - 1) / per_node
    inter = graph.inter_gb_per_s
    if algorithm == "nvls":
        return min(intra, inter)
    if communicator.nodes <= 2:
        inter *= 2
    return min(intra, inter, _by_nodes(_NVLS_TREE[communicator.generation], communicator.nodes))


def _latency(
    communicator: Communicator, graph: Graph, collective: str, algorithm: str, protocol: str
) -> float:
    position = PROTOCOLS.index(protocol)
    nodes, ranks = communicator.nodes, communicator.ranks
    inside = "nvlink" if graph.intra_path == Path.NVL else "pcie"
    intra = _STEP_US[inside][algorithm][position]
    one_per_node = ranks == nodes
    inter = _STEP_US["network"]["tree" if one_per_node else algorithm][position]
    inter += graph.latency_us * (2 if protocol == "Simple" else 1)  # Simple flushes, too
    base = _BASE_US[algorithm][position]
    per_node = ranks // nodes
    depth = math.floor(math.log2(nodes))
    match algorithm:
        case "ring":
            if collective in ("broadcast", "reduce"):
                return base + _chain_latency(communicator, graph, position)
            return base + _ring_latency(communicator, collective, protocol, (intra, inter))
        case "tree":
            return base + 2 * ((per_node - 1) * intra + depth * inter)
        case "collnet_direct":
            return base + 2 * (min(1, per_node - 1) * intra + (per_node - 1) * 0.4) + inter
        case "collnet_chain":
            return base + 2 * (per_node - 1) * intra + inter
        case "nvls":
            return intra + (inter if nodes > 1 else 0.0)
        case "nvls_tree":
            return base + intra + 2 * depth * inter
        case _:
            return base + depth * (inter / 3.5) + ranks * 2.8


def _chain_latency(communicator: Communicator, graph: Graph, position: int) -> float:
    """Latency of broadcast and reduce beyond the base, in microseconds."""
    inside = "nvlink" if graph.intra_path == Path.NVL else "pcie"
    step = _STEP_US[inside if communicator.nodes == 1 else "network"]
    if graph.same_channels:
        return step["ring"][position]
    is_simple = PROTOCOLS[position] == "Simple"
    return communicator.ranks * step["tree" if is_simple else "ring"][position]


def _ring_latency(
    communicator: Communicator, collective: str, protocol: str, step: tuple[float, float]
) -> float:
    """Latency beyond the base, in microseconds; a step takes `step` inside a node and between
    nodes.
    """
    intra, inter = step
    nodes, between = communicator.nodes, 0
    if nodes > 1:
        overhead = 2.0 if communicator.cpu == "amd" else 1.0  # of posting to the network
        intra = max(intra, overhead * (3 if protocol == "Simple" else 1))
        between = (2 if collective == "all_reduce" else 1) * (nodes - 1)
    return (steps(collective, communicator.ranks) - between) * intra + between * inter


def _correction(
    communicator: Communicator, algorithm: str, protocol: str, size_bytes: int
) -> float:
    power = (size_bytes >> 6).bit_length() - 1
    if algorithm == "tree" and 0 <= power < 23:
        return _TREE_CORRECTION[protocol][power]
    is_corrected = communicator.generation == "blackwell" and communicator.cpu in ("intel", "amd")
    if algorithm == "nvls_tree" and is_corrected and 0 <= power < 24:
        return _TREE_CORRECTION[protocol][power]
    return 1.0
