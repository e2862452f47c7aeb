# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What NCCL makes of a machine of Towpath: its topology, graphs, channels, and what is assumed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from towpath.collectives.nccl import connect
from towpath.collectives.nccl.communicator import (
    Communicator,
    Cpu,
    Generation,
    Graph,
    Pattern,
)
from towpath.collectives.nccl.environment import Environment
from towpath.collectives.nccl.search import find_graph
from towpath.collectives.nccl.topology import Topology, topology_of
from towpath.errors import ConfigError, quoted
from towpath.specs.machine_spec import MachineSpec

GENERATIONS: tuple[Generation, ...] = ("volta", "ampere", "hopper", "blackwell")
CPUS: tuple[Cpu, ...] = ("intel", "amd", "arm", "other")
_NAMES: tuple[tuple[str, Generation], ...] = (
    (r"sm_?1[0-9][0-9]|[bg]b?[23]00|blackwell", "blackwell"),
    (r"sm_?90|gh200|h[128]00|h20\b|hopper", "hopper"),
    (r"sm_?8[0-9]|a[1-9]00|ampere", "ampere"),
    (r"sm_?7[0-9]|v100|volta", "volta"),
)
# GB/s of all NVLinks of a GPU, from which a generation has them (src/graph/topo.h).
_NVLINK_RATES: tuple[tuple[float, Generation], ...] = (
    (600.0, "blackwell"),
    (300.0, "hopper"),
    (200.0, "ampere"),
    (1.0, "volta"),
)
_RING_CHANNELS_MAX = 32  # MAXCHANNELS / 2, src/init.cc
# NVLS channels of Hopper; of Blackwell in one node and in several (src/transport/nvls.cc).
_NVLS_CHANNELS = {"hopper": (16, 16), "blackwell": (24, 32)}


@dataclass(frozen=True)
class Facts:
    """A machine as NCCL takes it.

    Attributes:
        communicator: what the cost model knows.
        topology: a node.
        notes: what was assumed, a sentence each.
    """

    communicator: Communicator
    topology: Topology
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Assumptions:
    """What a machine does not say, and the user may: None leaves it to a guess, which is noted."""

    generation: Generation | None = None
    cpu: Cpu | None = None

    @classmethod
    def of(cls, generation: str | None, cpu: str | None) -> Assumptions:
        """From what a user typed.

        Raises:
            ConfigError: a word is not known.
        """
        for what, text, known in (
            ("generation", generation, GENERATIONS),
            ("cpu", cpu, CPUS),
        ):
            if text is not None and text not in known:
                allowed = ", ".join(known)
                raise ConfigError(f"{what} is {quoted(text)}; allowed are {allowed}", field=what)
        return cls(
            next((one for one in GENERATIONS if one == generation), None),
            next((one for one in CPUS if one == cpu), None),
        )


def facts_of(
    spec: MachineSpec,
    ranks_per_host: int | None = None,
    environment: Environment | None = None,
    assumptions: Assumptions | None = None,
    graphs: Mapping[str, Graph] | None = None,
) -> Facts:
    """What NCCL makes of a machine.

    Args:
        spec: as large as the communicator.
        ranks_per_host: how many GPUs of each host have ranks; None: all.
        environment: what the user has set.
        assumptions: what the machine does not say.
        graphs: those of a graph file, which take the place of the search; by the names of
            `Communicator.graphs`.

    Raises:
        ConfigError: NCCL cannot run there, or the graphs are not for it.
    """
    environment = environment or Environment()
    assumptions = assumptions or Assumptions()
    gpus = ranks_per_host or spec.gpus_per_host
    if gpus * spec.host_count < 2:
        raise ConfigError(f"machine '{spec.name}' has one rank; NCCL chooses from two on")
    notes = []
    generation = assumptions.generation
    if generation is None:
        generation, note = _generation(spec)
        notes.append(note)
    cpu = assumptions.cpu
    if cpu is None:
        cpu = "intel"
        notes.append("a machine does not say whose CPUs it has; Intel is assumed (--cpu)")
    topology, found = _searched(
        json.dumps(spec.model_dump(mode="json"), sort_keys=True, default=str),
        _Spec(spec), gpus, generation, cpu, environment.number("NCCL_CROSS_NIC"),
    )  # fmt: skip
    if topology.is_joined and not topology.nets:
        raise ConfigError(f"machine '{spec.name}' has several hosts and no adapter between them")
    used = {**found, **(graphs or {})}
    for name, graph in (graphs or {}).items():
        _check_graph(name, graph, gpus)
    communicator = _communicator(spec, gpus, generation, cpu, used, topology, environment)
    return Facts(communicator, topology, (*notes, *topology.notes))


