# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Finds unusual facts in topologies and states of adapters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from towpath.errors import ConfigError
from towpath.groups import joined
from towpath.operators.finding import Evidence, Finding
from towpath.operators.judgments import MANAGEMENT_PORT_SHARE, SLOW_LINK_SHARE
from towpath.operators.observed import Document, Observed
from towpath.specs import formats
from towpath.specs.importers import lstopo_xml, nvidia_smi, rocm_smi
from towpath.specs.importers.adapter_status import is_status, merged, parse_status
from towpath.specs.importers.gpu_models import gpu_in
from towpath.specs.importers.own_host import import_host

NAME = "topology"
_NO_GPU = "names no GPU"
_WIDTH = re.compile(r'link_width="([0-9]{1,2})"')
_SPEED = re.compile(r'link_speed="([0-9]{1,3}(?:\.[0-9]{1,2})?) GT/s')
_PCI = re.compile(r"<pci\b[^>]{0,600}>")
_BUS = re.compile(r'busid="([^"]{1,40})"')
_GPU_CLASS = re.compile(r'class="0x030[02]')
_LSTOPO_GPU = re.compile(
    r'"PCIDev" [^>]{0,200}pci_busid="([^"]{1,20})" pci_type="03[0-9a-f]{2} \[10de:[^"]{0,40}" '
    r'pci_link_speed="([0-9]{1,5}(?:\.[0-9]{1,9})?)"'
)
_LSTOPO_OS_DEVICE = re.compile(r'"OSDev" [^>]{0,200}name="([^"]{1,40})"')
_LSTOPO_PORT = re.compile(r'"Port[0-9]{1,2}State" value="([0-9]{1,2})"')
# The state of a port with a link, of InfiniBand's PortInfo.
_ACTIVE = "4"


def recognizes(document: Document) -> bool:
    """True if a document is a topology or a state of adapters."""
    text = document.text
    if text.lstrip().startswith("<"):
        return "<system" in text[:4000] or lstopo_xml.is_lstopo(text)
    return formats.is_topology_table(text) or rocm_smi.is_showtopo(text) or is_status(text)


def is_topology(document: Document) -> bool:
    """True if a document describes the devices of a host, so that it can be a machine."""
    return recognizes(document) and (
        document.text.lstrip().startswith("<")
        or formats.is_topology_table(document.text)
        or rocm_smi.is_showtopo(document.text)
    )


def read(document: Document) -> Observed:
    """Reads a topology or a state of adapters.

    Raises:
        ConfigError: its content is wrong.
    """
    found = Observed(formats=[NAME])
    text, file = document.text, document.file
    if is_status(text) and not text.lstrip().startswith("<"):
        found.formats = ["state of adapters"]
        found.findings += _ports(document)
    if not is_topology(document):
        return found
    try:
        spec = import_host([(text, file)])
    except ConfigError as error:
        if _NO_GPU not in str(error):
            raise
        first = next(line for line in document.lines() if line[1].strip())
        sentence = "the file is a valid topology, but has no GPU, so it is not a machine"
        found.findings.append(Finding("no_gpu", sentence, (document.evidence(*first),)))
        return found
    found.facts["GPUs of a host"] = str(spec.gpus_per_host)
    found.facts["adapters"] = str(sum(each.is_adapter for each in spec.devices))
    found.facts["assumed"] = " / ".join(spec.notes)[:600]
    for check in (_far_adapters, _table, _pcie, _lstopo):
        found.findings += check(document)
    return found


def _is_of_nvidia_smi(text: str) -> bool:
    return formats.is_topology_table(text) and not rocm_smi.is_showtopo(text)


def _line_of(document: Document, word: str) -> tuple[int, str]:
    return next(((n, line) for n, line in document.lines() if word in line), (1, word))


def _ports(document: Document) -> Iterator[Finding]:
    ports = merged(parse_status(document.text, document.file))
    fastest = max((port.rate_gbit or 0 for port in ports.values()), default=0)
    for name, port in ports.items():
        evidence = (document.evidence(*_line_of(document, name)),)
        if port.is_up is False:
            others = sum(other.is_up is True for other in ports.values())
            sentence = f"the port of {name} is down, {others} other ports are up"
            yield Finding("adapter_down", sentence, evidence, 0.8, others > 0)
        elif port.rate_gbit and port.rate_gbit < fastest:
            sentence = f"{name} has {port.rate_gbit:g} Gb/s, the fastest {fastest:g} Gb/s"
            # Management ports are several times slower. A port of a rail that lost lanes is not.
            is_fault = port.layer != "Ethernet" and port.rate_gbit > fastest * MANAGEMENT_PORT_SHARE
            yield Finding("adapter_slow", sentence, evidence, 0.6, is_fault)


def _far_adapters(document: Document) -> Iterator[Finding]:
    if not _is_of_nvidia_smi(document.text):
        return
    far = nvidia_smi.far_adapters(document.text, document.file)
    if far:
        number, line = next(
            (n, line) for n, line in document.lines() if line.split()[:1] == [far[0]]
        )
        sentence = f"{', '.join(far)} are far from every GPU (SYS), other adapters are nearer"
        if len(far) == 1:
            sentence = sentence.replace(" are far", " is far")
        evidence = (document.evidence(number, line),)
        yield Finding("adapter_far", sentence, evidence, 0.7, False)


