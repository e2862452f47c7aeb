# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Live measurement of schedules: one process per rank on this host, joined by a live transport."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.collectives.live_processes import LiveError, RankProcesses
from towpath.collectives.result import Measurement, Percentiles, RunRow, measure
from towpath.collectives.simulated import Call
from towpath.errors import ConfigError
from towpath.names import unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from towpath.schedules.schedule_source import ScheduleSource

__all__ = [
    "LiveCall",
    "LiveError",
    "LiveOptions",
    "check_ranks",
    "check_transport",
    "cores_of",
    "measure_calls",
    "notes",
]

# What runs without a schedule.
DIRECT_COLLECTIVES = (
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
)  # fmt: skip
# Ranks per processor that still make progress, and what every host may have, to try things.
_RANKS_PER_PROCESSOR_MAX = 2
_RANKS_ANYWHERE = 64


def check_ranks(ranks: int) -> None:
    """Checks that this host can run this number of ranks.

    Raises:
        ConfigError: there are too many ranks, or none.
    """
    processors = len(os.sched_getaffinity(0))
    most = max(_RANKS_ANYWHERE, _RANKS_PER_PROCESSOR_MAX * processors)
    if not 1 <= ranks <= most:
        raise ConfigError(
            f"{ranks} live ranks are requested; it must be 1 to {most} on the {processors} "
            "processors of this host"
        )


def check_transport(name: str) -> None:
    """Checks the name of a live transport.

    Raises:
        ConfigError: there is no transport of that name.
    """
    known = _core.live_transports()
    if name not in known:
        raise unknown("there is no live transport", name, known)


def cores_of(ranks: int, pin: bool = True) -> list[int | None]:
    """The core of each rank: a separate one if there are enough cores; None: any core."""
    cores = sorted(os.sched_getaffinity(0))
    if not pin or ranks > len(cores):
        return [None] * ranks
    return [cores[rank] for rank in range(ranks)]


def notes(ranks: int, pin: bool = True) -> list[str]:
    """Notes about this host for the reader of a live measurement."""
    cores = len(os.sched_getaffinity(0))
    if ranks > cores:
        return [
            f"{ranks} ranks share {cores} {'core' if cores == 1 else 'cores'}: times contain the "
            "scheduler's, and ranks are not pinned"
        ]
    return ["each rank is pinned to a core of its own" if pin else "ranks are not pinned"]


@dataclass(frozen=True)
class LiveOptions:
    """Number of measurements, and time limits.

    Attributes:
        iterations: number of timed calls per size.
        warmup: number of calls before the timed ones.
        timeout_s: longest time that a rank waits without any progress, in seconds.
        pin: True to give each rank its own core, if there are enough cores.
        beat_s: interval in seconds at which a rank reports its progress to the launcher.
        silence_s: longest time that the launcher waits for a sign of progress from any rank, in
            seconds; None: longer than all deadlines of the ranks themselves.
        transport: the transport between ranks: "shm", or "ucx" if it is built.
    """

    iterations: int = 20
    warmup: int = 5
    timeout_s: float = 30.0
    pin: bool = True
    beat_s: float = 1.0
    silence_s: float | None = None
    transport: str = "shm"


@dataclass(frozen=True)
class LiveCall:
    """One collective, measured at some sizes (bytes of the whole array).

    It runs by its schedule, or direct. In a direct call the schedule only defines the result, and
    each rank reads the memory of the other ranks.
    """

    source: ScheduleSource
    sizes_bytes: tuple[int, ...]
    type_name: str = "float32"
    operation: str = "sum"
    is_direct: bool = False

    def call(self) -> Call:
        """The call with its schedule built, or read.

        Raises:
            ConfigError: the schedule's file or an option is wrong.
        """
        return Call(self.source.schedule(), self.type_name, self.operation)


def measuring_ranks(calls_of_rank: list[Sequence[LiveCall]], options: LiveOptions) -> RankProcesses:
    """Starts a process per entry. All entries are equal, except in tests of disagreement.

    Raises:
        ConfigError: there is no such transport.
    """
    check_transport(options.transport)
    ranks = len(calls_of_rank)
    rendezvous = f"{os.getpid()}-{secrets.token_hex(6)}"
    cores = cores_of(ranks, options.pin)
    return RankProcesses([
        {
            "kind": "measure", "rendezvous": rendezvous, "rank": rank, "ranks": ranks,
            "calls": calls, "options": options, "core": cores[rank],
        }
        for rank, calls in enumerate(calls_of_rank)
    ])  # fmt: skip


def measure_calls(
    calls: list[LiveCall], ranks: int, options: LiveOptions
) -> Iterator[tuple[LiveCall, RunRow]]:
    """Returns one row per call and size, in order; its time is the mean of the ranks' medians.

    Raises:
        LiveError: a rank failed, or waited past its deadline, or the ranks disagreed.
    """
    expected = [call for call in calls for _ in call.sizes_bytes]
    collected: list[list[dict[str, Any]]] = [[] for _ in expected]
    silence_s = options.silence_s or 4 * options.timeout_s + 60
    with measuring_ranks([calls] * ranks, options) as processes:
        for _, message in processes.reports(silence_s):
            if "index" not in message:
                continue
            reports = collected[message["index"]]
            reports.append(message)
            if len(reports) == ranks:
                call = expected[message["index"]]
                yield call, _row(call, reports, ranks)


def _row(call: LiveCall, messages: list[dict[str, Any]], ranks: int) -> RunRow:
    collective = messages[0]["collective"]

    def column(name: str) -> Measurement | None:
        parts = [message[name] for message in messages]
        if parts[0] is None:
            return None
        by_percentile = list(zip(*(part["percentiles_us"] for part in parts), strict=True))
        least, low, median, high, p99, most = by_percentile
        percentiles = Percentiles(
            min_us=min(least), p25_us=sum(low) / ranks, p75_us=sum(high) / ranks,
            p99_us=max(p99), max_us=max(most),
        )  # fmt: skip
        wrong = sum(part["wrong"] for part in parts)
        size_bytes = messages[0]["size_bytes"]
        return measure(
            sum(median) / ranks, size_bytes, collective, ranks, wrong, percentiles=percentiles
        )

    if call.is_direct:
        ran: dict[str, Any] = dict(
            algorithm="direct", schedule="direct", protocol="none", channels=1
        )
    else:
        ran = {name: messages[0][name] for name in ("schedule", "protocol", "channels")}
        own = call.source.file is None
        ran["algorithm"] = call.source.algorithm_name() if own else ran["schedule"]
    return RunRow(
        size_bytes=messages[0]["size_bytes"], count=messages[0]["count"],
        out_of_place=column("out_of_place"), in_place=column("in_place"), is_simulated=False, **ran,
    )  # fmt: skip
