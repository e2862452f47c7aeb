# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the decision tables of the shipped machines: `make decisions NCCL=PATH RCCL=PATH`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from towpath.api.machine import load
from towpath.collectives.nccl.facts import Assumptions, host_facts
from towpath.collectives.nccl_itself.build import NcclBuild, build
from towpath.collectives.nccl_itself.decide import Question, decide
from towpath.collectives.nccl_itself.host import NcclHost, host_of
from towpath.collectives.nccl_itself.table import FOLDER, TableWriter, operations
from towpath.errors import ConfigError

RELEASES = ("2.21.5", "2.25.1", "2.27.5", "2.28.9", "2.29.7", "2.30.7")
# The NVLink domain of gb200-nvl72 spans hosts, which is not described to NCCL.
MACHINES = (
    "dgx-h100", "dgx-a100", "dgx-b200", "hgx-h200", "aws-p5", "pcie-8gpu", "dgx-b300", "aws-p4d",
    "gcp-a3-mega", "gh200-4gpu", "rtx-pro-6000-8gpu",
)  # fmt: skip
RCCL_MACHINES = ("mi300x",)
NODES = (1, 2, 4, 8, 16, 32, 128)


def hosts_of(machine: str) -> Iterator[tuple[NcclHost, int]]:
    """The hosts of a shipped machine with their numbers: one with 2 to all GPUs, and several."""
    for nodes in NODES:
        spec = load(machine, hosts=nodes).spec
        last = spec.gpus_per_host
        for gpus in range(2, last + 1) if nodes == 1 else (last,):
            facts = host_facts(spec, gpus, Assumptions())
            yield host_of(facts.topology, facts.generation, facts.cpu), nodes


def main(nccl_source: str, rccl_source: str) -> None:
    """Builds each release and asks it.

    Args:
        nccl_source: NCCL's repository with its tags. Empty: its tables stay as they are.
        rccl_source: a checkout of RCCL. Empty: its table stays as it is.

    Raises:
        ConfigError: a release cannot be built.
    """
    FOLDER.mkdir(exist_ok=True)
    if nccl_source:
        for release in RELEASES:
            _write(build(Path(nccl_source), release), MACHINES)
    if rccl_source:
        _write(build(Path(rccl_source)), RCCL_MACHINES)


def _write(built: NcclBuild, machines: tuple[str, ...]) -> None:
    """Writes the table of a release."""
    start = time.monotonic()
    writer = TableWriter(built.release, time.strftime("%Y-%m-%d", time.gmtime()))
    asked = 0
    for machine in machines:
        for host, nodes in hosts_of(machine):
            asked += _add(writer, built, host, nodes, machine)
    file = FOLDER / f"{built.release}.json"
    file.write_text(writer.text(), encoding="utf-8")
    took_s = time.monotonic() - start
    print(
        f"{built.release}: {asked} runs in {took_s:.0f} s, {file.stat().st_size} bytes", flush=True
    )


def _add(writer: TableWriter, built: NcclBuild, host: NcclHost, nodes: int, machine: str) -> int:
    """Asks about a host unless that was done, and returns the number of runs."""
    calls = operations(nodes * host.gpus)
    question = Question(host, nodes, calls, is_replicated=True)
    if writer.has(host, nodes):
        writer.add_name(host, nodes, machine)
        return 0
    try:
        writer.add(host, nodes, machine, decide(built, question))
    except ConfigError as error:
        print(f"{machine}, {nodes} x {host.gpus} GPUs: {error}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    main(*sys.argv[1:3])
