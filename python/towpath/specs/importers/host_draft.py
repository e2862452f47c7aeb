# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A host in the form that importers produce, and the values that topology files do not contain.

Every value that is not in the file is a named default with its source here, or comes from a shipped
machine. The origin of each is recorded in the spec's notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from towpath.errors import ConfigError
from towpath.specs import shipped
from towpath.specs.importers.adapter_status import AdapterPort
from towpath.specs.input_file import YamlDocument
from towpath.specs.machine_spec import GraphSpec, LinkType, MachineSpec, TemplateSpec
from towpath.specs.spec_model import validated

# The shipped machine whose latencies and GPU costs are used where a file has none.
REFERENCE_MACHINE = "dgx-h100"
NOTES_MAX = 100

# GB/s per NVLink and direction that thread blocks can use, by compute capability.
_NVLINK_GB_PER_S = ((100, 40.1), (90, 20.6), (86, 12.0), (70, 20.0), (60, 18.0))
_NVLINK_SOURCE = "NCCL src/graph/topo.h, usable rate of one NVLink at sm_{sm}; {lines}"
_NVLINK_LINES = {80: "its line carries 25 GB/s", 90: "its line carries 25 GB/s"}

# Transfers per second and lane to bits per second: the encoding of each generation.
_PCIE_ENCODING = {
    2.5: (8 / 10, "8b/10b"),
    5.0: (8 / 10, "8b/10b"),
    8.0: (128 / 130, "128b/130b"),
    16.0: (128 / 130, "128b/130b"),
    32.0: (128 / 130, "128b/130b"),
    64.0: (236 / 256, "236 of 256 bytes of a flit"),
}
PCIE_GIGATRANSFERS = tuple(_PCIE_ENCODING)
PCIE_DEFAULT_GIGATRANSFERS = 8.0  # NCCL's reading of an empty link_speed, src/graph/topo.cc
PCIE_DEFAULT_WIDTH = 16  # NCCL's reading of link_width 0, src/graph/topo.cc
_PCIE_HOP_NS = 105
_PCIE_HOP_SOURCE = (
    "cut-through between x16 ports of a Broadcom PEX88000 switch (Linley Newsletter, 2019-09-24)"
)
_PCI_STEP_NS = 1000
_GPU_PCIE_SOURCE = (
    "derived: NCCL's PCIe step in LL, 1.0 us (src/graph/tuning.cc), less the blocks' {blocks:g} ns "
    "({machine}), over the two GPUs"
)
_NIC_PCIE_SOURCE = "derived: GPU to adapter, {path:g} ns ({machine}), less the GPU's {gpu:g} ns"
# Of the line's rate, what data has: 49 of 50 GB/s, as on the reference machine.
_USABLE_SHARE = 0.98
_USABLE_SOURCE = "of which data has 49 of 50 GB/s (nccl-tests#309)"
# Adapters below this share of the fastest one's rate are for other traffic.
_SLOW_SHARE = 0.25
_SOCKET_HOP_SOURCE = "assumed: that of a PCIe switch, for want of a trustworthy value"
_NO_MESSAGE_COST = {"value": 0, "source": "no value in the file; none is assumed"}


def pcie_gb_per_s(gigatransfers: float, width: int) -> float:
    """The rate of a PCIe link and direction in GB/s.

    >>> round(pcie_gb_per_s(16.0, 16), 3)
    31.508
    """
    return gigatransfers * width * _PCIE_ENCODING[gigatransfers][0] / 8


