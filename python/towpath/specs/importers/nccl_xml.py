# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads NCCL's description of a system (NCCL_TOPO_FILE), or lstopo's in the same form.

A system contains <cpu>s with trees of <pci>, whose leaves are <gpu> and <nic>. Files for virtual
machines omit the leaves. A <pci> of class GPU or network is then the device itself. GPUs and
adapters are numbered by `dev` if every one has it, and otherwise by bus id, as in CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from towpath.errors import quoted
from towpath.specs.importers import lstopo_xml
from towpath.specs.importers.adapter_status import AdapterPort
from towpath.specs.importers.gpu_models import capability_of_pci
from towpath.specs.importers.host_draft import (
    PCIE_DEFAULT_GIGATRANSFERS,
    PCIE_DEFAULT_WIDTH,
    PCIE_GIGATRANSFERS,
    HostDraft,
)
from towpath.specs.machine_spec import GraphSpec
from towpath.specs.xml_file import XmlElement, parse_xml

_CHILDREN = {
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic", "pcilink"),
    "gpu": ("nvlink", "c2c"),
    "nic": ("net",),
}
_LINK_SPEED = re.compile(r"([0-9]{1,2}(?:\.[0-9])?) GT/s(?: PCIe)?\Z")
_CLASS = re.compile(r"0x[0-9a-fA-F]{6}\Z")
_GPU_CLASSES = ("0x0302", "0x0300")
_NIC_CLASSES = ("0x0207", "0x0200")
_BRIDGE_CLASS = "0x0604"
_NVSWITCH_CLASS = "0x0680"
_CPUS_MAX = 64
_NVLINKS_MAX = 64
_GPU_NUMBER_MAX = 4095

# GB/s between two sockets, from NCCL's src/graph/topo.h, from a model or family upwards (topo.cc).
_INTEL_SOCKETS_GB_PER_S = ((207, 40.0), (143, 22.0), (85, 10.0))  # ERP, SRP, SKL
_INTEL_FAMILY = 6
_INTEL_OTHER_GB_PER_S = 6.0
# By family: Zen 5, and Zen 3 and 4. Older dumps write the extended family, 0xAF for 25.
_AMD_SOCKET_GB_PER_S = {26: 32.0, 191: 32.0, 25: 24.0, 175: 24.0}
_AMD_OTHER_GB_PER_S = 16.0
_OTHER_SOCKET_GB_PER_S = 6.0
_NET_RATE_MAX_MBIT = 10_000_000
_NET_DEFAULT_MBIT = 10_000  # NCCL's reading of a speed that is not positive, src/graph/topo.cc


@dataclass
class _Leaf:
    """A GPU or adapter: its place, its links, and its data in the file."""

    element: XmlElement
    order: tuple[int, str]
    parent: str
    pci: XmlElement | None
    name: str = ""


def has_nvlink(text: str, file: str) -> bool | None:
    """True if a system file has NVLinks. None means that it may omit them.

    A dump of a running job lists all NVLinks. A file for virtual machines has no <gpu>, and
    NCCL finds the NVLinks itself.

    Raises:
        ConfigError: the text is not XML.
    """
    gpus = list(_descendants(_parse(text, file)[0], "gpu"))
    if any(child.tag == "nvlink" for gpu in gpus for child in gpu.children):
        return True
    return False if gpus else None


def gpu_count(text: str, file: str) -> int:
    """Number of GPUs in a system file.

    Raises:
        ConfigError: the text is not XML.
    """
    pci = _descendants(_parse(text, file)[0], "pci")
    return sum(each.attributes.get("class", "").startswith(_GPU_CLASSES) for each in pci)


