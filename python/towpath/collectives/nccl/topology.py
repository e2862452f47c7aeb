# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One node in NCCL's terms: devices, links with NCCL's rates, and the best path between any two.

Follows src/graph/topo.cc and src/graph/paths.cc (NVIDIA/nccl, commit 5067397c). NCCL plans with its
own rates: 12 GB/s for PCIe of generation 3 with 16 lanes, the line rate for an adapter, and the
rate that thread blocks can use for an NVLink. A machine of Towpath has the usable rate of each
link, from which NCCL's rates are derived. Adapters are assumed to read and write the memory of GPUs
directly (GPUDirect RDMA).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from towpath.collectives.nccl.communicator import Cpu, Path
from towpath.errors import ConfigError
from towpath.specs.machine_spec import Layout, MachineSpec

NodeKind = Literal["gpu", "pci", "nvs", "cpu", "nic", "net"]
LinkKind = Literal["nvl", "pci", "sys", "net"]

LOCAL_RANKS_MAX = 72  # NCCL_MAX_LOCAL_RANKS, src/include/device.h
_LOCAL_GB_PER_S = 5000.0  # LOC_BW, src/graph/topo.h
# kvDictPciGen of src/graph/topo.cc: 12 GB/s for 16 lanes at 8 GT/s, whose line carries 15.754.
_PCIE_PART = 12.0 / 15.754
_PCIE_RATES = tuple(
    12.0 * 2.0**generation * lanes / 16 for generation in range(-1, 4) for lanes in (4, 8, 16)
)
# AMD_BW, SRP_QPI_BW, ARM_BW and LOC_BW of src/graph/topo.h.
_BETWEEN_CPUS: dict[Cpu, float] = {"amd": 16.0, "intel": 22.0, "arm": 6.0, "other": 5000.0}
# Line rates of adapters, Gb/s over 8.
_ADAPTER_RATES = tuple(gigabits / 8 for gigabits in (10, 25, 40, 50, 100, 200, 400, 800, 1600))
_NEARNESS = 0.1
_LINK_PATH = {"nvl": Path.NVL, "pci": Path.PIX, "sys": Path.SYS, "net": Path.LOC}
_DEVICE_KIND: dict[str, NodeKind] = {
    "gpu": "gpu", "nvswitch": "nvs", "nic": "nic", "pcie_bridge": "pci", "cpu": "cpu",
}  # fmt: skip


@dataclass(eq=False, repr=False)  # nodes and links name each other in circles
class Link:
    """One direction of a wire. `left_mb_per_s` is the rate that the channels found so far leave
    free.
    """

    kind: LinkKind
    target: Node
    rate_gb_per_s: float
    left_mb_per_s: float

    def __repr__(self) -> str:
        left = self.left_mb_per_s / 1e3
        return f"{self.kind} {left:g} of {self.rate_gb_per_s:g} to {self.target!r}"


@dataclass
class Way:
    """A path from one node to another."""

    links: tuple[Link, ...]
    rate_gb_per_s: float
    path: Path


_NO_WAY = Way((), 0.0, Path.DIS)


@dataclass(eq=False, repr=False)
class Node:
    """A device; `index` counts the devices of its kind. `ways` has the best path to each node."""

    kind: NodeKind
    index: int
    links: list[Link] = field(default_factory=list)
    ways: dict[Node, Way] = field(default_factory=dict)

    def way(self, target: Node) -> Way:
        """The best path to a node; of class DIS if no path exists."""
        return self.ways.get(target, _NO_WAY)

    def __repr__(self) -> str:
        return f"{self.kind}{self.index}"


