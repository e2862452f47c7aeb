# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the output of `rocm-smi --showtopo`: links of xGMI between GPUs, and NUMA nodes."""

from __future__ import annotations

import re

from towpath.errors import ConfigError, quoted
from towpath.specs import shipped
from towpath.specs.formats import COLOURS
from towpath.specs.importers.host_draft import HostDraft
from towpath.specs.machine_spec import GraphSpec

DONOR = "mi300x"
_TITLE = re.compile(r"=+ (.{1,60}?) =+\Z")
_NUMA = re.compile(r"GPU\[([0-9]{1,3})\]\s*: \(Topology\) Numa Node: ([0-9]{1,3})\Z")
_GPUS_MAX = 64
_PCIE = (32.0, 16)
_SOCKET_GB_PER_S = 24.0
_SOCKET_SOURCE = "NCCL src/graph/topo.h, Zen 3 and 4; the output names no CPU"


def is_showtopo(text: str) -> bool:
    """True if a text resembles the output of `rocm-smi --showtopo`."""
    return "Link Type between two GPUs" in text or "Hops between two GPUs" in text


def parse_showtopo(text: str, file: str, complete_from: str | None = None) -> GraphSpec:
    """Parses the host of `rocm-smi --showtopo`.

    Args:
        text: the file's content.
        file: name of the file, for errors and for the machine's name.
        complete_from: the shipped machine with the xGMI links and the costs. None means mi300x.

    Raises:
        ConfigError: the text has no table of link types, or its content is wrong.
    """
    sections = _sections(COLOURS.sub("", text))
    types = _matrix(sections, "Link Type between two GPUs", file)
    gpus = len(types)
    draft = HostDraft(file, "output of rocm-smi --showtopo")
    donor = shipped.machine(complete_from or DONOR)
    for number in range(gpus):
        draft.add_device(f"gpu{number}", "gpu")
    hops = sections.get("Hops between two GPUs")
    one_hop = None if hops is None else _matrix(sections, "Hops between two GPUs", file)
    link_type = draft.take_xgmi(donor)
    for one in range(gpus):
        for other in range(one + 1, gpus):
            is_direct = one_hop is None or one_hop[one][other] == "1"
            if types[one][other] == "XGMI" and is_direct:
                draft.add_wire(f"gpu{one}", f"gpu{other}", link_type)
    _add_cpus(draft, dict(_numa_nodes(sections)), gpus)
    draft.name_gpu(f"as in {donor.name}")
    draft.note(f"xGMI links and GPU costs are from {donor.name}: the output names no GPU")
    draft.note("the output names no adapters, so this is one host")
    return draft.finish(donor.name)


def _sections(text: str) -> dict[str, list[tuple[int, str]]]:
    """The numbered lines below each title."""
    found: dict[str, list[tuple[int, str]]] = {}
    below: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        title = _TITLE.match(line.strip())
        if title is not None:
            below = found.setdefault(title[1], [])
        elif line.strip():
            below.append((number, line.strip()))
    return found


def _matrix(sections: dict[str, list[tuple[int, str]]], title: str, file: str) -> list[list[str]]:
    """The cells of one table, square and with equal halves."""
    lines = sections.get(title)
    if not lines:
        raise ConfigError(f"has no table {quoted(title)}", file=file, line=1)
    start, heading = lines[0]
    names = heading.split()
    if not 0 < len(names) <= _GPUS_MAX or names != [f"GPU{n}" for n in range(len(names))]:
        problem = f"must list GPU0 to GPU{_GPUS_MAX - 1} in order, without gaps"
        raise ConfigError(problem, file=file, line=start)
    rows: list[list[str]] = []
    for number, line in lines[1 : len(names) + 1]:
        words = line.split()
        if words[0] != f"GPU{len(rows)}" or len(words) != len(names) + 1:
            problem = f"is not the row of GPU{len(rows)} with {len(names)} cells"
            raise ConfigError(problem, file=file, line=number)
        rows.append(words[1:])
    if len(rows) != len(names):
        raise ConfigError(f"has {len(rows)} of {len(names)} rows", file=file, line=start)
    for one in range(len(rows)):
        for other in range(one):
            if rows[one][other] != rows[other][one]:
                problem = f"is {quoted(rows[one][other])} one way and not the other"
                field = f"GPU{one}, GPU{other}"
                raise ConfigError(problem, file=file, line=start, field=field)
    return rows


def _numa_nodes(sections: dict[str, list[tuple[int, str]]]) -> list[tuple[int, int]]:
    lines = sections.get("Numa Nodes", [])
    matches = (_NUMA.match(line) for _, line in lines)
    return [(int(match[1]), int(match[2])) for match in matches if match]


def _add_cpus(draft: HostDraft, numa: dict[int, int], gpus: int) -> None:
    if set(numa) != set(range(gpus)):
        return
    nodes = sorted(set(numa.values()))
    cpus = {node: draft.add_device(f"cpu{n}", "cpu") for n, node in enumerate(nodes)}
    for gpu in range(gpus):
        draft.add_wire(f"gpu{gpu}", cpus[numa[gpu]], draft.gpu_pcie(*_PCIE))
    socket = draft.socket(_SOCKET_GB_PER_S, _SOCKET_SOURCE) if len(cpus) > 1 else ""
    names = list(cpus.values())
    for number, one in enumerate(names):
        for other in names[number + 1 :]:
            draft.add_wire(one, other, socket)
    draft.note("PCIe 5.0 x16 is assumed: the output states no PCIe rate")