class _Spec:
    """A spec that a cache can hold: equal to any other, for its text is the key beside it."""

    def __init__(self, spec: MachineSpec) -> None:
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Spec)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=32)
def _searched(
    text: str, holder: _Spec, gpus: int, generation: Generation, cpu: Cpu, cross_nic: int
) -> tuple[Topology, dict[str, Graph]]:
    """A topology and what is found there; `text` is all of the spec and so the key."""
    topology = topology_of(holder.spec, gpus, cpu)
    found: dict[str, Graph] = {}
    most = (1, _RING_CHANNELS_MAX)
    ring = find_graph(topology, Pattern.RING, generation, most, cross_nic)
    if ring is None:
        raise ConfigError(f"NCCL finds no ring on machine '{holder.spec.name}'")
    found["ring"] = ring
    same = (ring.channel_count, ring.channel_count)
    tree = find_graph(topology, Pattern.BALANCED_TREE, generation, same, cross_nic)
    if tree is not None:
        found["tree"] = tree
    nvls = find_graph(topology, Pattern.NVLS, generation, (1, 64), cross_nic)
    if nvls is not None and nvls.channel_count > 1:
        found["nvls"] = nvls
    return topology, found


def _communicator(
    spec: MachineSpec, gpus: int, generation: Generation, cpu: Cpu, graphs: dict[str, Graph],
    topology: Topology, environment: Environment,
) -> Communicator:  # fmt: skip
    nodes = spec.host_count
    ring = graphs["ring"]
    tree = graphs.get("tree", ring)
    if tree.channel_count < ring.channel_count:
        ring = _first_channels(ring, tree.channel_count)
    elif ring.channel_count < tree.channel_count:
        graphs["tree"] = _first_channels(tree, ring.channel_count)
    graphs["ring"] = ring
    is_new = generation in ("hopper", "blackwell")
    least, most = environment.channels_min, environment.channels_max
    nvls_channels = 0
    if "nvls" in graphs:
        of_one, of_several = _NVLS_CHANNELS[generation]
        nvls_channels = of_one if nodes == 1 else of_several
        ctas = environment.number("NCCL_MIN_CTAS"), environment.number("NCCL_MAX_CTAS")
        nvls_channels = max(ctas[0], min(ctas[1], nvls_channels))
    return Communicator(
        ranks=gpus * nodes,
        nodes=nodes,
        generation=generation,
        cpu=cpu,
        graphs=graphs,
        channels=connect.duplicated(ring, nodes, is_new, least, most),
        nvls_channels=nvls_channels,
        has_nvswitch=bool(topology.switches),
        adapter_gb_per_s=max(topology.net_left, default=0.0),
    )


def _first_channels(graph: Graph, count: int) -> Graph:
    return Graph(
        graph.pattern, count, graph.intra_gb_per_s, graph.inter_gb_per_s, graph.intra_path,
        graph.inter_path, graph.latency_us, graph.cross_nic, graph.same_channels,
        graph.channels[:count],
    )  # fmt: skip


def _check_graph(name: str, graph: Graph, gpus: int) -> None:
    for number, channel in enumerate(graph.channels):
        if name in ("ring", "tree") and not connect.in_order(graph.pattern, gpus, channel):
            order = ", ".join(map(str, channel.gpus))
            raise ConfigError(
                f"channel {number} of the {name} graph is {order[:200]}; each of the {gpus} GPUs "
                f"of a host, 0 to {gpus - 1}, belongs into it once"
            )


def _generation(spec: MachineSpec) -> tuple[Generation, str]:
    """The generation of a machine's GPUs, and the sentence about where that is from."""
    words = [*spec.link_types, spec.name, spec.description]
    for word in words:
        for pattern, generation in _NAMES:
            if re.search(pattern, word.lower()):
                return generation, f"the GPUs are {generation.capitalize()}, by {quoted(word)}"
    nvlinks = [
        link_type.rate_gb_per_s.value
        for link_type in spec.link_types.values()
        if link_type.kind == "nvlink"
    ]
    rate = max(nvlinks, default=0.0)
    for least, generation in _NVLINK_RATES:
        if rate >= least:
            how = f"by {rate:g} GB/s of NVLink"
            return generation, f"the GPUs are taken for {generation.capitalize()}, {how}"
    return "ampere", "the GPUs are taken for Ampere, for want of a name and of NVLink"