def parse_system(
    text: str,
    file: str,
    complete_from: str | None = None,
    ports: dict[str, AdapterPort] | None = None,
) -> GraphSpec:
    """The host that a system file describes.

    Args:
        text: the file's content.
        file: name of the file, for errors and for the machine's name.
        complete_from: the shipped machine that supplies missing values: the GPU interconnect, GPU
            costs, and the fabric between hosts.
        ports: ports of adapters from ibstatus and rdma link, by name, for adapters whose rate the
            file omits.

    Raises:
        ConfigError: the text is not such a file, or its content is wrong.
    """
    root, notes = _parse(text, file)
    if root.tag == "graphs":
        raise root.error("lists channels; a <system> file describes a machine")
    if root.tag != "system":
        raise root.error("is not the start of an NCCL topology; it must be <system>")
    root.check_children(_CHILDREN)
    how = "a running job with NCCL_TOPO_DUMP_FILE=FILE writes a file with GPUs"
    kind_of_file = "an NCCL topology file"
    if lstopo_xml.is_lstopo(text):
        how, kind_of_file = "lstopo lists GPUs of NVIDIA on the host itself", "the XML of lstopo"
    if not any(
        each.tag == "gpu" or each.attributes.get("class", "").startswith(_GPU_CLASSES)
        for tag in ("gpu", "pci")
        for each in _descendants(root, tag)
    ):
        raise root.error(f"names no GPU; {how}")
    draft = HostDraft(file, kind_of_file)
    for note in notes:
        draft.note(note)
    return _System(root, draft, ports or {}).spec(complete_from)


def _parse(text: str, file: str) -> tuple[XmlElement, list[str]]:
    """The root of a file, and the assumptions about it."""
    if lstopo_xml.is_lstopo(text):
        return lstopo_xml.parse_lstopo(text, file)
    return parse_xml(text, file), []


