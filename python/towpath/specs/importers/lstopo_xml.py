# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the XML of hwloc's lstopo, versions 1 to 3, as a system in NCCL's form.

lstopo writes objects: NUMA nodes, PCI bridges and devices, and below a device the devices that the
operating system and libraries have for it (OSDev). GPUs of NVIDIA and adapters of RDMA are kept. A
bridge with a single kept device below it, such as the port of a switch, only limits the rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from towpath.errors import quoted
from towpath.specs.importers.gpu_models import GpuModel, capability_of_pci, gpu_of_product
from towpath.specs.importers.host_draft import PCIE_GIGATRANSFERS, pcie_gb_per_s
from towpath.specs.xml_file import XmlElement, parse_xml

_START = re.compile(r"<topology(?: version=\"[0-9.]{1,8}\")?>")
_DOCUMENT_TYPE = re.compile(r'<!DOCTYPE topology SYSTEM "hwloc2?\.dtd">')
_PCI_TYPE = re.compile(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]")
_RATE = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,9})?\Z")
_WIDTHS = (16, 8, 4, 2, 1)
# The encoding of generation 6 is rounded differently by versions of hwloc.
_RATE_TOLERANCE = 0.05
_NVIDIA = "10de"
_ADAPTER_CLASSES = ("0207", "0200")
_OPENFABRICS = ("3", "32", "48")  # osdev_type in versions 1 and 2, and bits of version 3
_NVSWITCH_CLASS, _GPU_CLASS = "0x068000", "0x030200"
_BANDWIDTHS = "NVLinkBandwidth"
_MATRIX_MAX = 256
# MB/s of one NVLink and direction in hwloc's matrix, by compute capability (topology-nvml.c).
_NVLINK_MB_PER_S = ((100, 50_000), (70, 25_000), (0, 20_000))


@dataclass
class _Node:
    """A bridge, GPU or adapter on PCI.

    Attributes:
        element: its object in the file.
        bus: its bus id.
        pci_class: class as in "0302".
        vendor: id of the vendor as in "10de".
        device: id of the device as in "0x2330".
        rate_gb_per_s: rate of its link to the processor. 0 if the file does not state it.
        below: devices behind a bridge.
        model: model of a GPU, if the file names it.
        adapters: names of the devices of RDMA.
    """

    element: XmlElement
    bus: str
    pci_class: str
    vendor: str
    device: str
    rate_gb_per_s: float
    below: list[_Node] = field(default_factory=list)
    model: GpuModel | None = None
    adapters: list[str] = field(default_factory=list)

    @property
    def is_gpu(self) -> bool:
        return self.pci_class.startswith("03") and self.vendor == _NVIDIA


def is_lstopo(text: str) -> bool:
    """True if a text is the XML of lstopo."""
    return _START.search(text, 0, 2000) is not None


def parse_lstopo(text: str, file: str) -> tuple[XmlElement, list[str]]:
    """The <system> of NCCL's form that a file of lstopo describes, and the assumptions.

    Args:
        text: the content of the file.
        file: name of the file, for errors.

    Raises:
        ConfigError: the content is not valid.
    """
    root = parse_xml(_DOCUMENT_TYPE.sub("", text, count=1), file)
    host = _Host(root)
    return host.system(), host.notes