class HostDraft:
    """Collects devices and wires, and returns a checked GraphSpec."""

    def __init__(self, file: str, kind_of_file: str) -> None:
        self.notes: list[str] = []
        self._file = file
        self._source = f"{PurePath(file).name}, {kind_of_file}"[:1000]
        self._devices: list[dict[str, object]] = []
        self._wires: list[dict[str, object]] = []
        self._link_types: dict[str, object] = {}
        self._adapter_names: dict[str, str] = {}
        self._ports: dict[str, AdapterPort] = {}
        self._takes_unknown = False
        self._far: set[str] = set()
        self._gpu = ""

    def name_gpu(self, model: str) -> None:
        """States the model of the GPUs, which goes into the description."""
        self._gpu = f", GPUs: {model}"

    def leave_far(self, devices: Iterable[str]) -> None:
        """Leaves adapters out of the fabric that are far from every GPU."""
        self._far = set(devices)

    def name_adapters(
        self, names: dict[str, str], ports: dict[str, AdapterPort], *, takes_unknown: bool = False
    ) -> None:
        """Names the adapters of the host, with the state of their ports.

        Args:
            names: the name of each device, if the file has one.
            ports: the port of each name; empty if the status of adapters is unknown.
            takes_unknown: True if an adapter without a port joins the fabric at the donor's rate.

        Raises:
            ConfigError: no adapter of the host is among the ports.
        """
        self._adapter_names, self._ports = names, ports
        self._takes_unknown = takes_unknown
        if ports and not ports.keys() & names.values():
            known = ", ".join(sorted(ports)[:4])
            problem = f"names none of the adapters that are reported, such as {known}"
            raise ConfigError(problem, file=self._file, line=1)
        self._ports = {**ports, **self._ports_of_families(names, ports)}

    def _ports_of_families(
        self, names: dict[str, str], ports: dict[str, AdapterPort]
    ) -> dict[str, AdapterPort]:
        """Ports of adapters without a status, assumed to be like the ports of their family: names
        that differ only in their number.
        """
        assumed: dict[str, AdapterPort] = {}
        if not ports:
            return assumed
        of_family: dict[str, list[AdapterPort]] = {}
        for name, port in ports.items():
            of_family.setdefault(_family(name), []).append(port)
        for name in names.values():
            like = of_family.get(_family(name), [])
            kinds = {(port.layer, port.is_up, port.rate_gbit, port.words) for port in like}
            if name not in ports and len(kinds) == 1:
                assumed[name] = replace(like[0], device=name)
                self.note(
                    f"{name} is assumed to be like {like[0].device}: no status contains it; "
                    "ibstatus on this host prints its rate"
                )
        return assumed

    def add_device(self, name: str, kind: str) -> str:
        """Adds a device and returns its name."""
        self._devices.append({"name": name, "kind": kind})
        return name

    def add_wire(self, one: str, other: str, link_type: str, parallel: float = 1) -> None:
        """Joins two devices, both ways."""
        wire = {"between": [one, other], "link_type": link_type, "parallel": parallel}
        self._wires.append(wire)

    def note(self, text: str) -> None:
        """Records an assumption or omission; repeated notes and notes beyond the hundredth are
        dropped.
        """
        if text not in self.notes and len(self.notes) < NOTES_MAX:
            self.notes.append(text)

    def nvlink(self, compute_capability: int) -> str:
        """The link type of one NVLink of a GPU of this kind."""
        rated = (pair for pair in _NVLINK_GB_PER_S if compute_capability >= pair[0])
        generation, rate = next(rated, _NVLINK_GB_PER_S[-1])
        lines = _NVLINK_LINES.get(compute_capability, "its line carries more")
        source = _NVLINK_SOURCE.format(sm=generation, lines=lines)
        latency = _reference().link_types["nvlink"].latency_ns.model_dump()
        return self._link_type(f"nvlink_sm{compute_capability}", "nvlink", rate, source, latency)

    def take_xgmi(self, donor: MachineSpec) -> str:
        """Takes the link type of the GPU interconnect of a shipped machine."""
        self._take(donor, "xgmi")
        return "xgmi"

    def pcie(self, gigatransfers: float, width: int) -> str:
        """The link type between bridges and CPUs."""
        return self._pcie("pcie", gigatransfers, width, _PCIE_HOP_NS, _PCIE_HOP_SOURCE)

    def gpu_pcie(self, gigatransfers: float, width: int) -> str:
        """The link type that joins a GPU; it includes the time of the GPU's PCIe side."""
        blocks = _blocks_ns()
        source = _GPU_PCIE_SOURCE.format(blocks=blocks, machine=REFERENCE_MACHINE)
        return self._pcie("gpu_pcie", gigatransfers, width, _gpu_pcie_ns(), source)

    def nic_pcie(self, gigatransfers: float, width: int) -> str:
        """The link type that joins an adapter; it includes the time of the adapter and
        its proxy.
        """
        path = _reference().link_types["pcie"].latency_ns.value
        gpu = _gpu_pcie_ns()
        source = _NIC_PCIE_SOURCE.format(path=path, machine=REFERENCE_MACHINE, gpu=gpu)
        return self._pcie("nic_pcie", gigatransfers, width, path - gpu, source)

    def socket(self, rate_gb_per_s: float, source: str) -> str:
        """The link type between two CPUs of a host."""
        latency = {"value": _PCIE_HOP_NS, "source": _SOCKET_HOP_SOURCE}
        name = f"socket_{rate_gb_per_s:g}"
        return self._link_type(name, "socket", rate_gb_per_s, source, latency)

    def finish(self, complete_from: str | None) -> GraphSpec:
        """The spec, completed from a shipped machine if the caller names one.

        Raises:
            ConfigError: the file does not describe a usable host.
        """
        if not any(device["kind"] == "gpu" for device in self._devices):
            raise ConfigError("names no GPU; a machine needs at least one", file=self._file, line=1)
        fabric = None
        if complete_from is None:
            self.note(f"GPU costs are those of {REFERENCE_MACHINE}: the file has none")
            donor = _reference()
        else:
            donor = shipped.machine(complete_from)
            self.note(f"GPU costs and the fabric are those of {donor.name}: the file has none")
            fabric = self._take_fabric(donor)
        has_nvlink = any(device["kind"] == "nvswitch" for device in self._devices) or any(
            str(wire["link_type"]).startswith(("nvlink", "xgmi")) for wire in self._wires
        )
        if complete_from is not None and not has_nvlink:
            self._take_interconnect(donor)
        elif not has_nvlink:
            self.note("the file names no NVLink, so GPUs are joined through PCIe and CPUs only")
        data = {
            "form": "graph",
            "name": machine_name(self._file),
            "description": f"Imported from {self._source}{self._gpu}"[:1000],
            "source": self._source,
            "notes": self.notes,
            "link_types": self._link_types,
            "gpu_cost": donor.gpu_cost.model_dump(),
            "fabric": fabric,
            "devices": self._devices,
            "wires": self._wires,
        }
        return validated(GraphSpec, YamlDocument(data, {}), self._file)

    def _pcie(
        self, name: str, gigatransfers: float, width: int, latency_ns: float, latency_source: str
    ) -> str:
        encoding = _PCIE_ENCODING[gigatransfers][1]
        rate = round(pcie_gb_per_s(gigatransfers, width), 3)
        source = f"{gigatransfers:g} GT/s x {width} lanes x {encoding} / 8 bits, raw"
        latency = {"value": latency_ns, "source": latency_source}
        return self._link_type(
            f"{name}_{gigatransfers:g}gt_x{width}", "pcie", rate, source, latency
        )

    def _link_type(self, name: str, kind: str, rate: float, source: str, latency: object) -> str:
        self._link_types.setdefault(
            name,
            {
                "kind": kind,
                "rate_gb_per_s": {"value": rate, "source": source},
                "latency_ns": latency,
                "message_overhead_ns": _NO_MESSAGE_COST,
            },
        )
        return name

    def _take(self, donor: MachineSpec, link_type: str) -> None:
        self._link_types[link_type] = donor.link_types[link_type].model_dump()

    def _take_fabric(self, donor: MachineSpec) -> dict[str, object] | None:
        if donor.fabric is None or not any(device["kind"] == "nic" for device in self._devices):
            return None
        for _, link_type in donor.fabric.used_link_types():
            self._take(donor, link_type)
        self._join_fabric(donor.link_types[donor.fabric.link_type])
        return donor.fabric.model_dump()

    def _join_fabric(self, like: LinkType) -> None:
        """The adapters that join the fabric, and their rate: adapters that are up and not far
        slower than the fastest.
        """
        adapters = [device for device in self._devices if device["kind"] == "nic"]
        port_of = {
            str(device["name"]): self._ports.get(self._adapter_names.get(str(device["name"]), ""))
            for device in adapters
        }
        usable = {name: port for name, port in port_of.items() if port and port.is_up is not False}
        fastest = max((port.rate_gbit or 0 for port in usable.values()), default=0)
        left_out: dict[str, list[str]] = {}
        for device in adapters:
            name = str(device["name"])
            reason = self._reason_to_stay_out(name, port_of[name], fastest)
            if reason is not None:
                device["joins_fabric"] = False
                left_out.setdefault(reason, []).append(name)
            elif (port := usable.get(name)) and port.rate_gbit:
                device["fabric_link_type"] = self._port_link_type(port, like)
        if len(adapters) == sum(map(len, left_out.values())):
            reasons = "; ".join(left_out)
            raise ConfigError(f"has no adapter for a fabric: {reasons}", file=self._file, line=1)
        for reason, names in left_out.items():
            self.note(f"not part of the fabric: {', '.join(names)}, {reason}")

    def _reason_to_stay_out(
        self, device: str, port: AdapterPort | None, fastest_gbit: float
    ) -> str | None:
        name = self._adapter_names.get(device, "")
        if device in self._far:
            return "which are far from every GPU (SYS); other adapters are nearer"
        if not self._ports:
            if "eth" in name.lower():
                return "which have Ethernet names; ibstatus would tell their rate"
            return None
        if port is None:
            return None if self._takes_unknown else "which no status names"
        if port.is_up is False:
            return "whose ports are down"
        if port.rate_gbit is not None and port.rate_gbit < fastest_gbit * _SLOW_SHARE:
            return f"far below the {fastest_gbit:g} Gb/s of the fastest"
        if port.rate_gbit is None and port.layer == "Ethernet":
            return "which are Ethernet without a known rate; ibstatus would tell it"
        return None

    def _port_link_type(self, port: AdapterPort, like: LinkType) -> str:
        """The link type of an adapter's port: its own rate, and the latencies of
        another link type.
        """
        assert port.rate_gbit is not None
        layer = (port.layer or "InfiniBand").lower()
        rate = round(port.rate_gbit / 8 * _USABLE_SHARE, 3)
        source = f"{port.words} as {port.origin} states, {_USABLE_SOURCE}"
        latency = like.latency_ns.model_dump()
        if layer == "ethernet":
            latency["source"] = "assumed for Ethernet: " + latency["source"]
        return self._link_type(f"{layer}_{port.rate_gbit:g}g", "network", rate, source, latency)

    def _take_interconnect(self, donor: MachineSpec) -> None:
        gpus = sum(device["kind"] == "gpu" for device in self._devices)
        if not isinstance(donor, TemplateSpec) or donor.hosts.gpu_interconnect is None:
            return
        if donor.gpus_per_host != gpus:
            problem = (
                f"has {gpus} GPUs, but those of {donor.name} come in {donor.gpus_per_host}; "
                "--complete-from pcie-8gpu describes GPUs without NVLink"
            )
            raise ConfigError(problem, file=self._file, line=1)
        connect = donor.hosts.gpu_interconnect
        self._take(donor, connect.link_type)
        layout = donor.sized(hosts=1).layout()
        names = [device.name.removeprefix("host0/") for device in layout.devices]
        if connect.shape == "switch":
            self.add_device("nvswitch", "nvswitch")
        for wire in layout.wires:
            if wire.link_type == connect.link_type:
                self.add_wire(names[wire.a], names[wire.b], wire.link_type, wire.parallel)
        self.note(f"the GPU interconnect is that of {donor.name}: the file has none")


def _family(name: str) -> str:
    """The name of an adapter without its number: "mlx5_ib" of "mlx5_ib3"."""
    return name.rstrip("0123456789")


def _reference() -> MachineSpec:
    return shipped.machine(REFERENCE_MACHINE)


def _blocks_ns() -> float:
    """Time of the thread blocks at both ends of an LL transfer."""
    cost = _reference().gpu_cost.ll
    return cost.send_overhead_ns.value + cost.receive_overhead_ns.value


def _gpu_pcie_ns() -> float:
    return (_PCI_STEP_NS - _blocks_ns()) / 2


def machine_name(file: str) -> str:
    """A file's name without its suffix, shortened to a valid machine name."""
    allowed = re.compile(r"[^A-Za-z0-9_.-]", re.ASCII)
    stem = allowed.sub("-", PurePath(file).stem)
    return stem.lstrip("-_.")[:64] or "imported"
