# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The communication of a traced job: as measured, as expected, and on other machines."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from towpath.api.doctor import read_document
from towpath.api.machine import load
from towpath.api.many_hosts import (
    HOSTS_OF_ALL_TO_ALL,
    HOSTS_OF_RINGS,
    HOSTS_OF_TREES,
    extrapolated_us,
    sources_of,
)
from towpath.collectives.nccl.sends import exchange_source, send_choice
from towpath.errors import ConfigError
from towpath.operators.job import JobTime, job_time
from towpath.operators.job_trace import Call, Job, parse_job
from towpath.studies.progress import Progress, silent

if TYPE_CHECKING:
    from towpath.api.clusters import GpuCluster

RANKS_MAX = 100_000
# A larger group is computed from this number of hosts and a smaller one.
_HOSTS_SIMULATED = {"all_reduce": HOSTS_OF_TREES, "all_to_all": HOSTS_OF_ALL_TO_ALL}
_BYTES_LEAST = 4096


def read_job(file: str | os.PathLike[str]) -> Job:
    """Reads a trace of one rank: Kineto, Chakra or a flight recorder dump.

    Raises:
        ConfigError: the file is not such a trace.
    """
    return parse_job(read_document(Path(file)))


def job_times(
    job: Job, machines: Sequence[str], *, scale: int = 1, progress: Progress = silent
) -> list[JobTime]:
    """The times of a job as traced, and on machines.

    Args:
        job: the calls of one rank.
        machines: names or files of clusters of GPUs.
        scale: factor of the number of hosts: groups that span several hosts grow by it.
        progress: called with the number of predicted groups of equal calls.

    Returns:
        The traced times first, and then the times on each machine.

    Raises:
        ConfigError: a machine is not a cluster of GPUs, or the job becomes too large.
    """
    if not 1 <= scale <= RANKS_MAX or job.ranks * scale > RANKS_MAX:
        problem = f"scale is {scale}; the job must have at most {RANKS_MAX} GPUs"
        raise ConfigError(problem, field="scale")
    if any(call.is_part for call in job.calls):
        job = scaled(job, job.ranks)
    found = []
    if any(call.duration_us is not None for call in job.collectives):
        found.append(job_time(job, "traced", _traced_us))
    kinds = {_key(call) for call in job.collectives}
    with progress("predicting", max(len(kinds) * len(machines), 1)) as update:
        done = 0
        for name in machines:
            predictor = _Predictor(name, job.ranks, scale)
            for kind in sorted(kinds, key=str):
                done += 1
                update(done, f"{name}: {kind[0]}")
                predictor.time_us(kind)
            times = job_time(job, predictor.where, predictor.of_call)
            found.append(replace(times, extrapolated=predictor.extrapolated))
    return found


def _traced_us(call: Call) -> float | str:
    return "the trace has no time" if call.duration_us is None else call.duration_us


_Key = tuple[str, int, int, tuple[int, ...]]


def _key(call: Call) -> _Key:
    return call.collective, call.size_bytes, call.ranks, call.members