class _Host:
    """Collects the devices of each NUMA node, and then writes them in NCCL's form."""

    def __init__(self, root: XmlElement) -> None:
        self.notes: list[str] = []
        self._root = root
        self._numa_nodes: dict[int, list[_Node]] = {}
        self._processor: dict[str, str] = {}
        self._bus_of: dict[str, str] = {}
        self._switches: set[str] = set()
        self._walk(root, 0)
        self._nvlinks = self._matrix()

    def system(self) -> XmlElement:
        cpus = []
        for number, nodes in sorted(self._numa_nodes.items()):
            attributes = {"numaid": str(number)} | self._processor
            line = nodes[0].element.line
            children = [self._pci(node) for node in nodes]
            cpus.append(XmlElement("cpu", attributes, line, self._root.file, children))
        return XmlElement("system", {}, self._root.line, self._root.file, cpus)

    def _walk(self, element: XmlElement, numa: int) -> None:
        own = [each for each in _objects(element) if each.attributes.get("type") == "NUMANode"]
        if element.attributes.get("type") == "NUMANode":
            own = [element]
        if own:
            numa = own[0].integer("os_index", 0, 1023)
        self._processor = self._processor or _processor_of(element)
        for child in _objects(element):
            if child.attributes.get("type") in ("Bridge", "PCIDev"):
                nodes = self._nodes(child)
                if nodes:
                    self._numa_nodes.setdefault(numa, []).extend(nodes)
            else:
                self._walk(child, numa)

    def _nodes(self, element: XmlElement) -> list[_Node]:
        """The GPUs and adapters of a bridge or device, below the bridges that join several."""
        below = [
            node
            for child in _objects(element)
            if child.attributes.get("type") in ("Bridge", "PCIDev")
            for node in self._nodes(child)
        ]
        if "pci_busid" not in element.attributes:
            return below  # the bridge of the processor itself
        node = _node_of(element)
        if element.attributes.get("type") == "PCIDev":
            self._record(node)
            return [node] if node.is_gpu or node.adapters else []
        if len(below) == 1:
            rates = [each for each in (node.rate_gb_per_s, below[0].rate_gb_per_s) if each]
            below[0].rate_gb_per_s = min(rates, default=0.0)
            return below
        node.below = below
        return [node] if below else []

    def _record(self, node: _Node) -> None:
        """Records the names that other parts of the file use for a device."""
        self._bus_of[f"PCIDev:{node.element.attributes.get('gp_index', '')}"] = node.bus
        if node.element.attributes.get("subtype") == "NVSwitch" or node.pci_class == "0680":
            self._switches.add(node.bus)
        for child in _objects(node.element):
            self._bus_of[f"OSDev:{child.attributes.get('gp_index', '')}"] = node.bus
            node.model = node.model or gpu_of_product(_info(child, "GPUModel"))
            is_rdma = child.attributes.get("osdev_type") in _OPENFABRICS
            if is_rdma and node.pci_class in _ADAPTER_CLASSES:
                node.adapters.append(child.attributes.get("name", ""))

    def _pci(self, node: _Node) -> XmlElement:
        """A bridge or device in NCCL's form."""
        line, file = node.element.line, node.element.file
        attributes = {"busid": node.bus, "class": f"0x{node.pci_class}00", "device": node.device}
        children = [self._pci(each) for each in node.below]
        if node.is_gpu:
            attributes |= self._link_of_gpu(node)
            if self._nvlinks is not None:
                links = self._nvlinks.get(node.bus, {})
                children = [self._gpu(node, links)]
        else:
            attributes |= _link(*_speed(node)) if node.rate_gb_per_s else {}
        if node.adapters:
            nets = [XmlElement("net", {"name": name}, line, file) for name in node.adapters]
            children = [XmlElement("nic", {}, line, file, nets)]
        return XmlElement("pci", attributes, line, file, children)

    def _link_of_gpu(self, node: _Node) -> dict[str, str]:
        """The link of a GPU. An idle GPU lowers its speed, so its model states it then."""
        if not node.rate_gb_per_s:
            return {}
        speed, width = _speed(node)
        if speed > 5.0:
            return _link(speed, width)
        assumed = "PCIe 3.0 x16 is" if node.model is None else "the speed of its model is"
        self.notes.append(
            f"the PCIe link of the GPU at {node.bus} has {speed:g} GT/s, as the link of an idle "
            f"GPU; {assumed} assumed"
        )
        if node.model is None:
            return {}
        return _link(node.model.pcie_gigatransfers, node.model.pcie_width)

    def _gpu(self, node: _Node, links: dict[str, int]) -> XmlElement:
        line, file = node.element.line, node.element.file
        capability = capability_of_pci(node.device) or 90
        one = next(rate for least, rate in _NVLINK_MB_PER_S if capability >= least)
        nvlinks = []
        for bus, rate in links.items():
            kind = _NVSWITCH_CLASS if bus in self._switches else _GPU_CLASS
            count = str(max(round(rate / one), 1))
            attributes = {"target": bus, "count": count, "tclass": kind}
            nvlinks.append(XmlElement("nvlink", attributes, line, file))
        return XmlElement("gpu", {}, line, file, nvlinks)

    def _matrix(self) -> dict[str, dict[str, int]] | None:
        """MB/s between devices, by their bus ids. None if hwloc had no library of NVIDIA."""
        matrix = next(filter(_is_matrix_of_nvlinks, self._root.children), None)
        if matrix is None:
            return None
        kind = matrix.attributes.get("type", "")
        ends = [word if ":" in word else f"{kind}:{word}" for word in _words(matrix, "indexes")]
        values = [_whole(matrix, word) for word in _words(matrix, "u64values")]
        if len(ends) > _MATRIX_MAX or len(values) != len(ends) ** 2:
            problem = f"has {len(ends)} objects and {len(values)} values; it must have a value "
            raise matrix.error(problem + f"for each pair of up to {_MATRIX_MAX} objects")
        buses = [self._bus_of.get(end) for end in ends]
        if None in buses:
            self.notes.append("left out: NVLinks between GPUs and processors")
        links: dict[str, dict[str, int]] = {}
        for (one, other), rate in zip(product(buses, buses), values, strict=True):
            if one is not None and other is not None and one != other and rate > 0:
                links.setdefault(one, {})[other] = rate
        return links