class _System:
    """Walks the tree once, and then adds GPUs, adapters and NVLinks in their numbered order."""

    def __init__(self, root: XmlElement, draft: HostDraft, ports: dict[str, AdapterPort]) -> None:
        self._root = root
        self._ports = dict(ports)
        self._draft = draft
        self._gpus: list[_Leaf] = []
        self._nics: list[_Leaf] = []
        self._bridges = 0
        self._line_of_bus: dict[str, int] = {}
        self._cpus: dict[str, XmlElement] = {}

    def spec(self, complete_from: str | None) -> GraphSpec:
        for cpu in self._root.children:
            self._add_cpu(cpu)
        self._add_sockets()
        self._add_leaves(self._gpus, "gpu")
        self._add_leaves(self._nics, "nic")
        self._name_adapters()
        self._add_nvlinks()
        self._name_gpus()
        return self._draft.finish(complete_from)

    def _add_cpu(self, element: XmlElement) -> None:
        name = f"cpu{element.integer('numaid', -1, 1023)}"
        if name in self._cpus:
            raise element.error(f"has the numaid of the <cpu> on line {self._cpus[name].line}")
        if len(self._cpus) >= _CPUS_MAX:
            raise element.error(f"exceeds the maximum of {_CPUS_MAX}")
        self._cpus[name] = element
        self._draft.add_device(name, "cpu")
        for child in element.children:
            if child.tag == "pci":
                self._walk(child, name)
            else:
                self._add_nets(child, name, None, "")

    def _walk(self, element: XmlElement, parent: str) -> None:
        bus, pci_class = self._bus_of(element), element.text("class")
        if not _CLASS.match(pci_class):
            raise element.error(f"has class={quoted(pci_class)}; it must be like '0x030200'")
        gpus = _children(element, "gpu")
        nics = _children(element, "nic")
        inner = _children(element, "pci")
        if gpus or pci_class.startswith(_GPU_CLASSES):
            self._add_gpu(element, parent, gpus, inner)
        elif nics or pci_class.startswith(_NIC_CLASSES):
            for nic in nics or [element]:
                self._add_nets(nic, parent, element, bus)
        elif inner or pci_class.startswith(_BRIDGE_CLASS):
            bridge = self._draft.add_device(f"bridge{self._bridges}", "pcie_bridge")
            self._bridges += 1
            self._draft.add_wire(bridge, parent, self._draft.pcie(*self._pcie_link(element)))
            for child in inner:
                self._walk(child, bridge)
        else:
            self._draft.note(f"left out: the device of class {pci_class} on line {element.line}")

    def _bus_of(self, element: XmlElement) -> str:
        """The bus of a <pci>, which must be unique."""
        bus = element.text("busid").lower()
        if bus in self._line_of_bus:
            raise element.error(f"has the busid of the <pci> on line {self._line_of_bus[bus]}")
        self._line_of_bus[bus] = element.line
        return bus

    def _add_gpu(
        self, element: XmlElement, parent: str, gpus: list[XmlElement], inner: list[XmlElement]
    ) -> None:
        if len(gpus) > 1:
            raise gpus[1].error("is the second GPU of one <pci>, which can have only one")
        if inner:
            raise inner[0].error(f"is in the GPU on line {element.line}, which cannot contain it")
        leaf = gpus[0] if gpus else element
        number = leaf.integer("dev", 0, _GPU_NUMBER_MAX, default=_GPU_NUMBER_MAX + 1)
        bus = element.text("busid").lower()
        self._gpus.append(_Leaf(leaf, (number, bus), parent, element))

    def _add_nets(self, nic: XmlElement, parent: str, pci: XmlElement | None, bus: str) -> None:
        nets = _children(nic, "net")
        for net in nets or [nic]:
            number = net.integer("dev", 0, _GPU_NUMBER_MAX, default=_GPU_NUMBER_MAX + 1)
            self._nics.append(_Leaf(net, (number, bus), parent, pci))

    def _pcie_link(self, pci: XmlElement | None) -> tuple[float, int]:
        speed = "" if pci is None else pci.attributes.get("link_speed", "")
        width = 0 if pci is None else pci.integer("link_width", 0, 32, default=0)
        if not speed or not width:
            self._draft.note("PCIe 3.0 x16 is assumed where the file omits a speed or width")
        if not speed:
            return PCIE_DEFAULT_GIGATRANSFERS, width or PCIE_DEFAULT_WIDTH
        match = _LINK_SPEED.match(speed)
        if not match or float(match[1]) not in PCIE_GIGATRANSFERS:
            allowed = ", ".join(f"{rate:g}" for rate in PCIE_GIGATRANSFERS)
            assert pci is not None
            raise pci.error(f"has link_speed={quoted(speed)}; it must be one of {allowed} GT/s")
        return float(match[1]), width or PCIE_DEFAULT_WIDTH

    def _add_leaves(self, leaves: list[_Leaf], kind: str) -> None:
        for number, leaf in enumerate(sorted(leaves, key=lambda leaf: leaf.order)):
            leaf.name = self._draft.add_device(f"{kind}{number}", kind)
            link = self._pcie_link(leaf.pci)
            link_type = (
                self._draft.gpu_pcie(*link) if kind == "gpu" else self._draft.nic_pcie(*link)
            )
            self._draft.add_wire(leaf.name, leaf.parent, link_type)

    def _name_adapters(self) -> None:
        """Gives the adapters the rates in the file, or else the rates from ibstatus."""
        names: dict[str, str] = {}
        for leaf in self._nics:
            name = leaf.element.attributes.get("name", leaf.name)[:64]
            names[leaf.name] = name
            if "speed" not in leaf.element.attributes:
                continue
            mbit = leaf.element.integer("speed", -1, _NET_RATE_MAX_MBIT)
            if mbit <= 0:
                self._draft.note(f"{leaf.name} has speed={mbit}, which NCCL takes as 10 Gb/s")
                mbit = _NET_DEFAULT_MBIT
            # A port of the file counts even if two adapters share a name.
            names[leaf.name] = f"{name} {leaf.name}"
            self._ports[names[leaf.name]] = AdapterPort(
                name, 1, _layer_of(leaf.pci), True, mbit / 1000, f"{mbit / 1000:g} Gb/s", "speed"
            )
        if self._ports:
            self._draft.name_adapters(names, self._ports, takes_unknown=True)

    def _name_gpus(self) -> None:
        capabilities = {_capability(leaf) for leaf in self._gpus}
        if len(capabilities) == 1:
            self._draft.name_gpu(f"sm_{capabilities.pop()}")

    def _add_sockets(self) -> None:
        names = list(self._cpus)
        if len(names) < 2:
            return
        rate = min(_socket_rate_gb_per_s(cpu) for cpu in self._cpus.values())
        link_type = self._draft.socket(rate, "NCCL src/graph/topo.h, by CPU vendor and model")
        for number, one in enumerate(names):
            for other in names[number + 1 :]:
                self._draft.add_wire(one, other, link_type)

    def _add_nvlinks(self) -> None:
        by_bus = {
            leaf.pci.text("busid").lower(): leaf for leaf in self._gpus if leaf.pci is not None
        }
        to_switches: dict[str, int] = {}
        joined: dict[tuple[str, str], int] = {}
        for leaf in sorted(self._gpus, key=lambda leaf: leaf.order):
            capability = _capability(leaf)
            for nvlink in leaf.element.children:
                if nvlink.tag != "nvlink":
                    self._draft.note(f"left out: <{nvlink.tag}> on line {nvlink.line}")
                    continue
                count = nvlink.integer("count", 1, _NVLINKS_MAX)
                target = nvlink.text("target").lower()
                peer = by_bus.get(target)
                if nvlink.text("tclass").startswith(_NVSWITCH_CLASS):
                    to_switches[leaf.name] = to_switches.get(leaf.name, 0) + count
                elif peer is leaf:
                    where = f"line {nvlink.line}"
                    self._draft.note(f"left out: the NVLink on {where} ends where it begins")
                elif peer is None:
                    raise nvlink.error(f"has target={quoted(target)}, the busid of no GPU")
                else:
                    # Both ends list the wire; the second mention of it adds nothing.
                    ends = (min(leaf.name, peer.name), max(leaf.name, peer.name))
                    if joined.setdefault(ends, count) != count:
                        raise nvlink.error(
                            f"has count={count}, but its other end has {joined[ends]}"
                        )
                    if leaf.order < peer.order or not _lists(peer.element, leaf):
                        link_type = self._draft.nvlink(capability)
                        self._draft.add_wire(leaf.name, peer.name, link_type, count)
            if leaf.name in to_switches:
                # NCCL also treats the NVSwitches of a host as one.
                if len(to_switches) == 1:
                    self._draft.add_device("nvswitch", "nvswitch")
                link_type, count = self._draft.nvlink(capability), to_switches[leaf.name]
                self._draft.add_wire(leaf.name, "nvswitch", link_type, count)


