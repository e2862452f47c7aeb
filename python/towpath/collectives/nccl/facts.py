# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's view of a machine of Towpath: its topology, graphs and channels, and the assumptions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from towpath.collectives.nccl import connect
from towpath.collectives.nccl.communicator import (
    CHANNELS_MAX,
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
OF_AMD = re.compile(r"mi300|mi325|gfx94")
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
    """A machine in NCCL's terms.

    Attributes:
        communicator: input of the cost model.
        topology: topology of a node.
        notes: the assumptions, one sentence each.
    """

    communicator: Communicator
    topology: Topology
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Assumptions:
    """Properties that a machine file does not contain, and a user may set. None selects a guess,
    which is noted.
    """

    generation: Generation | None = None
    cpu: Cpu | None = None

    @classmethod
    def of(cls, generation: str | None, cpu: str | None) -> Assumptions:
        """Creates the assumptions from given words.

        Raises:
            ConfigError: a word is unknown.
        """
        for what, text, known in (
            ("generation", generation, GENERATIONS),
            ("cpu", cpu, CPUS),
        ):
            if text is not None and text not in known:
                allowed = ", ".join(known)
                raise ConfigError(f"{what} is {quoted(text)}; choose one of {allowed}", field=what)
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
    """Determines NCCL's view of a machine.

    Args:
        spec: a machine of the size of the communicator.
        ranks_per_host: number of GPUs of each host with ranks; None: all.
        environment: the user's settings.
        assumptions: properties that the machine file does not contain.
        graphs: graphs of a graph file, which replace the search; by the names of
            `Communicator.graphs`.

    Raises:
        ConfigError: NCCL cannot run on the machine, or the graphs do not match it.
    """
    environment = environment or Environment()
    assumptions = assumptions or Assumptions()
    gpus = ranks_per_host or spec.gpus_per_host
    if gpus * spec.host_count < 2:
        raise ConfigError(f"machine '{spec.name}' has one rank; NCCL needs at least two to choose")
    if len(spec.host_kinds()) > 1:
        raise ConfigError(
            f"machine '{spec.name}' has hosts of different kinds, for which NCCL's search is "
            "not supported; run without --as"
        )
    generation, cpu, notes = _assumed(spec, assumptions)
    if generation == "mi300":
        raise ConfigError(
            f"NCCL does not run on the GPUs of machine '{spec.name}'; run with --as rccl"
        )
    searched = _Searched(spec, gpus, generation, cpu, environment.number("NCCL_CROSS_NIC"))
    topology, found = _search(searched)
    if topology.is_joined and not topology.nets:
        raise ConfigError(
            f"machine '{spec.name}' has several hosts, but no adapters to connect them"
        )
    for name, graph in (graphs or {}).items():
        _check_graph(name, graph, gpus)
    used = _of_equal_length({**found, **(graphs or {})})
    communicator = Communicator(
        ranks=gpus * spec.host_count,
        nodes=spec.host_count,
        generation=generation,
        cpu=cpu,
        graphs=used,
        channels=connect.duplicated(
            used["ring"], spec.host_count, generation in ("hopper", "blackwell"),
            environment.channels_min, environment.channels_max,
        ),
        nvls_channels=_nvls_channels(used, spec.host_count, generation, environment),
        has_nvswitch=bool(topology.switches),
        adapter_gb_per_s=max(topology.net_left, default=0.0),
    )  # fmt: skip
    return Facts(communicator, topology, (*notes, *topology.notes))


@dataclass(frozen=True)
class HostFacts:
    """A host of a machine, without a search for channels.

    Attributes:
        topology: its devices and links.
        generation: of its GPUs.
        cpu: the vendor of its processors.
        notes: the assumptions, a sentence each.
    """

    topology: Topology
    generation: Generation
    cpu: Cpu
    notes: tuple[str, ...]


def host_facts(spec: MachineSpec, ranks_per_host: int, assumptions: Assumptions) -> HostFacts:
    """A host of a machine whose hosts are alike.

    Raises:
        ConfigError: NCCL cannot have as many GPUs in one node, or the hosts differ.
    """
    if len(spec.host_kinds()) > 1:
        raise ConfigError(f"machine '{spec.name}' has hosts of different kinds; name one kind")
    generation, cpu, notes = _assumed(spec, assumptions)
    topology = topology_of(spec, ranks_per_host, cpu)
    return HostFacts(topology, generation, cpu, (*notes, *topology.notes))


def is_of_amd(spec: MachineSpec) -> bool:
    """True if the GPUs of a machine are AMD's, by its name or its links."""
    return OF_AMD.search(spec.name) is not None or "xgmi" in spec.link_types


def _assumed(spec: MachineSpec, assumptions: Assumptions) -> tuple[Generation, Cpu, list[str]]:
    if is_of_amd(spec):
        return "mi300", assumptions.cpu or "amd", []
    notes = []
    generation = assumptions.generation
    if generation is None:
        generation, note = _generation(spec)
        notes.append(note)
    cpu = assumptions.cpu
    if cpu is None:
        cpu = "intel"
        notes.append("a machine does not say whose CPUs it has; Intel is assumed (--cpu)")
    return generation, cpu, notes


@dataclass(frozen=True)
class _Searched:
    """Input of a search. Compared by the content of the spec, for a cache."""

    spec: MachineSpec = field(compare=False)
    gpus: int
    generation: Generation
    cpu: Cpu
    cross_nic: int
    text: str = ""

    def __post_init__(self) -> None:
        data = self.spec.model_dump(mode="json")
        is_joined = self.spec.host_count > 1
        for holder in (data, data.get("hosts") or {}):
            holder.pop("count", None)  # every number of hosts above one gives the same search
        object.__setattr__(self, "text", f"{is_joined} {json.dumps(data, sort_keys=True)}")


@lru_cache(maxsize=32)
def _search(searched: _Searched) -> tuple[Topology, dict[str, Graph]]:
    """A node, and the graphs that NCCL finds on it."""
    spec, generation, cross_nic = searched.spec, searched.generation, searched.cross_nic
    topology = topology_of(spec, searched.gpus, searched.cpu)
    most = (1, _RING_CHANNELS_MAX)
    ring = find_graph(topology, Pattern.RING, generation, most, cross_nic)
    if ring is None:
        raise ConfigError(f"NCCL finds no ring on machine '{spec.name}'")
    found = {"ring": ring}
    same = (ring.channel_count, ring.channel_count)
    tree = find_graph(topology, Pattern.BALANCED_TREE, generation, same, cross_nic)
    if tree is not None:
        found["tree"] = tree
    nvls = find_graph(topology, Pattern.NVLS, generation, (1, CHANNELS_MAX), cross_nic)
    if nvls is not None and nvls.channel_count > 1:
        found["nvls"] = nvls
    return topology, found


def _of_equal_length(graphs: dict[str, Graph]) -> dict[str, Graph]:
    """Gives rings and trees the same number of channels: the smaller one."""
    if "tree" not in graphs:
        return graphs
    count = min(graphs["ring"].channel_count, graphs["tree"].channel_count)
    for name in ("ring", "tree"):
        graph = graphs[name]
        graphs[name] = replace(graph, channel_count=count, channels=graph.channels[:count])
    return graphs


def _nvls_channels(
    graphs: Mapping[str, Graph], nodes: int, generation: Generation, environment: Environment
) -> int:
    if "nvls" not in graphs:
        return 0
    of_one, of_several = _NVLS_CHANNELS[generation]
    least, most = (environment.number(f"NCCL_{word}_CTAS") for word in ("MIN", "MAX"))
    return max(least, min(most, of_one if nodes == 1 else of_several))


def _check_graph(name: str, graph: Graph, gpus: int) -> None:
    for number, channel in enumerate(graph.channels):
        if name in ("ring", "tree") and not connect.in_order(graph.pattern, gpus, channel):
            order = ", ".join(map(str, channel.gpus))
            raise ConfigError(
                f"channel {number} of the {name} graph is {order[:200]}; each of the {gpus} GPUs "
                f"of a host, 0 to {gpus - 1}, must be in it once"
            )


def _generation(spec: MachineSpec) -> tuple[Generation, str]:
    """The generation of a machine's GPUs, and a sentence about its origin."""
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
