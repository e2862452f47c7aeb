# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A host from a topology file of NCCL or RCCL, such as NCCL_TOPO_DUMP_FILE writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from xml.sax.saxutils import quoteattr

from towpath.collectives.nccl.communicator import Generation
from towpath.collectives.nccl.topology import Topology
from towpath.collectives.nccl_itself.host import GPU_MODELS, GpuModel, NcclHost, nvlinks
from towpath.errors import ConfigError, quoted
from towpath.specs.xml_file import XmlElement, parse_xml

_CHILDREN = {
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic", "pcilink"),
    "gpu": ("nvlink", "c2c", "xgmi"),
    "nic": ("net", "gin", "rma"),
}
_BUS = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]\Z")
_NAME = re.compile(r"[A-Za-z0-9_.:+-]{1,64}\Z")
_TEXT_MAX = 1 << 20
_VALUE_MAX = 250  # NCCL's buffer of an attribute has 256 bytes
_SM: dict[int, Generation] = {
    70: "volta",
    80: "ampere",
    90: "hopper",
    100: "blackwell",
    103: "blackwell",
}
_DEFAULT_SPEED = 400_000
_GCN = re.compile(r"(?:gfx)?([0-9a-f]{3,8})\Z")  # the architecture of an AMD GPU
_OLD_GCN = {"910": "90a"}  # src/misc/archinfo.cc
# Attributes that belong to the run which wrote the file.
_OF_THE_RUN = ("rank", "keep", "host_hash")


@dataclass
class _Gpu:
    bus: str
    model: GpuModel
    dev: int


@dataclass
class _Adapter:
    name: str
    dev: int
    speed_mbit_per_s: int
    port: int
    guid: int
    has_gpu_direct: bool


def host_from_file(
    text: str, file: str, generation: Generation, like: Topology | None = None
) -> NcclHost:
    """The host that a topology file describes.

    Files for virtual machines omit NVLinks, which NCCL then gets from the driver. The NVLinks of a
    machine take their place.

    Args:
        text: its content.
        file: its name, for errors.
        generation: of GPUs whose compute capability the file omits.
        like: a host with the NVLinks of a file that omits them.

    Raises:
        ConfigError: it is not such a file, or something in it is wrong.
    """
    root = parse_xml(text, file)
    if root.tag != "system":
        raise root.error("is not the beginning of a topology of NCCL, which is <system>")
    root.check_children(_CHILDREN)
    reader = _Reader(root, generation)
    if like is not None and not reader.has_nvlinks:
        reader.add_nvlinks(like)
    return NcclHost(
        reader.topology(), reader.description(), len(reader.gpus), reader.gpus[0].model.is_of_amd
    )


