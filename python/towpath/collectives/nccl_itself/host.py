# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A host for NCCL or RCCL: its topology file, and the description of its virtual GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from towpath.collectives.nccl.communicator import Cpu, Generation
from towpath.collectives.nccl.topology import Link, Node, Topology

_NVSWITCH_BUS = "ffff:ff:00.0"
_PCIE_SPEEDS = {3.0: "2.5", 6.0: "5.0", 12.0: "8.0", 24.0: "16.0", 48.0: "32.0", 96.0: "64.0"}
_CPUS: dict[Cpu, str] = {
    "intel": 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"',
    "amd": 'arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49"',
    "arm": 'arch="arm64"',
    "other": 'arch="x86_64" vendor="Other" familyid="0" modelid="0"',
}
_BRIDGE = (
    'class="0x060400" vendor="0x0000" device="0x0000" subsystem_vendor="0x0000" '
    'subsystem_device="0x0000"'
)


@dataclass(frozen=True)
class GpuModel:
    """A GPU as CUDA or HIP describes it.

    `nvlink_gb_per_s` is the library's rate of one NVLink or xGMI link. `architecture` is AMD's
    number for a list of features, 0 for NVIDIA's GPUs.
    """

    name: str
    major: int
    minor: int
    multiprocessors: int
    memory_bytes: int
    shared_bytes: int
    nvlink_gb_per_s: float
    has_multicast: bool
    architecture: int = 0

    @property
    def is_of_amd(self) -> bool:
        """True if RCCL runs on it."""
        return self.architecture != 0

    @property
    def pci_class(self) -> str:
        """The class of the GPU on PCIe: a display controller, or an accelerator."""
        return "0x120000" if self.is_of_amd else "0x030200"


# From data sheets. The rate of a link is from src/graph/topo.h of each library. The name of AMD's
# GPU is its architecture.
GPU_MODELS: dict[Generation, GpuModel] = {
    "volta": GpuModel("NVIDIA V100", 7, 0, 80, 32 << 30, 96 << 10, 20.0, False),
    "ampere": GpuModel("NVIDIA A100", 8, 0, 108, 80 << 30, 163 << 10, 20.0, False),
    "hopper": GpuModel("NVIDIA H100", 9, 0, 132, 80 << 30, 227 << 10, 20.6, True),
    "blackwell": GpuModel("NVIDIA B200", 10, 0, 148, 180 << 30, 227 << 10, 40.1, True),
    "mi300": GpuModel("gfx942", 9, 4, 304, 192 << 30, 64 << 10, 48.0, False, 38911),
}


@dataclass(frozen=True)
class NcclHost:
    """The two files that the library and the virtual GPUs read.

    Attributes:
        topology: the text for NCCL_TOPO_FILE.
        description: the text for TOWPATH_VIRTUAL_GPU_FILE.
        gpus: how many there are.
        is_of_amd: RCCL runs there, not NCCL.
    """

    topology: str
    description: str
    gpus: int
    is_of_amd: bool = False


def host_of(topology: Topology, generation: Generation, cpu: Cpu) -> NcclHost:
    """A host of a machine.

    Args:
        topology: the host as NCCL's imitation has it.
        generation: of its GPUs.
        cpu: whose processors it has.
    """
    model = GPU_MODELS[generation]
    writer = _Writer(topology, model, cpu)
    text = "\n".join(writer.system())
    description = "\n".join(writer.description()) + "\n"
    return NcclHost(text + "\n", description, len(topology.gpus), model.is_of_amd)


