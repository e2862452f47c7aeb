# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the table that `nvidia-smi topo -m` prints.

The table contains the distance between each pair of devices. The distances define the groups that
share a PCIe bridge (PIX), several bridges (PXB), a host bridge (PHB) and a CPU (NODE). Each group
of several devices becomes a bridge or CPU, and links of sockets join the CPUs (SYS).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from towpath.errors import ConfigError, quoted
from towpath.groups import joined
from towpath.specs.formats import COLOURS
from towpath.specs.importers.adapter_status import AdapterPort
from towpath.specs.importers.gpu_models import GpuModel, capability_of_donor
from towpath.specs.importers.host_draft import HostDraft
from towpath.specs.machine_spec import GraphSpec

_DEVICE = re.compile(r"(GPU|NIC)[0-9]{1,4}\Z|mlx[0-9]_[A-Za-z0-9_]{1,32}\Z")
_NVLINK = re.compile(r"NV([0-9]{1,2})\Z")
_LEGEND = re.compile(r"[ \t]*(NIC[0-9]{1,4}): ([A-Za-z0-9_.:-]{1,32})[ \t]*\Z")
_DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS")
_DEVICES_MAX = 256

# No GPU has more NVLinks (H100, B200): a row that adds up to more goes through a switch.
_NVLINKS_OF_A_GPU_MAX = 18
NVLINKS_OF_AN_A100 = 12
_PCIE_WIDTH = 16
_SOCKET_GB_PER_S = 22.0
_SOCKET_SOURCE = "NCCL src/graph/topo.h, Sapphire Rapids; the table names no CPU"


_HIDDEN_NVLINKS = (
    "the table has no NVLink: `nvidia-smi topo -mp` and some virtual machines hide NVLinks, and "
    "`nvidia-smi topo -m` or --complete-from adds them"
)


@dataclass(frozen=True)
class Known:
    """Facts about the GPUs of a table, which has neither their model nor their PCIe rate.

    Attributes:
        gpu: their model. None means that it is unknown.
        pcie_gigatransfers: 1e9 transfers per second and lane of PCIe. None means the model's rate.
    """

    gpu: GpuModel | None = None
    pcie_gigatransfers: float | None = None

    def pcie_link(self) -> tuple[float | None, int]:
        """The rate (1e9 transfers per second and lane) if it is known, and the lanes."""
        if self.gpu is None:
            return self.pcie_gigatransfers, _PCIE_WIDTH
        return self.pcie_gigatransfers or self.gpu.pcie_gigatransfers, self.gpu.pcie_width


class _Table(NamedTuple):
    devices: list[str]
    cells: dict[tuple[str, str], str]
    numa: dict[str, int]
    nic_names: dict[str, str]


def nvlinks_of_a_gpu(text: str, file: str) -> int:
    """The NVLinks of the GPU with the highest number, where each link to a switch counts once.

    Args:
        text: the output of `nvidia-smi topo -m`.
        file: name of the file, for errors.

    Raises:
        ConfigError: the text is not such a table, or its content is wrong.
    """
    return max((_nvlinks(cell) for cell in _read(text, file).cells.values()), default=0)


def parse_table(
    text: str,
    file: str,
    complete_from: str | None = None,
    ports: dict[str, AdapterPort] | None = None,
    known: Known | None = None,
) -> GraphSpec:
    """Parses the host of a table; text before and after the table is skipped.

    Args:
        text: the file's content.
        file: name of the file, for errors and for the machine's name.
        complete_from: the shipped machine that supplies missing values: GPU costs, the fabric
            between hosts, and the GPU interconnect if the table has no NVLink.
        ports: ports of the adapters from ibstatus and rdma link, by name; None: unknown.
        known: facts that the caller states about the GPUs.

    Raises:
        ConfigError: the text is not such a table, or its content is wrong.
    """
    table = _read(text, file)
    known = known or Known()
    draft = HostDraft(file, "a table of nvidia-smi topo -m")
    _add_devices(table, draft, ports or {})
    most = max((_nvlinks(cell) for cell in table.cells.values()), default=0)
    if known.gpu is not None:
        draft.name_gpu(f"{known.gpu.name} (sm_{known.gpu.compute_capability})")
    if most:
        _add_nvlinks(table, draft, _capability(known.gpu, complete_from, most, draft))
    elif sum(device.startswith("GPU") for device in table.devices) > 1:
        draft.note(_HIDDEN_NVLINKS)
    rate, width = known.pcie_link()
    assumed = 32.0 if most == 0 or most > NVLINKS_OF_AN_A100 else 16.0
    _PcieTree(table, draft, (rate or assumed, width), is_assumed=rate is None).add()
    return draft.finish(complete_from)