def _table(document: Document) -> Iterator[Finding]:
    """Unusual facts of a table of nvidia-smi topo -m."""
    if not _is_of_nvidia_smi(document.text):
        return
    cells = nvidia_smi.cells_of_gpus(document.text, document.file)
    gpus = sorted({one for one, _ in cells}, key=lambda gpu: int(gpu[3:]))
    header = document.evidence(*_line_of(document, "GPU0"))
    links = {pair: int(cell[2:]) for pair, cell in cells.items() if cell.startswith("NV")}
    if not links and len(gpus) > 1:
        yield from _without_nvlink(document, cells, gpus)
        return
    yield from _missing_nvlinks(document, links, gpus)
    if links and len(links) < len(cells):
        groups = joined(gpus, links)
        names = ", ".join("-".join(each) for each in groups if len(each) > 1)
        sentence = (
            f"NVLinks join {names} only, so a collective with GPUs of several groups is limited "
            "by PCIe"
        )
        yield Finding("nvlink_partial", sentence, (header,), 0.9, False)


def _missing_nvlinks(
    document: Document, links: dict[tuple[str, str], int], gpus: list[str]
) -> Iterator[Finding]:
    """GPUs with the usual number of neighbors, but fewer NVLinks than the other GPUs."""
    per_gpu = {gpu: sum(n for (one, _), n in links.items() if one == gpu) for gpu in gpus}
    joined = Counter(one for one, _ in links)
    usual = Counter(per_gpu.values()).most_common(1)[0][0]
    for gpu, count in per_gpu.items():
        if 0 < count < usual and joined[gpu] == max(joined.values()):
            row = next(each for each in document.lines() if each[1].split()[:1] == [gpu])
            sentence = f"{gpu} has fewer NVLinks ({count}) than the other GPUs ({usual})"
            yield Finding("nvlink_missing", sentence, (document.evidence(*row),), 0.8)


def _without_nvlink(
    document: Document, cells: dict[tuple[str, str], str], gpus: list[str]
) -> Iterator[Finding]:
    header = document.evidence(*_line_of(document, "GPU0"))
    names_adapters = "NIC" in document.text or "mlx5" in document.text
    is_virtual = len(gpus) >= 8 and all(cell in ("PHB", "SYS") for cell in cells.values())
    if names_adapters and is_virtual:
        sentence = (
            f"{len(gpus)} GPUs have only PHB and SYS between them: this is the output of `topo "
            "-mp`, or of a virtual machine that hides NVLinks"
        )
        yield Finding("nvlink_hidden", sentence, (header,), 0.95, False)
    near = {pair for pair, cell in cells.items() if cell != "SYS"}
    groups = joined(gpus, near)
    if len(groups) > 1:
        shown = ", ".join("-".join(each) for each in groups)
        model = gpu_in(document.text)
        generation = "" if model is None else f" over PCIe of a {model.name}"
        sentence = f"GPUs are on {len(groups)} processors ({shown}){generation}"
        yield Finding("sockets_of_cpu", sentence, (header,), 0.9, False)


def _pcie(document: Document) -> Iterator[Finding]:
    """GPUs whose PCIe link has fewer lanes or a lower speed than most of the GPUs."""
    links: list[tuple[float, str, Evidence]] = []
    for number, line in document.lines() if "<pci" in document.text else ():
        for match in _PCI.finditer(line[:8000]):
            width, speed = _WIDTH.search(match[0]), _SPEED.search(match[0])
            if _GPU_CLASS.search(match[0]) and width and speed:
                bus = _BUS.search(match[0])
                rate = float(speed[1]) * int(width[1])
                evidence = document.evidence(number, match[0])
                links.append((rate, bus[1] if bus else "", evidence))
    yield from _slow_links(links, "GT/s over all lanes")


def _slow_links(
    links: list[tuple[float, str, Evidence]], unit: str, *, is_fault: bool = True
) -> Iterator[Finding]:
    """The links that are far slower than most of the links, from rates, bus ids and lines."""
    if len(links) < 3:
        return
    usual = sorted(rate for rate, _, _ in links)[len(links) // 2]
    for rate, bus_id, evidence in links:
        if rate < usual * SLOW_LINK_SHARE:
            why = "" if is_fault else ", and idle GPUs lower their speed"
            sentence = (
                f"the PCIe link of the GPU at {bus_id} has {rate:g} {unit}, the other GPUs "
                f"{usual:g}{why}"
            )
            yield Finding("pcie_link", sentence, (evidence,), 0.85 if is_fault else 0.3, is_fault)


def _lstopo(document: Document) -> Iterator[Finding]:
    """Slow links of GPUs and ports that are down in the XML of lstopo."""
    if not lstopo_xml.is_lstopo(document.text):
        return
    links: list[tuple[float, str, Evidence]] = []
    ports: list[tuple[str, str, Evidence]] = []
    device = ""
    for number, line in document.lines():
        if match := _LSTOPO_GPU.search(line[:1000]):
            rate = float(match[2])
            if rate > 0:
                links.append((rate, match[1], document.evidence(number, line)))
        elif match := _LSTOPO_OS_DEVICE.search(line[:1000]):
            device = match[1]
        elif match := _LSTOPO_PORT.search(line[:1000]):
            ports.append((match[1], device, document.evidence(number, line)))
    active = sum(state == _ACTIVE for state, *_ in ports)
    for state, name, evidence in ports:
        if state != _ACTIVE:
            sentence = f"the port of {name} is down (state {state}), {active} other ports are up"
            yield Finding("adapter_down", sentence, (evidence,), 0.8, active > 0)
    yield from _slow_links(links, "GB/s", is_fault=False)