def _is_matrix_of_nvlinks(element: XmlElement) -> bool:
    is_matrix = element.tag in ("distances2", "distances2hetero")
    return is_matrix and element.attributes.get("name") == _BANDWIDTHS


def _objects(element: XmlElement) -> Iterator[XmlElement]:
    return (child for child in element.children if child.tag == "object")


def _info(element: XmlElement, name: str) -> str:
    """The value of an information about an object. Empty if the file does not have it."""
    found = (
        child.attributes.get("value", "")
        for child in element.children
        if child.tag == "info" and child.attributes.get("name") == name
    )
    return next(found, "")


def _processor_of(element: XmlElement) -> dict[str, str]:
    """Vendor, family and model of the processor in NCCL's words."""
    names = {"vendor": "CPUVendor", "familyid": "CPUFamilyNumber", "modelid": "CPUModelNumber"}
    found = {key: _info(element, name) for key, name in names.items()}
    return {key: value for key, value in found.items() if value} if found["vendor"] else {}


def _node_of(element: XmlElement) -> _Node:
    kind = element.text("pci_type")
    match = _PCI_TYPE.match(kind)
    if match is None:
        raise element.error(f"has pci_type={quoted(kind)}; it must be like '0302 [10de:2330]'")
    rate = element.attributes.get("pci_link_speed", "0")
    if not _RATE.match(rate):
        raise element.error(f"has pci_link_speed={quoted(rate)}; it must be a rate in GB/s")
    bus = element.text("pci_busid").lower()
    return _Node(element, bus, match[1], match[2], f"0x{match[3]}", float(rate))


def _speed(node: _Node) -> tuple[float, int]:
    """Transfers per second and lane in 1e9, and lanes, of the rate of a link.

    Several pairs may have the same rate. The first has the most usual number of lanes.
    """
    pairs = ((speed, width) for width in _WIDTHS for speed in PCIE_GIGATRANSFERS)
    rate = node.rate_gb_per_s
    near = min(pairs, key=lambda pair: abs(pcie_gb_per_s(*pair) - rate))
    if abs(pcie_gb_per_s(*near) / rate - 1) > _RATE_TOLERANCE:
        raise node.element.error(f"has pci_link_speed={rate:g}, which no link of PCIe has")
    return near


def _link(speed: float, width: int) -> dict[str, str]:
    return {"link_speed": f"{speed:.1f} GT/s PCIe", "link_width": str(width)}


def _words(matrix: XmlElement, tag: str) -> list[str]:
    return [word for each in matrix.children if each.tag == tag for word in each.content.split()]


def _whole(matrix: XmlElement, word: str) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) <= 12):
        raise matrix.error(f"has the value {quoted(word)}; it must be a whole number")
    return int(word)