@dataclass
class Topology:
    """A node of a cluster. `is_joined` is True if there are other nodes."""

    gpus: list[Node]
    nets: list[Node]
    switches: list[Node]
    cpus: list[Node]
    bridges: list[Node]
    cpu: Cpu
    is_joined: bool
    notes: list[str] = field(default_factory=list)
    net_left: list[float] = field(default_factory=list)
    nearest_gpu: list[int | None] = field(default_factory=list)

    def nearest(self, node: Node, others: list[Node]) -> list[int]:
        """The nodes with the fastest path, and among those the nearest ones, by index."""
        best: list[int] = []
        rate, path = 0.0, Path.DIS
        for number, other in enumerate(others):
            way = node.way(other)
            if way.rate_gb_per_s > rate or (way.rate_gb_per_s == rate and way.path < path):
                rate, path, best = way.rate_gb_per_s, way.path, []
            if way.rate_gb_per_s == rate and way.path == path and rate > 0:
                best.append(number)
        return best

    def net_of(self, gpu: int, channel: int) -> int | None:
        """The adapter that a GPU prefers for a channel; None if it does not reach any."""
        nets = self.nearest(self.gpus[gpu], self.nets)
        if not nets:
            return None
        sharing = self.nearest(self.nets[nets[0]], self.gpus)
        first = gpu % len(sharing)
        if len(nets) & (len(nets) - 1) == 0:
            first = _mirrored(first, len(nets))
        each = -(-len(nets) // len(sharing))
        return nets[(first + channel % each) % len(nets)]

    def nets_of(self, gpu: int) -> list[int]:
        """The adapters that a GPU prefers, in the order of channels."""
        found: list[int] = []
        for channel in range(64):
            net = self.net_of(gpu, channel)
            if net is None or (found and net == found[0]):
                break
            found.append(net)
        return found


def topology_of(spec: MachineSpec, gpus_per_host: int, cpu: Cpu) -> Topology:
    """The topology of the first host of a machine; all hosts are equal.

    Args:
        spec: the machine, with the number of hosts in use.
        gpus_per_host: number of a host's GPUs with ranks, counted from the first.
        cpu: vendor of the hosts' processors, which a machine file does not contain.

    Raises:
        ConfigError: NCCL does not support this number of GPUs in one node.
    """
    if gpus_per_host > LOCAL_RANKS_MAX:
        raise ConfigError(
            f"machine '{spec.name}' has {gpus_per_host} GPUs per host; NCCL supports at most "
            f"{LOCAL_RANKS_MAX}"
        )
    builder = _Builder(spec, gpus_per_host, cpu)
    topology = builder.topology()
    _find_paths(topology)
    return topology


class _Builder:
    """Converts devices and wires of one host into nodes and links."""

    def __init__(self, spec: MachineSpec, gpus_per_host: int, cpu: Cpu) -> None:
        self._spec = spec
        self._layout: Layout = spec.sized(hosts=1).layout()
        self._nodes: dict[int, Node] = {}
        self._all: dict[str, list[Node]] = {kind: [] for kind in _DEVICE_KIND.values()}
        self._used = gpus_per_host
        self._cpu = cpu
        self._notes: list[str] = []
        self._adapter_rate: dict[int, float] = {}

    def topology(self) -> Topology:
        self._add_devices()
        self._add_wires()
        if not self._all["cpu"]:
            self._add_cpus()
        nets = []
        for number, nic in enumerate(self._all["nic"]):
            net = Node("net", number)
            _join(nic, net, "net", self._adapter_rate[number])
            nets.append(net)
        return Topology(
            gpus=self._all["gpu"],
            nets=nets,
            switches=self._all["nvs"],
            cpus=self._all["cpu"],
            bridges=self._all["pci"],
            cpu=self._cpu,
            is_joined=self._spec.host_count > 1,
            notes=self._notes,
            net_left=[self._adapter_rate[number] for number in range(len(nets))],
        )

    def _new(self, kind: NodeKind) -> Node:
        node = Node(kind, len(self._all[kind]))
        self._all[kind].append(node)
        return node

    def _add_devices(self) -> None:
        for position, device in enumerate(self._layout.devices):
            if device.host != 0 or device.kind not in _DEVICE_KIND:
                continue
            kind = _DEVICE_KIND[device.kind]
            if kind == "gpu" and len(self._all["gpu"]) == self._used:
                continue
            self._nodes[position] = self._new(kind)
        rate = self._fabric_gb_per_s()
        for nic in self._all["nic"]:
            self._adapter_rate[nic.index] = rate

    def _fabric_gb_per_s(self) -> float:
        if self._spec.fabric is None:
            return 0.0
        rate = self._spec.link_types[self._spec.fabric.link_type].rate_gb_per_s.value
        return _nearest_rate(rate, _ADAPTER_RATES)

    def _add_wires(self) -> None:
        loose: list[tuple[Node, Node, float]] = []
        for wire in self._layout.wires:
            one, other = self._nodes.get(wire.a), self._nodes.get(wire.b)
            if one is None or other is None:
                continue
            link_type = self._spec.link_types[wire.link_type]
            rate = link_type.rate_gb_per_s.value * wire.parallel
            match link_type.kind:
                case "nvlink":
                    _join(one, other, "nvl", rate)
                case "socket":
                    _join(one, other, "sys", rate)
                case _ if {one.kind, other.kind} == {"gpu", "nic"}:
                    loose.append((one, other, _nearest_rate(rate * _PCIE_PART, _PCIE_RATES)))
                case _:
                    _join(one, other, "pci", _nearest_rate(rate * _PCIE_PART, _PCIE_RATES))
        self._add_bridges(loose)

    def _add_bridges(self, loose: list[tuple[Node, Node, float]]) -> None:
        """Adds the bridges that a template omits between adapters and GPUs: adapters and GPUs that
        share one of either share a bridge.
        """
        group: dict[Node, set[Node]] = {}
        rate_of: dict[Node, float] = {}
        for one, other, rate in loose:
            merged = group.get(one, {one}) | group.get(other, {other})
            for node in merged:
                group[node] = merged
            for node in (one, other):
                rate_of[node] = max(rate, rate_of.get(node, 0.0))
        done: set[Node] = set()
        for node in rate_of:
            if node in done:
                continue
            bridge = self._new("pci")
            for member in sorted(group[node], key=lambda one: (one.kind, one.index)):
                _join(member, bridge, "pci", rate_of[member])
                done.add(member)

    def _add_cpus(self) -> None:
        """Adds the CPUs that a template omits. Devices without a CPU are assigned one in the order
        of their GPUs: the first half to CPU 0, the rest to CPU 1.
        """
        loose = [
            node
            for kind in ("pci", "gpu", "nic")
            for node in self._all[kind]
            if not any(link.kind == "pci" for link in node.links) or kind == "pci"
        ]
        loose.sort(key=_first_gpu)
        sockets = 2 if len(loose) > 3 else 1
        cpus = [self._new("cpu") for _ in range(sockets)]
        rates = [link.rate_gb_per_s for node in loose for link in node.links if link.kind == "pci"]
        rate = max(rates, default=48.0)
        for number, node in enumerate(loose):
            _join(node, cpus[number * sockets // len(loose)], "pci", rate)
        if sockets == 2:
            between = _BETWEEN_CPUS[self._cpu]
            _join(cpus[0], cpus[1], "sys", between)
        self._notes.append(
            f"the machine names no CPU; {sockets} with the GPUs shared between them is assumed"
            if sockets > 1
            else "the machine names no CPU; one is assumed"
        )


def _first_gpu(node: Node) -> int:
    """The least number of the GPUs at a bridge. Adapters without a GPU come last."""
    if node.kind == "gpu":
        return node.index
    numbers = [link.target.index for link in node.links if link.target.kind == "gpu"]
    return min(numbers, default=LOCAL_RANKS_MAX)


def _join(one: Node, other: Node, kind: LinkKind, rate: float) -> None:
    """Adds a wire, or its rate to an existing wire of its kind."""
    for near, far in ((one, other), (other, one)):
        for link in near.links:
            if link.target is far and link.kind == kind:
                link.rate_gb_per_s += rate
                link.left_mb_per_s += rate * 1e3
                break
        else:
            near.links.append(Link(kind, far, rate, rate * 1e3))
            near.links.sort(key=lambda link: _LINK_PATH[link.kind] == Path.SYS)


def _nearest_rate(rate: float, known: tuple[float, ...]) -> float:
    """NCCL's rate for a link; the link's own rate if no rate of NCCL is close."""
    nearest = min(known, key=lambda one: abs(one - rate))
    return nearest if abs(nearest - rate) <= _NEARNESS * nearest else rate


def _mirrored(value: int, power_of_two: int) -> int:
    bits = power_of_two.bit_length() - 1
    return int(f"{value % power_of_two:0{bits}b}"[::-1], 2) if bits else 0


def _find_paths(topology: Topology) -> None:
    for base in (
        *topology.cpus, *topology.gpus, *topology.nets, *topology.switches,
    ):  # fmt: skip
        _find_paths_to(base)
    _go_through_cpus(topology)
    for number in range(len(topology.nets)):
        topology.nearest_gpu.append(_nearest_gpu(topology, number))
    _go_through_peers(topology)
    topology.nearest_gpu = [_nearest_gpu(topology, number) for number in range(len(topology.nets))]


def _find_paths_to(base: Node) -> None:
    """Finds paths breadth first. A path of a nearer class wins, then a faster one, then a shorter
    one.
    """
    base.ways[base] = Way((), _LOCAL_GB_PER_S, Path.LOC)
    front = [base]
    while front:
        reached: list[Node] = []
        for node in front:
            way = node.ways[base]
            for link in node.links:
                if not _passes(node, link, way, base):
                    continue
                found = _extended(node, link, way, base)
                known = link.target.ways.get(base, _NO_WAY)
                better = (found.path, -found.rate_gb_per_s, len(found.links))
                if better < (known.path, -known.rate_gb_per_s, len(known.links)):
                    link.target.ways[base] = found
                    if link.target not in reached:
                        reached.append(link.target)
        front = reached


def _passes(node: Node, link: Link, way: Way, base: Node) -> bool:
    """True if a GPU may forward on this path: only data that arrives by NVLink, and once."""
    if node is base or node.kind != "gpu":
        return True
    return link.kind == "nvl" and link.target.kind == "gpu" and len(way.links) <= 1


def _extended(node: Node, link: Link, way: Way, base: Node) -> Way:
    path = _LINK_PATH[link.kind]
    if node.kind == "pci" and link.target.kind == "pci":
        path = Path.PXB
    if link.kind == "pci" and "cpu" in (node.kind, link.target.kind):
        path = Path.PHB
    if node.kind == "gpu" and node is not base and way.path == path == Path.NVL:
        path = Path.NVB
    back = next(one for one in link.target.links if one.target is node and one.kind == link.kind)
    return Way((back, *way.links), min(way.rate_gb_per_s, link.rate_gb_per_s), max(path, way.path))


def _go_through_cpus(topology: Topology) -> None:
    """Routes paths between GPUs through the memory of a CPU if they would cross a PCIe bridge."""
    farthest = Path.PXB
    if topology.cpu == "amd" and len(topology.gpus) <= 2:
        farthest = Path.SYS
    for target in topology.gpus:
        cpus = topology.nearest(target, topology.cpus)
        if not cpus:
            continue
        cpu = topology.cpus[min(cpus, key=lambda one: len(target.way(topology.cpus[one]).links))]
        for source in topology.gpus:
            if source is not target and source.way(target).path > farthest:
                _through(source, cpu, target)


def _go_through_peers(topology: Topology) -> None:
    """PXN: routes paths to a distant adapter by NVLink through the GPU next to it. Only for
    sending, as in NCCL.
    """
    for number, net in enumerate(topology.nets):
        nearest = topology.nearest_gpu[number]
        if nearest is None:
            continue
        peer = topology.gpus[nearest]
        for gpu in topology.gpus:
            there, own = peer.way(net), gpu.way(net)
            if (
                gpu is not peer
                and there.path <= Path.P2C
                and peer.way(gpu).path <= Path.NVL
                and (there.rate_gb_per_s > own.rate_gb_per_s or own.path > Path.PXN)
            ):
                _through(gpu, peer, net)


def _through(source: Node, between: Node, target: Node) -> None:
    first, second = source.way(between), between.way(target)
    path = Path.PXN if between.kind == "gpu" else max(first.path, second.path)
    rate = min(first.rate_gb_per_s, second.rate_gb_per_s)
    source.ways[target] = Way((*first.links, *second.links), rate, path)


def _nearest_gpu(topology: Topology, number: int) -> int | None:
    """The GPU that would use this adapter first."""
    gpus = topology.nearest(topology.nets[number], topology.gpus)
    for channel in range(64):
        for gpu in gpus:
            if topology.net_of(gpu, channel) == number:
                return gpu
    return None