def _lists(element: XmlElement, leaf: _Leaf) -> bool:
    assert leaf.pci is not None
    bus = leaf.pci.text("busid").lower()
    return any(child.attributes.get("target", "").lower() == bus for child in element.children)


def _capability(leaf: _Leaf) -> int:
    """The compute capability of a GPU from the file, or else from its PCI device."""
    device = "" if leaf.pci is None else leaf.pci.attributes.get("device", "")
    return leaf.element.integer("sm", 10, 999, default=capability_of_pci(device) or 90)


def _layer_of(pci: XmlElement | None) -> str | None:
    """The kind of network of an adapter, from its PCI class."""
    pci_class = "" if pci is None else pci.attributes.get("class", "")
    return {"0x0207": "InfiniBand", "0x0200": "Ethernet"}.get(pci_class[:6])


def _socket_rate_gb_per_s(cpu: XmlElement) -> float:
    vendor = cpu.attributes.get("vendor", "")
    family = cpu.integer("familyid", -1, 9999, default=-1)
    if vendor == "GenuineIntel":
        model = cpu.integer("modelid", -1, 9999, default=-1)
        rates = (rate for least, rate in _INTEL_SOCKETS_GB_PER_S if model >= least)
        is_known = family in (_INTEL_FAMILY, -1)
        return next(rates, _INTEL_OTHER_GB_PER_S) if is_known else _INTEL_OTHER_GB_PER_S
    if vendor == "AuthenticAMD":
        return _AMD_SOCKET_GB_PER_S.get(family, _AMD_OTHER_GB_PER_S)
    return _OTHER_SOCKET_GB_PER_S


def _descendants(element: XmlElement, tag: str) -> Iterator[XmlElement]:
    for child in element.children:
        if child.tag == tag:
            yield child
        yield from _descendants(child, tag)


def _children(element: XmlElement, tag: str) -> list[XmlElement]:
    return [child for child in element.children if child.tag == tag]