class _Writer:
    def __init__(self, topology: Topology, model: GpuModel, cpu: Cpu) -> None:
        self._topology = topology
        self._model = model
        self._cpu = cpu
        self._bus: dict[Node, str] = {}
        self._last_bus = 0
        self._adapter_of = {_only(net, "net").target: net.index for net in topology.nets}

    def system(self) -> Iterator[str]:
        for gpu in self._topology.gpus:
            self._bus[gpu] = f"0000:{0x10 + gpu.index:02x}:00.0"
        yield f'<system version="{2 if self._model.is_of_amd else 1}">'
        for cpu in self._topology.cpus:
            yield f'  <cpu numaid="{cpu.index}" affinity="ffffffff,ffffffff" {_CPUS[self._cpu]}>'
            for link in cpu.links:
                if link.kind == "pci":
                    yield from self._pci(link, cpu, "    ")
            yield "  </cpu>"
        yield "</system>"

    def description(self) -> Iterator[str]:
        model = self._model
        has_switch = bool(self._topology.switches)
        yield "driver version=12080"
        for gpu in self._topology.gpus:
            yield (
                f"device bus={self._bus[gpu]} name={model.name.replace(' ', '-')} "
                f"major={model.major} minor={model.minor} multiprocessors={model.multiprocessors} "
                f"memory_bytes={model.memory_bytes} shared_bytes={model.shared_bytes} "
                f"multicast={int(model.has_multicast and has_switch)} fabric_handles=0 "
                "cluster=none clique=0"
            )
            if model.is_of_amd:
                for link in nvlinks(gpu, model, self._bus_of()):
                    yield f"nvlink device={gpu.index} remote={link['target']} switch=0"
        yield "peers all=1"
        for net in self._topology.nets:
            speed = round(_only(net, "net").rate_gb_per_s * 8000)
            yield (
                f"adapter name=mlx5_{net.index} pci_path=none guid={net.index + 1:x} "
                f"speed_mbit_per_s={speed} port=1 gpu_direct=1"
            )

    def _pci(self, link: Link, parent: Node, indent: str) -> Iterator[str]:
        node = link.target
        speed, width = _pcie_link(link.rate_gb_per_s)
        wire = f'link_speed="{speed} GT/s PCIe" link_width="{width}"'
        match node.kind:
            case "gpu" if self._model.is_of_amd:
                # The accelerator is behind a bridge of its own package.
                self._last_bus += 1
                bus = f"0002:{self._last_bus:02x}:00.0"
                yield f'{indent}<pci busid="{bus}" {_BRIDGE} {wire}>'
                yield f'{indent}  <pci busid="{self._bus[node]}" class="0x120000" {wire}>'
                yield from self._gpu(node, indent + "    ")
                yield f"{indent}  </pci>"
            case "gpu":
                yield f'{indent}<pci busid="{self._bus[node]}" class="0x030200" {wire}>'
                yield from self._gpu(node, indent + "  ")
            case "nic":
                number = self._adapter_of[node]
                yield f'{indent}<pci busid="0001:{0x10 + number:02x}:00.0" class="0x020700" {wire}>'
                yield from self._nic(node, number, indent + "  ")
            case _:
                self._last_bus += 1
                bus = f"0002:{self._last_bus:02x}:00.0"
                yield f'{indent}<pci busid="{bus}" {_BRIDGE} {wire}>'
                for child in node.links:
                    if child.kind == "pci" and child.target is not parent:
                        yield from self._pci(child, node, indent + "  ")
        yield f"{indent}</pci>"

    def _gpu(self, gpu: Node, indent: str) -> Iterator[str]:
        model = self._model
        kind = f'sm="{10 * model.major + model.minor}"'
        if model.is_of_amd:
            sm = model.multiprocessors
            kind = f'sm="{sm}" gcn="{model.name}" arch="{model.architecture}"'
        yield f'{indent}<gpu dev="{gpu.index}" {kind} rank="{gpu.index}" gdr="1">'
        for attributes in nvlinks(gpu, model, self._bus_of()):
            words = " ".join(f'{name}="{value}"' for name, value in attributes.items())
            yield f"{indent}  <{'xgmi' if model.is_of_amd else 'nvlink'} {words}/>"
        yield f"{indent}</gpu>"

    def _bus_of(self) -> dict[int, str]:
        return {node.index: bus for node, bus in self._bus.items()}

    def _nic(self, nic: Node, number: int, indent: str) -> Iterator[str]:
        rate = next(link.rate_gb_per_s for link in nic.links if link.kind == "net")
        name = quoteattr(f"mlx5_{number}")
        yield f"{indent}<nic>"
        yield (
            f'{indent}  <net name={name} dev="{number}" speed="{round(rate * 8000)}" port="1" '
            f'latency="0.0" guid="0x{number + 1:x}" maxconn="65536" gdr="1" keep="1"/>'
        )
        yield f"{indent}</nic>"


def nvlinks(gpu: Node, model: GpuModel, bus_of: Mapping[int, str]) -> Iterator[dict[str, str]]:
    """The attributes of the NVLinks or xGMI links of a GPU, an element per peer or switch.

    Args:
        gpu: the GPU.
        model: with the library's rate of a link.
        bus_of: the bus ids of GPUs by their numbers.
    """
    for link in gpu.links:
        if link.kind != "nvl":
            continue
        count = max(1, round(link.rate_gb_per_s / model.nvlink_gb_per_s))
        is_gpu = link.target.kind == "gpu"
        yield {
            "target": bus_of[link.target.index] if is_gpu else _NVSWITCH_BUS,
            "count": str(count),
            "tclass": model.pci_class if is_gpu else "0x068000",
        }


def _only(node: Node, kind: str) -> Link:
    return next(link for link in node.links if link.kind == kind)


def _pcie_link(rate_gb_per_s: float) -> tuple[str, int]:
    """The speed and width to which NCCL gives this rate, the widest that fits."""
    for width in (16, 8, 4, 2, 1):
        for full, speed in _PCIE_SPEEDS.items():
            if abs(full * width / 16 - rate_gb_per_s) < 0.05 * rate_gb_per_s:
                return speed, width
    nearest = min(_PCIE_SPEEDS, key=lambda full: abs(full - rate_gb_per_s))
    return _PCIE_SPEEDS[nearest], 16
