# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A host described by the output of its own tools: one topology, and any number of texts that
state the models of GPUs and the rates of adapters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from towpath.errors import ConfigError
from towpath.specs import formats
from towpath.specs.importers import nccl_xml, nvidia_smi, rocm_smi
from towpath.specs.importers.adapter_status import AdapterPort, is_status, merged, parse_status
from towpath.specs.importers.gpu_models import GpuModel, gpu_in
from towpath.specs.importers.host_draft import REFERENCE_MACHINE
from towpath.specs.importers.nvidia_smi import Known
from towpath.specs.machine_spec import GraphSpec

_KNOWN = (
    "`nvidia-smi topo -m`, `rocm-smi --showtopo`, an NCCL topology XML, the XML of lstopo, "
    "`ibstatus`, `rdma link`, `nvidia-smi -q` or `lspci`"
)
_DESCRIPTORS = ("ethernet_connections:", "functional_workers:")
_WITHOUT_NVLINK = "pcie-8gpu"


def import_host(
    files: Sequence[tuple[str, str]], complete_from: str | None = None, known: Known | None = None
) -> GraphSpec:
    """Imports the host that several texts describe together.

    Args:
        files: text and file name of each: one topology (`nvidia-smi topo -m`, `rocm-smi
            --showtopo`, an NCCL topology XML or the XML of lstopo), and the output of `ibstatus`,
            `rdma link`, `nvidia-smi -q`, `nvidia-smi -L` and `lspci`. A text may contain several
            of these.
        complete_from: the shipped machine that supplies missing values. The default is the machine
            with the same number of NVLinks.
        known: facts that the caller states about the GPUs.

    Returns:
        The host, with a fabric for any number of such hosts if it has adapters.

    Raises:
        ConfigError: a text is of an unknown kind, the number of topologies is not one, or the
        content of a text is wrong.
    """
    known = known or Known()
    topologies: list[tuple[str, str]] = []
    ports: list[AdapterPort] = []
    for text, file in files:
        is_xml = formats.is_xml(text)
        is_topology = is_xml or rocm_smi.is_showtopo(text) or formats.is_topology_table(text)
        found = [] if is_xml or not is_status(text) else parse_status(text, file)
        gpu = gpu_in(text)
        if not (is_topology or found or gpu):
            raise _unknown(text, file)
        if is_topology:
            topologies.append((text, file))
        ports += found
        known = replace(known, gpu=known.gpu or gpu)
    text, file = _one(topologies)
    return _Topology(text, file, merged(ports)).spec(complete_from, known)


def _one(topologies: list[tuple[str, str]]) -> tuple[str, str]:
    if not topologies:
        problem = "one topology is needed, `nvidia-smi topo -m` or NCCL's XML; none is given"
        raise ConfigError(problem)
    if len(topologies) > 1:
        first, second = (file for _, file in topologies[:2])
        problem = f"is a second topology besides {first}; one host is described at a time"
        raise ConfigError(problem, file=second, line=1)
    return topologies[0]


def donor_of(text: str, file: str) -> str:
    """The shipped machine that supplies the values that a topology omits.

    Raises:
        ConfigError: the text is not a topology.
    """
    gpu = gpu_in(text)
    if formats.is_xml(text):
        return _Topology(text, file, {})._donor_of_xml(gpu)
    if rocm_smi.is_showtopo(text):
        return rocm_smi.DONOR
    return _donor(nvidia_smi.nvlinks_of_a_gpu(text, file), gpu)


def _unknown(text: str, file: str) -> ConfigError:
    if any(word in text for word in _DESCRIPTORS):
        problem = "is a descriptor of chips; `towpath show` and --machine read it directly"
    else:
        problem = f"is of an unknown kind; use {_KNOWN}"
    return ConfigError(problem, file=file, line=1)


@dataclass(frozen=True)
class _Topology:
    """The text of one topology, with the ports of the adapters."""

    text: str
    file: str
    ports: dict[str, AdapterPort]

    def spec(self, complete_from: str | None, known: Known) -> GraphSpec:
        text, file = self.text, self.file
        if formats.is_xml(text):
            return nccl_xml.parse_system(
                text, file, complete_from or self._donor_of_xml(known.gpu), self.ports
            )
        if rocm_smi.is_showtopo(text):
            return rocm_smi.parse_showtopo(text, file, complete_from)
        nvlinks = nvidia_smi.nvlinks_of_a_gpu(text, file)
        donor = complete_from or _donor(nvlinks, known.gpu)
        return nvidia_smi.parse_table(text, file, donor, self.ports, known)

    def _donor_of_xml(self, gpu: GpuModel | None) -> str:
        if gpu is not None:
            return gpu.donor
        has_nvlink = nccl_xml.has_nvlink(self.text, self.file)
        is_reference = has_nvlink or (
            has_nvlink is None and nccl_xml.gpu_count(self.text, self.file) == 8
        )
        return REFERENCE_MACHINE if is_reference else _WITHOUT_NVLINK


def _donor(nvlinks: int, gpu: GpuModel | None) -> str:
    """The shipped machine of a GPU, or the one whose GPUs have as many NVLinks."""
    if nvlinks == 0:
        return _WITHOUT_NVLINK
    if gpu is not None and gpu.nvlinks > 0:
        return gpu.donor
    return "dgx-a100" if nvlinks <= nvidia_smi.NVLINKS_OF_AN_A100 else REFERENCE_MACHINE
