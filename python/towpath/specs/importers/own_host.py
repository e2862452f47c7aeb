# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A host described by the output of its own tools: one topology, and any number of
adapter states.
"""

from __future__ import annotations

from collections.abc import Sequence

from towpath.errors import ConfigError
from towpath.specs import formats
from towpath.specs.importers import nccl_xml, nvidia_smi
from towpath.specs.importers.adapter_status import is_status, merged, parse_status
from towpath.specs.machine_spec import GraphSpec

_KNOWN = "`nvidia-smi topo -m`, an NCCL topology XML, `ibstatus` or `rdma link`"


def import_host(files: Sequence[tuple[str, str]], complete_from: str | None = None) -> GraphSpec:
    """Imports the host that several texts describe together.

    Args:
        files: text and file name of each: one topology (`nvidia-smi topo -m` or an NCCL topology
            XML), and the output of `ibstatus` and `rdma link`.
        complete_from: the shipped machine that supplies missing values; None: the machine with the
            same number of NVLinks.

    Returns:
        The host, with a fabric for any number of such hosts if it has adapters.

    Raises:
        ConfigError: a text is of an unknown kind, the number of topologies is not one, or the
        content of a text is wrong.
    """
    topologies = []
    ports = []
    for text, file in files:
        if formats.is_xml(text) or formats.is_topology_table(text):
            topologies.append((text, file))
        elif is_status(text):
            ports += parse_status(text, file)
        else:
            raise ConfigError(f"is of an unknown kind; use {_KNOWN}", file=file, line=1)
    if not topologies:
        problem = "one topology is needed, `nvidia-smi topo -m` or NCCL's XML; none is given"
        raise ConfigError(problem)
    if len(topologies) > 1:
        first, second = (file for _, file in topologies[:2])
        problem = f"is a second topology besides {first}; one host is described at a time"
        raise ConfigError(problem, file=second, line=1)
    text, file = topologies[0]
    if formats.is_xml(text):
        if ports:
            problem = "is an NCCL topology, which states rates itself; leave the others out"
            raise ConfigError(problem, file=file, line=1)
        return nccl_xml.parse_system(text, file, complete_from or "dgx-h100")
    donor = complete_from or _donor(nvidia_smi.nvlinks_of_a_gpu(text, file))
    return nvidia_smi.parse_table(text, file, donor, merged(ports))


def _donor(nvlinks: int) -> str:
    """The shipped machine whose GPUs have the same number of NVLinks in `nvidia-smi topo -m`."""
    if nvlinks == 0:
        return "pcie-8gpu"
    return "dgx-a100" if nvlinks <= nvidia_smi.NVLINKS_OF_AN_A100 else "dgx-h100"
