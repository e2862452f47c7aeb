# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The cost of communication: an account of all calls, and its table."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

MESSAGES = ("send", "recv", "recvAnySource")

Key = tuple[str, int]
"""The name of a collective, and how many ranks took part."""


@dataclass(frozen=True)
class CollectiveCost:
    """Cost of the calls of one kind.

    Attributes:
        name: "all_reduce", "send".
        ranks: number of ranks.
        calls: number of calls.
        size_bytes: size of the whole array, summed over all calls.
        time_us: time of all calls together, in microseconds of the machine.
        exposed_us: part of it for which the program waited.
    """

    name: str
    ranks: int
    calls: int
    size_bytes: int
    time_us: float
    exposed_us: float


@dataclass(frozen=True)
class CommunicationReport:
    """Cost of a program's communication on a described machine, for one rank.

    Attributes:
        machine: name of the machine.
        rows: a row per collective and number of ranks, the most expensive first.
        compute_us: computation time declared by the program, in microseconds.
        time_us: time of the whole program: computation, and exposed communication.
    """

    machine: str
    rows: tuple[CollectiveCost, ...]
    compute_us: float
    time_us: float

    @property
    def communication_us(self) -> float:
        """Time of all calls together, in microseconds."""
        return sum(row.time_us for row in self.rows)

    @property
    def exposed_us(self) -> float:
        """Time of communication for which the program waited, in microseconds."""
        return sum(row.exposed_us for row in self.rows)

    def __str__(self) -> str:
        if all(row.ranks < 2 for row in self.rows):
            return (
                f"communication on {self.machine}, simulated: no collective among two or more "
                "ranks was called"
            )
        header = ("collective", "ranks", "calls", "bytes", "time us", "exposed us")
        lines = [
            (row.name, str(row.ranks), str(row.calls), f"{row.size_bytes:,}",
             f"{row.time_us:,.1f}", f"{row.exposed_us:,.1f}")
            for row in self.rows
        ]  # fmt: skip
        widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
        table = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
            for line in (header, *lines)
        ]
        return "\n".join([
            f"communication on {self.machine}, simulated", *table,
            f"computation {self.compute_us:,.1f} us, communication {self.communication_us:,.1f} us,"
            f" exposed {self.exposed_us:,.1f} us, altogether {self.time_us:,.1f} us",
        ])  # fmt: skip


class Account:
    """Time of one rank, and the costs of its calls so far."""

    def __init__(self) -> None:
        self.now_us = 0.0
        self.compute_us = 0.0
        # Works whose future was taken and that were not waited for.
        self.futures: list[int] = []
        self._busy_until_us: defaultdict[str, float] = defaultdict(float)
        self._ends: dict[int, tuple[Key, float]] = {}
        self._calls: defaultdict[Key, int] = defaultdict(int)
        self._sizes: defaultdict[Key, int] = defaultdict(int)
        self._times_us: defaultdict[Key, float] = defaultdict(float)
        self._exposed_us: defaultdict[Key, float] = defaultdict(float)

    def compute(self, seconds: float) -> None:
        """Adds computation time to this rank."""
        self.now_us += seconds * 1e6
        self.compute_us += seconds * 1e6

    def begin(self, event: Any, key: Key, time_us: float) -> None:
        """Starts a call, after the previous one in the same sequence; messages have two
        sequences.
        """
        self._calls[key] += 1
        self._sizes[key] += event.size_bytes
        self._times_us[key] += time_us
        line = event.name if event.name in MESSAGES else "collective"
        end_us = max(self.now_us, self._busy_until_us[line]) + time_us
        self._busy_until_us[line] = end_us
        self._ends[event.work] = (key, end_us)

    def wait(self, work: int) -> None:
        """Waits for a call; a second wait takes no time."""
        if work not in self._ends:
            return
        key, end_us = self._ends.pop(work)
        self._exposed_us[key] += max(0.0, end_us - self.now_us)
        self.now_us = max(self.now_us, end_us)

    def wait_for_futures(self) -> None:
        """Waits for every call whose future was taken."""
        for work in self.futures:
            self.wait(work)
        self.futures.clear()

    def report(self, machine: str) -> CommunicationReport:
        """The cost of all calls; calls without a wait are not exposed."""
        rows = [
            CollectiveCost(
                *key, self._calls[key], self._sizes[key], self._times_us[key], self._exposed_us[key]
            )
            for key in sorted(self._calls, key=lambda key: (-self._times_us[key], key))
        ]
        return CommunicationReport(machine, tuple(rows), self.compute_us, self.now_us)
