# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The time that a program's communication would take on a described machine."""

from __future__ import annotations

import itertools
import multiprocessing.util
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from towpath.api.machine import load
from towpath.errors import ConfigError
from towpath.torch.backend import create
from towpath.torch.build import load_extension
from towpath.torch.report import MESSAGES, Account, CommunicationReport

if TYPE_CHECKING:
    from towpath.api.cluster import Cluster

SIMULATED_BACKEND = "towpath-sim"

_ELEMENT_BYTES = 4  # of float32, with which times are simulated
_CHUNK_BYTES = 512  # what every schedule can cut
# What the backend calls a collective, where the library has another name for it.
_COLLECTIVES = {
    **dict.fromkeys(MESSAGES, "send_recv"),
    "all_reduce_sparse": "all_gather",
    "all_to_all with splits": "all_to_all",
}
_WITHOUT_TIME = ("monitored_barrier",)


class Simulation:
    """A machine on which the communication of this program is timed; created by `simulate`."""

    def __init__(self, machine: str, hosts: int | None, ranks_per_host: int | None) -> None:
        """Describes the machine; users call `simulate`."""
        self._machine: Cluster = _open(machine, hosts=hosts, ranks_per_host=ranks_per_host)
        self._name = machine.rpartition(":")[0] or machine  # its parts have other sizes
        self._parts: dict[tuple[int, int], Cluster] = {}
        self._times_us: dict[tuple[str, int, tuple[int, int]], float] = {}
        self.timeline = load_extension().Timeline()

    @property
    def ranks(self) -> int:
        """Number of ranks that fit on the machine."""
        return self._machine.ranks

    def compute(self, seconds: float) -> None:
        """Declares that this rank now computes for a time, in seconds of the described machine."""
        if not seconds >= 0:
            raise ConfigError(f"seconds is {seconds}; it must be 0 or more", field="seconds")
        self.timeline.compute(seconds)

    @contextmanager
    def computing(self, seconds: float) -> Iterator[None]:
        """Spreads the calls inside over a computation of this rank, in seconds.

        The calls inside are spread evenly over the time, like the buckets of gradients of a
        backward pass. If the program waits for a future, as DistributedDataParallel does, it waits
        at the end of the block.
        """
        if not seconds >= 0:
            raise ConfigError(f"seconds is {seconds}; it must be 0 or more", field="seconds")
        self.timeline.open(seconds)
        try:
            yield
        finally:
            self.timeline.close()

    def clear(self) -> None:
        """Discards all calls so far, so that only later calls are timed."""
        self.timeline.clear()

    def time_us(self, name: str, size_bytes: int, ranks: Iterable[int]) -> float:
        """The time of one call on the machine.

        Args:
            name: name of the collective.
            size_bytes: the whole array.
            ranks: the ranks of the call, as ranks of the machine.

        Returns:
            Microseconds, with the fastest algorithm of the library for the size.

        Raises:
            ConfigError: the machine has fewer ranks, or cannot run the collective.
        """
        members = tuple(ranks)
        if len(members) == 1 or size_bytes == 0 or name in _WITHOUT_TIME:
            return 0.0
        shape = self._shape_of(members)
        key = (_COLLECTIVES.get(name, name), size_bytes, shape)
        if key not in self._times_us:
            self._times_us[key] = self._simulated_us(*key)
        return self._times_us[key]

    def report(self) -> CommunicationReport:
        """The calls of this rank so far, with their cost on the machine."""
        account = Account()
        for event, share_s in _with_shares(self.timeline.events()):
            account.compute(share_s)
            if event.kind == "begin":
                key, time_us = self._begun(event)
                account.begin(event, key, time_us)
            elif event.kind == "wait":
                account.wait(event.work)
            elif event.kind == "future":
                account.futures.append(event.work)
            elif event.kind in ("compute", "close"):
                account.wait_for_futures()
                if event.kind == "compute":
                    account.compute(event.seconds)
        return account.report(self._machine.name)

    def _begun(self, event: Any) -> tuple[tuple[str, int], float]:
        ranks = list(event.ranks)
        if event.name in MESSAGES:
            own = self._own_rank(ranks)
            # From any rank: the way from the first other one.
            any_other = next((rank for rank in ranks if rank != own), own)
            peer = ranks[event.peer] if event.peer >= 0 else any_other
            pair = sorted({own, peer})
            return (event.name, 2), self.time_us(event.name, event.size_bytes, pair)
        return (event.name, len(ranks)), self.time_us(event.name, event.size_bytes, ranks)

    def release(self) -> None:
        """Releases the machine; later calls are not timed."""
        self._parts.clear()
        del self._machine

    def _own_rank(self, ranks: list[int]) -> int:
        own = dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", "0"))
        return own if own in ranks else ranks[0]

    def _shape_of(self, members: tuple[int, ...]) -> tuple[int, int]:
        """Number of hosts of a group, and of its ranks on the fullest host."""
        outside = [rank for rank in members if rank >= self.ranks]
        if outside:
            raise ConfigError(
                f"the group has rank {outside[0]}, but {self._machine.name} has "
                f"{self.ranks} ranks; name a larger machine"
            )
        per_host = self._machine.ranks_per_host or self.ranks
        on_hosts = Counter(rank // per_host for rank in members)
        return len(on_hosts), max(on_hosts.values())

    def _simulated_us(self, collective: str, size_bytes: int, shape: tuple[int, int]) -> float:
        part = self._part(shape)
        for unit in (_ELEMENT_BYTES, _CHUNK_BYTES):
            whole = unit * part.ranks
            rounded = -(-size_bytes // whole) * whole
            try:
                return part.run(collective, size_bytes=rounded, data=False).rows[0].time_us
            except ConfigError:
                if unit == _CHUNK_BYTES:
                    raise
        raise AssertionError("every size ends in the loop")

    def _part(self, shape: tuple[int, int]) -> Cluster:
        if shape not in self._parts:
            hosts, ranks_per_host = shape
            if self._machine.ranks == hosts * ranks_per_host:
                self._parts[shape] = self._machine
            elif self._machine.ranks_per_host:
                self._parts[shape] = _open(self._name, hosts=hosts, ranks_per_host=ranks_per_host)
            else:
                self._parts[shape] = _open(self._name, ranks=hosts * ranks_per_host)
        return self._parts[shape]


def _with_shares(events: list[Any]) -> Iterator[tuple[Any, float]]:
    """Each event, with the seconds that this rank computes before it, in a `computing` block."""
    share_s = 0.0
    for index, event in enumerate(events):
        if event.kind == "open":
            inside = itertools.takewhile(lambda each: each.kind != "close", events[index:])
            share_s = event.seconds / (1 + sum(each.kind == "begin" for each in inside))
            continue
        yield event, share_s if event.kind in ("begin", "close") else 0.0
        if event.kind == "close":
            share_s = 0.0


def _open(name: str, **options: int | None) -> Cluster:
    from towpath.api.cluster import Cluster

    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    machine = load(name, **given)
    if not isinstance(machine, Cluster):
        raise ConfigError(f"'{name}' is a {machine.kind}; collectives need a cluster")
    return machine


def simulate(
    machine: str,
    *,
    hosts: int | None = None,
    ranks_per_host: int | None = None,
    prints: bool = True,
) -> Simulation:
    """Creates the backend `towpath-sim`: correct data, and the time of a described machine.

    Data moves between the processes as with the backend `towpath`. All calls are recorded. They are
    timed on the machine when a report is requested, or at the end of the program by rank 0. Rank r
    is the machine's rank r. Collectives of a rank follow each other; a wait ends when its call
    does.

    Args:
        machine: a name that `towpath machines` lists, or a file; "dgx-h100:2" has 2 hosts.
        hosts: number of hosts.
        ranks_per_host: number of GPUs to use in each host.
        prints: True to let rank 0 print the report at the end of the program.

    Returns:
        The simulation, which accepts declarations of computation and returns reports.

    Raises:
        ConfigError: there is no such machine, or it does not run collectives.
    """
    simulation = Simulation(machine, hosts, ranks_per_host)
    is_first: list[bool] = []

    def make(options: Any, _: Any) -> Any:
        if not is_first:
            is_first.append(options.group_rank == 0)
        return create(SIMULATED_BACKEND, options, simulation.timeline)

    def at_exit() -> None:
        if prints and is_first == [True]:
            _print_apart(simulation)
        simulation.release()  # torch keeps the backend, and so the simulation

    dist.Backend.register_backend(SIMULATED_BACKEND, make, extended_api=True, devices=["cpu"])
    # Unlike atexit's, also called in a process that multiprocessing has forked.
    multiprocessing.util.Finalize(None, at_exit, exitpriority=0)
    return simulation


def _print_apart(simulation: Simulation) -> None:
    """Prints the report in a separate process, and waits for it.

    Each size is simulated now for the first time, which takes seconds. Servers such as vLLM stop a
    rank that does not end soon. The separate process still prints the report.
    """
    sys.stderr.flush()
    printer = os.fork()
    if printer == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            print(simulation.report(), file=sys.stderr, flush=True)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.waitpid(printer, 0)