def _add_devices(table: _Table, draft: HostDraft, ports: dict[str, AdapterPort]) -> None:
    for device in table.devices:
        draft.add_device(device.lower(), "gpu" if device.startswith("GPU") else "nic")
    if table.nic_names:
        names = ", ".join(f"{nic.lower()} is {name}" for nic, name in table.nic_names.items())
        draft.note(names[:1000])
    adapters = {
        device.lower(): table.nic_names.get(device, device)
        for device in table.devices
        if not device.startswith("GPU")
    }
    draft.name_adapters(adapters, ports)
    draft.leave_far(_far_adapters(table))


def _far_adapters(table: _Table) -> list[str]:
    """Adapters that are SYS to every GPU, if each GPU has a nearer one."""
    gpus = [device for device in table.devices if device.startswith("GPU")]
    adapters = [device for device in table.devices if device not in gpus]

    def is_far(adapter: str, gpu: str) -> bool:
        return table.cells.get((gpu, adapter)) == "SYS"

    if any(all(is_far(adapter, gpu) for adapter in adapters) for gpu in gpus):
        return []
    return [each.lower() for each in adapters if all(is_far(each, gpu) for gpu in gpus)]


def _capability(
    gpu: GpuModel | None, complete_from: str | None, most: int, draft: HostDraft
) -> int:
    """The compute capability of the GPUs of a table, with a note about its origin."""
    if gpu is not None:
        draft.note(f"NVLinks have the rate of {gpu.name}, sm_{gpu.compute_capability}")
        return gpu.compute_capability
    assumed = 90 if most > NVLINKS_OF_AN_A100 else 80
    of_donor = capability_of_donor(complete_from)
    if of_donor is not None and (of_donor >= 90) == (assumed >= 90) and of_donor != assumed:
        draft.note(f"NVLinks have the rate of {complete_from}, sm_{of_donor}")
        return of_donor
    draft.note(f"NVLinks are assumed to have the rate of sm_{assumed}: the table names no GPU")
    if assumed == 90:
        draft.note("NV18 is Hopper or Blackwell: --gpu b200 selects Blackwell")
    return assumed


def far_adapters(text: str, file: str) -> list[str]:
    """Adapters that are SYS to every GPU, if each GPU has a nearer one.

    Raises:
        ConfigError: the text is not such a table, or its content is wrong.
    """
    table = _read(text, file)
    names = {device.lower(): device for device in table.devices}
    return [names[each] for each in _far_adapters(table)]


def cells_of_gpus(text: str, file: str) -> dict[tuple[str, str], str]:
    """The cell of each two GPUs, both ways.

    Raises:
        ConfigError: the text is not such a table, or its content is wrong.
    """
    cells = _read(text, file).cells
    return {
        (one, other): cell
        for (one, other), cell in cells.items()
        if one.startswith("GPU") and other.startswith("GPU")
    }


def _nvlinks(cell: str) -> int:
    match = _NVLINK.match(cell)
    return int(match[1]) if match else 0


