# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Input of NCCL's cost model about a communicator: ranks, nodes, processors, graphs and channels.

Names of algorithms and protocols are those of NCCL's tuner files. The facts in this package are
from NVIDIA/nccl 2.30.7, commit 5067397c. Each module names its source files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

Generation = Literal["volta", "ampere", "hopper", "blackwell", "mi300"]
Cpu = Literal["intel", "amd", "arm", "other"]

ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("LL", "LL128", "Simple")
COLLECTIVES = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")

# As NCCL prints them and as NCCL_ALGO takes them.
ALGORITHM_WORDS = {
    "tree": "Tree",
    "ring": "Ring",
    "collnet_direct": "CollNetDirect",
    "collnet_chain": "CollNetChain",
    "nvls": "NVLS",
    "nvls_tree": "NVLSTree",
    "pat": "PAT",
    "all_pairs": "MSCCL all-pairs",  # of RCCL
}
COLLECTIVE_WORDS = {
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "all_reduce": "AllReduce",
}

CHANNELS_MAX = 64  # MAXCHANNELS, src/include/device.h


class Path(IntEnum):
    """Class of the distance between two devices, nearest first (src/include/graph.h)."""

    LOC = 0  # the same device
    NVL = 1  # NVLink
    NVB = 2  # NVLink through another GPU
    C2C = 3  # the link between the chips of one package
    PIX = 4  # one PCIe bridge
    PXB = 5  # several PCIe bridges
    P2C = 6  # C2C and PCIe
    PXN = 7  # to an adapter through the NVLink peer beside it
    PHB = 8  # a CPU
    SYS = 9  # the link between two CPUs
    NET = 10  # the network
    DIS = 11  # there is no way


class Pattern(IntEnum):
    """Shape of a graph's channels inside a node (src/include/graph.h)."""

    BALANCED_TREE = 1
    SPLIT_TREE = 2
    TREE = 3
    RING = 4
    NVLS = 5
    COLLNET_DIRECT = 6


@dataclass(frozen=True)
class Channel:
    """A path through a node: its GPUs in order, and the adapters at its ends."""

    gpus: tuple[int, ...]
    nets: tuple[int, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Result of NCCL's search for one kind of algorithm, before channels are duplicated.

    The rates are in GB/s per channel: inside a node, and between nodes.
    """

    pattern: Pattern
    channel_count: int
    intra_gb_per_s: float
    inter_gb_per_s: float
    intra_path: Path
    inter_path: Path = Path.PIX
    latency_us: float = 0.0
    cross_nic: int = 0
    same_channels: bool = True
    channels: tuple[Channel, ...] = ()


@dataclass(frozen=True)
class Communicator:
    """A communicator as the cost model describes it.

    `graphs` has "ring" and "tree", "nvls" if the switch reduces, and "collnet_direct" and
    "collnet_chain" if the network reduces. `channels` is the number of thread blocks of a ring or
    tree after duplication, and `nvls_channels` that of NVLS.
    """

    ranks: int
    nodes: int
    generation: Generation
    cpu: Cpu
    graphs: Mapping[str, Graph]
    channels: int
    nvls_channels: int = 0
    has_nvswitch: bool = False
    collnet: bool = False
    adapter_gb_per_s: float = 0.0

    def graph(self, algorithm: str) -> Graph | None:
        """The graph of an algorithm; None if there is none."""
        same = {"nvls_tree": "nvls", "pat": "tree"}
        return self.graphs.get(same.get(algorithm, algorithm))