class _Reader:
    """Finds devices in the tree, and writes the tree again with every device under its name."""

    def __init__(self, root: XmlElement, generation: Generation) -> None:
        self._root = root
        self._model = GPU_MODELS[generation]
        self.gpus: list[_Gpu] = []
        self._adapters: list[_Adapter] = []
        self._walk(root, None)
        if not self.gpus:
            raise root.error("has no GPU")
        self.gpus.sort(key=lambda gpu: (gpu.dev, gpu.bus))
        self._adapters.sort(key=lambda adapter: adapter.dev)

    @property
    def has_nvlinks(self) -> bool:
        return any(each.tag in ("nvlink", "xgmi") for each in _all(self._root))

    def add_nvlinks(self, like: Topology) -> None:
        """Gives GPU after GPU the NVLinks of another host."""
        bus_of = {gpu.index: own.bus for gpu, own in zip(like.gpus, self.gpus, strict=False)}
        for node, own in zip(like.gpus, self.gpus, strict=False):
            pci = next(each for each in _all(self._root) if each.attributes.get("busid") == own.bus)
            gpu = next((one for one in pci.children if one.tag == "gpu"), None)
            if gpu is None:
                gpu = XmlElement("gpu", {"dev": str(own.dev)}, pci.line, pci.file)
                pci.children.append(gpu)
            gpu.children += [
                XmlElement("nvlink", attributes, pci.line, pci.file)
                for attributes in nvlinks(node, self._model, bus_of)
            ]

    def topology(self) -> str:
        return "\n".join([*self._lines(self._root, ""), ""])

    def description(self) -> str:
        lines = ["driver version=12080"]
        has_switch = any(
            each.attributes.get("tclass", "").startswith("0x0680") for each in _all(self._root)
        )
        for gpu in self.gpus:
            model = gpu.model
            lines.append(
                f"device bus={gpu.bus} name={model.name.replace(' ', '-')} major={model.major} "
                f"minor={model.minor} multiprocessors={model.multiprocessors} "
                f"memory_bytes={model.memory_bytes} shared_bytes={model.shared_bytes} "
                f"multicast={int(model.has_multicast and has_switch)} fabric_handles=0 "
                "cluster=none clique=0"
            )
        lines.append("peers all=1")
        for adapter in self._adapters:
            lines.append(
                f"adapter name={adapter.name} pci_path=none guid={adapter.guid:x} "
                f"speed_mbit_per_s={adapter.speed_mbit_per_s} port={adapter.port} "
                f"gpu_direct={int(adapter.has_gpu_direct)}"
            )
        return "\n".join([*lines, ""])

    def _walk(self, element: XmlElement, pci: XmlElement | None) -> None:
        for name, value in element.attributes.items():
            if len(value) > _VALUE_MAX:
                raise element.error(f"has {name} with {len(value)} characters; 250 is the most")
        if element.tag == "pci":
            pci = element
            kind = element.text("class")
            if kind.startswith("0x03") or any(one.tag == "gpu" for one in element.children):
                self._add_gpu(element)
            elif kind.startswith("0x02") and not element.children:
                number = len(self._adapters)
                net = XmlElement("net", {"name": f"mlx5_{number}"}, element.line, element.file)
                element.children.append(XmlElement("nic", {}, element.line, element.file, [net]))
        if element.tag == "net":
            self._add_adapter(element)
        for child in element.children:
            self._walk(child, pci)

    def _add_gpu(self, pci: XmlElement) -> None:
        bus = pci.text("busid")
        if not _BUS.match(bus):
            raise pci.error(f"has busid={quoted(bus)}; it must be like '0000:18:00.0'")
        if any(gpu.bus == bus for gpu in self.gpus):
            raise pci.error(f"has the busid {bus} a second time")
        gpu = next((one for one in pci.children if one.tag == "gpu"), pci)
        model = _model_of(gpu, self._model)
        if self.gpus and self.gpus[0].model.is_of_amd != model.is_of_amd:
            raise gpu.error("is of another vendor than the GPUs above it")
        self.gpus.append(_Gpu(bus, model, gpu.integer("dev", 0, 1023, len(self.gpus))))

    def _add_adapter(self, net: XmlElement) -> None:
        name = net.text("name")
        if not _NAME.match(name):
            raise net.error(f"has name={quoted(name)}; it must be a word like mlx5_0")
        number = len(self._adapters)
        guid = net.attributes.get("guid", f"{number + 1:x}")
        try:
            guid_number = int(guid, 16) & 0xFFFFFFFFFFFFFFFF
        except ValueError:
            raise net.error(f"has guid={quoted(guid)}; it must be hexadecimal") from None
        self._adapters.append(_Adapter(
            name, net.integer("dev", 0, 1023, number),
            net.integer("speed", 1, 1_000_000_000, _DEFAULT_SPEED), net.integer("port", 0, 255, 1),
            guid_number, net.integer("gdr", 0, 1, 1) == 1,
        ))  # fmt: skip

    def _lines(self, element: XmlElement, indent: str) -> Iterator[str]:
        attributes = " ".join(
            f"{name}={quoteattr(value)}"
            for name, value in element.attributes.items()
            if name not in _OF_THE_RUN
        )
        if element.tag == "net":
            attributes += ' keep="1"'
        start = f"{indent}<{element.tag}{' ' * bool(attributes)}{attributes}"
        if not element.children:
            yield f"{start}/>"
            return
        yield f"{start}>"
        for child in element.children:
            yield from self._lines(child, indent + "  ")
        yield f"{indent}</{element.tag}>"


def _all(element: XmlElement) -> Iterator[XmlElement]:
    yield element
    for child in element.children:
        yield from _all(child)


def _model_of(gpu: XmlElement, default: GpuModel) -> GpuModel:
    """The GPU of an element: `gcn` names AMD's architecture, else `sm` has the compute capability,
    10 x major + minor."""
    if "gcn" in gpu.attributes:
        model = GPU_MODELS["mi300"]
        architecture = _GCN.match(gpu.text("gcn"))
        if architecture is None:
            raise gpu.error(f"has gcn={quoted(gpu.text('gcn'))}; it must be like gfx942")
        name = f"gfx{_OLD_GCN.get(architecture[1], architecture[1])}"
        units = gpu.integer("sm", 1, 4096, model.multiprocessors)
        return replace(model, name=name, multiprocessors=units)
    if default.is_of_amd:
        return default
    sm = gpu.integer("sm", 70, 129, 10 * default.major + default.minor)
    known = max((each for each in _SM if each <= sm), default=None)
    found = default if known is None else GPU_MODELS[_SM[known]]
    return replace(found, major=sm // 10, minor=sm % 10)


def read_host_file(path: str, generation: Generation, like: Topology | None = None) -> NcclHost:
    """The host of a file on disk.

    Args:
        path: the file.
        generation: of GPUs whose compute capability the file omits.
        like: a host with the NVLinks of a file that omits them.

    Raises:
        ConfigError: it cannot be read, or is not a topology.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_TEXT_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the topology {quoted(path)}: {error}") from None
    if len(text) > _TEXT_MAX:
        raise ConfigError(f"the topology {quoted(path)} has more than 1 MiB")
    return host_from_file(text, path, generation, like)