class _Predictor:
    """Predicts calls on one machine. Equal calls are simulated once."""

    def __init__(self, name: str, ranks: int, scale: int) -> None:
        from towpath.api.clusters import GpuCluster

        machine = load(name)
        if not isinstance(machine, GpuCluster):
            raise ConfigError(f"is a {machine.kind}; a job needs a cluster of GPUs", file=name)
        self._name = name.partition(":")[0] if not Path(name).exists() else name
        self._own = machine.spec.gpus_per_host
        self._ranks, self._scale = ranks, scale
        self._library = machine.own_library
        self._known: dict[object, float | str] = {}
        self._machines: dict[tuple[int, int], GpuCluster] = {}
        self.extrapolated = 0
        count = ranks * scale
        hosts = math.ceil(count / self._own)
        plural = "" if hosts == 1 else "s"
        self.where = f"{machine.name}, {count} GPUs on {hosts} host{plural}"

    def of_call(self, call: Call) -> float | str:
        """The time of a call in microseconds, or the reason if the machine does not run it."""
        return self.time_us(_key(call))

    def time_us(self, key: _Key) -> float | str:
        """The time of equal calls in microseconds, or the reason if there is none."""
        if key not in self._known:
            self._known[key] = self._predicted(key)
        return self._known[key]

    def _predicted(self, key: _Key) -> float | str:
        collective, size, ranks, members = key
        count = ranks or self._ranks
        hosts, per_host = self._placed(count, members)
        if hosts > 1:
            hosts *= self._scale
        if hosts * per_host < 2:
            return 0.0
        if collective == "barrier":
            collective, size = "all_reduce", _BYTES_LEAST
        own = (collective, max(size, 1), hosts, per_host)
        if own not in self._known:
            self._known[own] = self._simulated(*own)
        return self._known[own]

    def _placed(self, ranks: int, members: tuple[int, ...]) -> tuple[int, int]:
        """Hosts of a group, and its ranks on each. Ranks fill the hosts in order."""
        if members:
            hosts = len({rank // self._own for rank in members})
            if len(members) % hosts == 0 and len(members) // hosts <= self._own:
                return hosts, len(members) // hosts
        if ranks <= self._own:
            return 1, ranks
        hosts = math.ceil(ranks / self._own)
        return hosts, math.ceil(ranks / hosts)

    def _simulated(self, collective: str, size: int, hosts: int, per_host: int) -> float | str:
        most_hosts = min(hosts, _HOSTS_SIMULATED.get(collective, HOSTS_OF_RINGS))
        try:
            if hosts == most_hosts:
                run = self._machine(hosts, per_host).run(
                    collective, size_bytes=size, library=self._library, data=False
                )
                return run.rows[0].time_us
            return self._extrapolated(collective, size, hosts, most_hosts, per_host)
        except ConfigError as error:
            return f"{collective}: {error.problem}"

    def _extrapolated(
        self, collective: str, size: int, hosts: int, most_hosts: int, per_host: int
    ) -> float:
        """The time on many hosts from two simulations on fewer hosts with the same choice."""
        machine = self._machine(hosts, per_host)
        imitation = machine.imitate(self._library)
        if collective == "all_to_all" and self._library == "nccl":
            sends = send_choice(
                machine.spec, machine.ranks, imitation.channels, size // machine.ranks
            )
            self.extrapolated += 1
            return extrapolated_us(
                machine, size, lambda fewer: exchange_source(sends, fewer.ranks, fewer.hosts),
                most_hosts,
            )  # fmt: skip
        choice = imitation.launch(collective, size)
        if not imitation.has_schedule(collective, choice):
            return choice.predicted_us
        self.extrapolated += 1
        source_on = sources_of(self._library, collective, size, choice)
        return extrapolated_us(machine, size, source_on, most_hosts)

    def _machine(self, hosts: int, per_host: int) -> GpuCluster:
        place = (hosts, per_host)
        if place not in self._machines:
            from towpath.api.clusters import GpuCluster

            used = None if per_host == self._own else per_host
            machine = load(self._name, hosts=hosts, ranks_per_host=used)
            assert isinstance(machine, GpuCluster)
            self._machines[place] = machine
        return self._machines[place]


def scaled(job: Job, ranks: int) -> Job:
    """The job with another number of ranks in its groups that span all ranks.

    Args:
        job: the calls of one rank.
        ranks: the new number of ranks.
    """

    def of_ranks(call: Call) -> Call:
        if call.ranks not in (0, job.ranks):
            return call
        size_bytes = call.size_bytes * (ranks if call.is_part else 1)
        return replace(call, ranks=ranks, members=(), size_bytes=size_bytes, is_part=False)

    return replace(job, ranks=ranks, calls=tuple(map(of_ranks, job.calls)))
