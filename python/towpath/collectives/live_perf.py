# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Live collectives, timed as OSU's benchmarks and nccl-tests time theirs: `measure_live`."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from towpath.collectives.live import DIRECT_COLLECTIVES, cores_of
from towpath.collectives.live_launch import launch
from towpath.collectives.result import bus_factor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from towpath.collectives.live_communicator import Communicator

COLLECTIVES = (*DIRECT_COLLECTIVES, "barrier")
_BATCHES = 9
_BATCH_S = 0.02
_CALLS_MAX = 2000
# A line that goes to and fro so often tells how far the two processors are from each other.
_PLACEMENT_CALLS = 2000


@dataclass(frozen=True)
class PerfRow:
    """One size of one collective.

    Attributes:
        collective: its name.
        size_bytes: of the whole array, as nccl-tests count it.
        median_us: of all calls of all ranks, microseconds; and their 99th percentile.
        spread: how far the medians of the batches are apart, relative to the median.
        bus_gb_per_s: bytes per second that a link of a ring would carry, in GB/s.
        signal_ns: what a barrier of two lines took just before and just after, in ns: tells
            whether the processors of the ranks were near to each other, or far, and stayed so.
    """

    collective: str
    size_bytes: int
    median_us: float
    p99_us: float
    spread: float
    bus_gb_per_s: float
    signal_ns: tuple[float, float]


def measure_live(
    collective: str,
    sizes_bytes: Sequence[int],
    ranks: int,
    *,
    symmetric: bool = False,
    pin: bool = True,
    timeout_s: float = 30.0,
) -> list[PerfRow]:
    """Times a collective between processes of this host, one row per size.

    Args:
        collective: one of COLLECTIVES.
        sizes_bytes: of the whole array.
        ranks: how many processes.
        symmetric: whether arrays are on the symmetric heap, where nothing is copied first.
        pin: whether each rank gets a core of its own, where there are enough.
        timeout_s: how long a rank waits for another one, in seconds.

    Raises:
        ConfigError: this host cannot run that many.
        RankError: a rank failed.
    """
    asked = (collective, tuple(sizes_bytes), symmetric, tuple(cores_of(ranks, pin)))
    by_rank = launch(_measure, ranks, timeout_s=timeout_s, arguments=asked)
    return [
        _row(collective, size_bytes, ranks, [rows[index] for rows in by_rank])
        for index, size_bytes in enumerate(sizes_bytes)
    ]


def _row(
    collective: str, size_bytes: int, ranks: int, parts: list[tuple[list[list[float]], list[float]]]
) -> PerfRow:
    batches = [statistics.median(batch) for part, _ in parts for batch in part]
    calls = np.concatenate([np.asarray(batch) for part, _ in parts for batch in part])
    median_us = float(np.median(calls))
    before, after = (max(signal[i] for _, signal in parts) for i in (0, 1))
    factor = 0.0 if collective == "barrier" else bus_factor(collective, ranks)
    return PerfRow(
        collective=collective, size_bytes=size_bytes, median_us=median_us,
        p99_us=float(np.percentile(calls, 99)),
        spread=(max(batches) - min(batches)) / median_us,
        bus_gb_per_s=size_bytes * factor / median_us / 1e3,
        signal_ns=(before, after),
    )  # fmt: skip


def _measure(
    communicator: Communicator,
    collective: str,
    sizes_bytes: tuple[int, ...],
    symmetric: bool,
    cores: tuple[int | None, ...],
) -> list[tuple[list[list[float]], list[float]]]:
    """One rank's part: the times of each batch of each size, and of a signal before and after."""
    core = cores[communicator.rank]
    if core is not None:
        os.sched_setaffinity(0, {core})
    rows = []
    for size_bytes in sizes_bytes:
        source, target = _arrays(communicator, collective, size_bytes, symmetric)
        before = _signal_ns(communicator)
        _times(communicator, collective, source, target, times=3)
        begin = time.perf_counter()
        _times(communicator, collective, source, target, times=5)
        once_s = (time.perf_counter() - begin) / 5
        count = np.array([max(5.0, min(_CALLS_MAX, _BATCH_S / once_s))])
        communicator.all_reduce(count, "min")
        batches = []
        for _ in range(_BATCHES):
            communicator.barrier()
            batches.append(_times(communicator, collective, source, target, times=int(count[0])))
        rows.append((batches, [before, _signal_ns(communicator)]))
    return rows


def _times(
    communicator: Communicator, collective: str, source: np.ndarray, target: np.ndarray, times: int
) -> list[float]:
    """The times of calls one after the other, in microseconds."""
    return communicator._collectives().measure(
        collective, "float32", "sum", 0, source.view(np.uint8), target.view(np.uint8), times,
        communicator.timeout_s,
    )  # fmt: skip


def _signal_ns(communicator: Communicator) -> float:
    nothing = np.zeros(1, np.float32)
    return (
        statistics.median(_times(communicator, "barrier", nothing, nothing, times=_PLACEMENT_CALLS))
        * 1e3
    )


def _arrays(
    communicator: Communicator, collective: str, size_bytes: int, symmetric: bool
) -> tuple[np.ndarray, np.ndarray]:
    ranks = communicator.ranks
    count = max(size_bytes // 4, 1)
    if collective in ("all_gather", "reduce_scatter", "all_to_all"):
        count = max(count // ranks, 1) * ranks
    whole = lambda: _zeros(communicator, count, symmetric)  # noqa: E731
    part = lambda: _zeros(communicator, count // ranks, symmetric)  # noqa: E731
    if collective == "all_gather":
        return part(), whole()
    if collective == "reduce_scatter":
        return whole(), part()
    if collective == "all_to_all":
        return whole(), whole()
    array = whole()
    return array, array


def _zeros(communicator: Communicator, count: int, symmetric: bool) -> np.ndarray:
    if not symmetric:
        return np.zeros(count, np.float32)
    array = communicator.allocate(count, np.float32)
    array[:] = 0
    return array
