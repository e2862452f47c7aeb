# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The decisions of NCCL itself on a cluster of GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from towpath.collectives.nccl.choice import Candidate
from towpath.collectives.nccl.communicator import COLLECTIVES
from towpath.collectives.nccl.environment import VARIABLES, Environment
from towpath.collectives.nccl.facts import Assumptions, host_facts
from towpath.collectives.nccl.imitation import Library
from towpath.collectives.nccl.sends import exchange_source, send_choice
from towpath.collectives.nccl_itself.answer import DecisionRow, NcclAnswer
from towpath.collectives.nccl_itself.build import find_build
from towpath.collectives.nccl_itself.decide import Decision, Decisions, Question, decide
from towpath.collectives.nccl_itself.host import NcclHost, host_of
from towpath.collectives.nccl_itself.host_file import read_host_file
from towpath.collectives.nccl_itself.source import RCCL_PREFIX, release_name
from towpath.collectives.nccl_itself.times import MESSAGE, CallTime
from towpath.errors import ConfigError, quoted
from towpath.schedules.words import collective_named

if TYPE_CHECKING:
    from towpath.api.clusters import GpuCluster

_VARIABLE = re.compile(r"NCCL_[A-Z0-9_]{1,60}\Z")
_RANKS_SIMULATED_MAX = 64


@dataclass(frozen=True)
class NcclOptions:
    """The settings of a user of NCCL, and facts that a machine omits.

    Attributes:
        variables: NCCL_ALGO and any other one: NCCL itself reads them.
        topology_file: a file for NCCL_TOPO_FILE instead of the machine's hosts.
        assumptions: the generation of the GPUs and the vendor of the CPUs.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    topology_file: str | None = None
    assumptions: Assumptions = Assumptions()

    def __post_init__(self) -> None:
        for name, value in self.variables.items():
            if not _VARIABLE.match(name):
                raise ConfigError(f"{quoted(name)} is not a variable of NCCL, such as NCCL_ALGO")
            if "\0" in value or len(value) > 1000:
                raise ConfigError(f"{name} has a value that is not text of at most 1000 characters")


def ask_nccl(
    machine: GpuCluster,
    release: str,
    collective: str,
    sizes_bytes: Sequence[int],
    options: NcclOptions,
    *,
    is_connected: bool = False,
) -> NcclAnswer:
    """Asks a release that was built.

    Args:
        machine: as large as the communicator.
        release: such as "2.28.9".
        collective: its name.
        sizes_bytes: of the whole array.
        options: the user's settings.
        is_connected: every rank has a communicator, which up to 32 ranks can have. Otherwise only
            the ranks of the first node run, which decide the same and take less time.

    Raises:
        ConfigError: the release is not built, or does not run there.
    """
    name = collective_named(collective)
    if name not in COLLECTIVES:
        raise ConfigError(
            f"NCCL chooses no algorithm for {name}; it chooses for {', '.join(COLLECTIVES)}"
        )
    facts = host_facts(machine.spec, machine.ranks_per_host, options.assumptions)
    if options.topology_file is None:
        host = host_of(facts.topology, facts.generation, facts.cpu)
    else:
        host = read_host_file(options.topology_file, facts.generation, facts.topology)
    if release.startswith(RCCL_PREFIX) != host.is_of_amd:
        own = "RCCL, such as rccl-2.21.5" if host.is_of_amd else "NCCL, such as 2.28.9"
        raise ConfigError(
            f"{release_name(release)} does not run on machine {quoted(machine.name)}; name a "
            f"release of {own}"
        )
    question = Question(
        host,
        machine.hosts,
        [(name, size_bytes) for size_bytes in sizes_bytes],
        options.variables,
        machine.ranks_per_host if options.topology_file is None else host.gpus,
        is_replicated=not is_connected,
    )
    found = decide(find_build(release), question)
    rows = tuple(DecisionRow(each, _simulated_us(machine, found, each)) for each in found.decisions)
    hosts = "1 host" if machine.hosts == 1 else f"{machine.hosts} hosts"
    where = f"{machine.name}, {found.ranks} GPUs on {hosts}"
    return NcclAnswer(where, found, rows, facts.notes)


def nccl_host(machine: GpuCluster) -> NcclHost:
    """Each host of a machine, as NCCL and virtual GPUs read it.

    Raises:
        ConfigError: NCCL does not run on it.
    """
    facts = host_facts(machine.spec, machine.ranks_per_host, Assumptions())
    host = host_of(facts.topology, facts.generation, facts.cpu)
    if host.is_of_amd:
        raise ConfigError(f"NCCL does not run on machine {quoted(machine.name)}")
    return host


def call_time(
    machine_of: Callable[[int, int], GpuCluster], release: str, variables: Mapping[str, str]
) -> CallTime:
    """The simulated time of a call as a release of NCCL makes it.

    Args:
        machine_of: the machine with a number of hosts, and of ranks on each.
        release: such as "2.27.5".
        variables: of the program. Variables of NCCL that change its choice act.

    Returns:
        A function of the collective, the bytes of the whole array, ranks and nodes. It returns
        microseconds, and raises ConfigError for ranks that are not the same number on each node.
        "send_recv" is a message of that many bytes, to another node if there are several, as a
        part of an exchange in which each rank sends and receives `messages` of them.
    """
    known = {name: value for name, value in variables.items() if name in VARIABLES}
    library = Library(environment=Environment.of(known), release=release)

    def time_us(
        collective: str, size_bytes: int, ranks: int, nodes: int, messages: int = 1
    ) -> float:
        if ranks % nodes:
            raise ConfigError(f"{ranks} ranks on {nodes} nodes have no simulated time")
        machine = machine_of(nodes, ranks // nodes)
        if collective == MESSAGE:
            choice = send_choice(machine.spec, ranks, machine.imitate(library).channels, size_bytes)
            part = messages + 1
            hosts = 1 if nodes == 1 else part
            source = exchange_source(choice, part, hosts)
            return machine_of(hosts, part // hosts).simulated_us(source, part * size_bytes)
        row = machine.expect(collective, size_bytes=size_bytes, library=library).rows[0]
        found = row.out_of_place or row.in_place
        assert found is not None
        return found.time_us

    return time_us


def _simulated_us(machine: GpuCluster, found: Decisions, decision: Decision) -> float | None:
    """The time of the schedule that NCCL launches, with its rings and channels."""
    if not 2 <= found.ranks <= _RANKS_SIMULATED_MAX or found.ranks != machine.ranks:
        return None
    imitation = machine.imitate("rccl" if found.release.startswith(RCCL_PREFIX) else "nccl")
    candidate = Candidate(decision.algorithm, decision.protocol, decision.estimate_us)
    try:
        choice = imitation.forced(decision.collective, decision.size_bytes, candidate)
    except ConfigError:
        return None
    choice = replace(choice, channels=max(1, decision.channels))
    if not imitation.has_schedule(decision.collective, choice):
        return None
    source = imitation.source(decision.collective, decision.size_bytes, choice)
    if source.rings:
        source = replace(source, rings=found.rings[: len(source.rings)])
    return machine.simulated_us(source, decision.size_bytes)