def _read(text: str, file: str) -> _Table:
    lines = COLOURS.sub("", text).split("\n")
    start = next((n for n, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        problem = "has no header row, which begins with GPU0 and names every device"
        raise ConfigError(problem, file=file, line=1)
    devices = _header(lines[start].split(), file, start + 1)
    rows = _Rows(devices, file)
    for number, line in enumerate(lines[start + 1 :], start + 2):
        words = line.split()
        if not words or not _DEVICE.match(words[0]):
            if len(rows.line_of) == len(devices) or not words:
                break
            problem = f"row begins with {quoted(words[0])}, which is not a device"
            raise ConfigError(problem, file=file, line=number)
        rows.read(words, number)
    for device in devices:
        if device not in rows.line_of:
            raise ConfigError("has a column but no row", file=file, line=start + 1, field=device)
    _check_symmetry(devices, rows.cells, rows.line_of, file)
    return _Table(devices, rows.cells, rows.numa, _legend(lines, devices))


def _legend(lines: list[str], devices: list[str]) -> dict[str, str]:
    """The names of adapters below the table."""
    matches = (_LEGEND.match(line) for line in lines if "NIC" in line)
    return {match[1]: match[2] for match in matches if match and match[1] in devices}


class _Rows:
    """The rows of a table that were read so far."""

    def __init__(self, devices: list[str], file: str) -> None:
        self.cells: dict[tuple[str, str], str] = {}
        self.numa: dict[str, int] = {}
        self.line_of: dict[str, int] = {}
        self._devices = devices
        self._file = file

    def read(self, words: list[str], line: int) -> None:
        """Reads one row, whose first word is its device."""
        row, devices = words[0], self._devices
        if row not in devices or row in self.line_of:
            problem = "begins a second row" if row in self.line_of else "has a row but no column"
            raise ConfigError(problem, file=self._file, line=line, field=row)
        self.line_of[row] = line
        if len(words) <= len(devices):
            problem = f"has {len(words) - 1} cells; there are {len(devices)} columns"
            raise ConfigError(problem, file=self._file, line=line, field=row)
        for column, word in zip(devices, words[1:], strict=False):
            if wrong_cell := _cell_problem(row, column, word):
                raise ConfigError(wrong_cell, file=self._file, line=line, field=f"{row}, {column}")
            if word != "X":
                self.cells[row, column] = word
        if row.startswith("GPU") and len(words) > len(devices) + 2:
            affinity = words[len(devices) + 2]
            if affinity.isdecimal() and len(affinity) <= 4:
                self.numa[row] = int(affinity)


def _cell_problem(row: str, column: str, word: str) -> str | None:
    if (word == "X") != (row == column):
        return f"is {quoted(word)}; X marks a device itself, and only that"
    is_nvlink = _nvlinks(word) > 0
    if is_nvlink and not (row.startswith("GPU") and column.startswith("GPU")):
        return f"is {word}; NVLinks join GPUs only"
    if word != "X" and not is_nvlink and word not in _DISTANCES:
        allowed = ", ".join(("NV1 to NV99", *_DISTANCES))
        return f"is {quoted(word)}; it must be one of {allowed}"
    return None


def _is_header(line: str) -> bool:
    if not line.lstrip().startswith(("GPU", "NIC", "mlx")):
        return False
    words = line.split()
    return bool(words) and bool(_DEVICE.match(words[0])) and "X" not in words


def _header(words: list[str], file: str, line: int) -> list[str]:
    devices: list[str] = []
    for word in words:
        if not _DEVICE.match(word):
            break  # the columns of affinities
        if word in devices:
            raise ConfigError("has two columns", file=file, line=line, field=word)
        devices.append(word)
    if len(devices) > _DEVICES_MAX:
        problem = f"has {len(devices)} columns; at most {_DEVICES_MAX} are read"
        raise ConfigError(problem, file=file, line=line)
    return devices


def _check_symmetry(
    devices: list[str], cells: dict[tuple[str, str], str], line_of: dict[str, int], file: str
) -> None:
    for row in devices:
        for column in devices:
            if row < column and cells[row, column] != cells[column, row]:
                here, there = cells[row, column], cells[column, row]
                problem = (
                    f"is {here}, but the other way round it is {there} (line {line_of[column]})"
                )
                field = f"{row}, {column}"
                raise ConfigError(problem, file=file, line=line_of[row], field=field)


def _add_nvlinks(table: _Table, draft: HostDraft, compute_capability: int) -> None:
    links: dict[str, dict[str, int]] = {}
    for (row, column), cell in table.cells.items():
        if count := _nvlinks(cell):
            links.setdefault(row, {})[column] = count
    if not links:
        return
    link_type = draft.nvlink(compute_capability)
    if any(sum(peers.values()) > _NVLINKS_OF_A_GPU_MAX for peers in links.values()):
        draft.add_device("nvswitch", "nvswitch")
        for gpu, peers in links.items():
            draft.add_wire(gpu.lower(), "nvswitch", link_type, max(peers.values()))
        return
    for gpu, peers in links.items():
        for peer, count in peers.items():
            if table.devices.index(gpu) < table.devices.index(peer):
                draft.add_wire(gpu.lower(), peer.lower(), link_type, count)


class _PcieTree:
    """Bridges and CPUs, one per group of devices that share it."""

    def __init__(
        self, table: _Table, draft: HostDraft, link: tuple[float, int], *, is_assumed: bool
    ) -> None:
        self._table = table
        self._draft = draft
        self._link = link
        self._is_assumed = is_assumed
        self._bridges = 0

    def add(self) -> None:
        placed = [device for device in self._table.devices if self._is_placed(device)]
        if not placed:
            return
        rate, width = self._link
        generation = {8.0: "3.0", 16.0: "4.0", 32.0: "5.0", 64.0: "6.0"}[rate]
        if self._is_assumed:
            why = "is assumed: the table states no PCIe rate (--pcie or --gpu does)"
        else:
            why = "follows from the stated GPU or --pcie"
        self._draft.note(f"PCIe {generation} x{width} {why}")
        cpus = []
        for number, node in enumerate(self._groups(placed, "NODE")):
            cpus.append(self._draft.add_device(f"cpu{number}", "cpu"))
            self._add_groups(node, cpus[-1], ("PHB", "PXB", "PIX"))
        if len(cpus) > 1:
            socket = self._draft.socket(_SOCKET_GB_PER_S, _SOCKET_SOURCE)
            for number, one in enumerate(cpus):
                for other in cpus[number + 1 :]:
                    self._draft.add_wire(one, other, socket)

    def _is_placed(self, device: str) -> bool:
        """True if the table contains any position of a device on PCIe."""
        cells = self._table.cells
        others = (other for other in self._table.devices if other != device)
        return device in self._table.numa or any(cells[device, o] in _DISTANCES for o in others)

    def _add_groups(self, devices: list[str], parent: str, distances: tuple[str, ...]) -> None:
        """Divides devices by the farthest remaining distance, and then each part by the
        next one.
        """
        groups = self._groups(devices, distances[0])
        for group in groups:
            if len(group) == 1:
                self._add_leaf(group[0], parent)
            elif distances[0] == "PIX":
                bridge = self._add_bridge(parent)
                for device in group:
                    self._add_leaf(device, bridge)
            else:
                shares_host_bridge = distances[0] == "PHB" and len(groups) > 1
                spans_bridges = distances[0] == "PXB" and len(self._groups(group, "PIX")) > 1
                has_bridge = shares_host_bridge or spans_bridges
                inner = self._add_bridge(parent) if has_bridge else parent
                self._add_groups(group, inner, distances[1:])

    def _add_bridge(self, parent: str) -> str:
        bridge = self._draft.add_device(f"bridge{self._bridges}", "pcie_bridge")
        self._bridges += 1
        self._draft.add_wire(bridge, parent, self._draft.pcie(*self._link))
        return bridge

    def _add_leaf(self, device: str, parent: str) -> None:
        is_gpu = device.startswith("GPU")
        link = self._draft.gpu_pcie(*self._link) if is_gpu else self._draft.nic_pcie(*self._link)
        self._draft.add_wire(device.lower(), parent, link)

    def _groups(self, devices: list[str], distance: str) -> list[list[str]]:
        """Devices at most `distance` apart, directly or through others, in the table's order."""
        near = _DISTANCES[: _DISTANCES.index(distance) + 1]
        numa = self._table.numa
        links = [
            (row, column)
            for row, column in permutations(devices, 2)
            if self._table.cells[row, column] in near
            or (distance == "NODE" and row in numa and numa[row] == numa.get(column))
        ]
        return joined(devices, links)
