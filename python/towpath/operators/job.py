# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The time of a job from its calls: communication, its exposed part, and the step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from towpath.operators.job_trace import Call, Job

Times = Callable[[Call], float | None]


@dataclass(frozen=True)
class Group:
    """The equal collectives of a job.

    Attributes:
        collective: its name.
        size_bytes: size of the whole array in bytes.
        ranks: number of ranks.
        count: number of calls.
        total_us: sum of their times in microseconds.
        exposed_us: the part during which the rank computes nothing. None without computation.
    """

    collective: str
    size_bytes: int
    ranks: int
    count: int
    total_us: float
    exposed_us: float | None

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        return vars(self)


@dataclass(frozen=True)
class JobTime:
    """The times of a job on one machine, or as traced.

    Attributes:
        where: the machine, or "traced".
        groups: equal collectives, the longest first.
        communication_us: sum over all collectives.
        exposed_us: the part during which the rank computes nothing. None without computation.
        step_us: time of the whole trace. None without computation.
        missing: collectives that the machine does not predict.
    """

    where: str
    groups: list[Group]
    communication_us: float
    exposed_us: float | None
    step_us: float | None
    missing: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        return vars(self) | {"groups": [each.to_dict() for each in self.groups]}


def job_time(job: Job, where: str, time_us: Times) -> JobTime:
    """The times of a job whose collectives take given times.

    Computation keeps its traced times. In a trace with dependencies, each call starts when all
    calls that it needs have finished and its stream is free: computations share one stream, and
    collectives another. In a trace with times only, a collective hides behind the same computation
    as in the trace, and its remaining time is exposed.

    Args:
        job: the calls.
        where: the machine.
        time_us: time of a collective in microseconds, or None if it is not predicted.
    """
    has_needs = any(call.needs for call in job.calls)
    durations, missing = _durations(job.calls, time_us)
    if not any(not call.collective for call in job.calls):
        exposed: list[float] | None = None
        step = None
    elif has_needs:
        exposed, step = _scheduled(job.calls, durations)
    else:
        exposed, step = _shifted(job.calls, durations)
    return _summed(job.calls, durations, exposed, step, (where, missing))


def _durations(calls: Sequence[Call], time_us: Times) -> tuple[list[float], int]:
    found, missing = [], 0
    for call in calls:
        new = time_us(call) if call.collective else call.duration_us
        if new is None:
            missing += 1
        found.append(new if new is not None else call.duration_us or 0.0)
    return found, missing


def _summed(
    calls: Sequence[Call], durations: list[float], exposed: list[float] | None,
    step: float | None, named: tuple[str, int],
) -> JobTime:  # fmt: skip
    groups: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for number, call in enumerate(calls):
        if call.collective:
            groups[call.collective, call.size_bytes, call.ranks].append(number)
    rows = [
        Group(
            *key, len(numbers), sum(durations[n] for n in numbers),
            None if exposed is None else sum(exposed[n] for n in numbers),
        )
        for key, numbers in groups.items()
    ]  # fmt: skip
    rows.sort(key=lambda row: -row.total_us)
    total = None if exposed is None else sum(row.exposed_us or 0.0 for row in rows)
    return JobTime(named[0], rows, sum(row.total_us for row in rows), total, step, named[1])


def _shifted(calls: Sequence[Call], durations: list[float]) -> tuple[list[float], float]:
    """Exposed times behind the traced computation, and the time of the step."""
    busy = _merged([
        (call.start_us, call.start_us + (call.duration_us or 0.0))
        for call in calls if not call.collective
    ])  # fmt: skip
    exposed, change = [], 0.0
    for call, new in zip(calls, durations, strict=True):
        if not call.collective:
            exposed.append(0.0)
            continue
        old = call.duration_us or 0.0
        hidden = _overlap(busy, call.start_us, call.start_us + old)
        exposed.append(max(new - hidden, 0.0))
        change += exposed[-1] - (old - hidden)
    first = min(call.start_us for call in calls)
    last = max(call.start_us + (call.duration_us or 0.0) for call in calls)
    return exposed, last - first + change


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _overlap(spans: list[tuple[float, float]], start: float, end: float) -> float:
    from bisect import bisect_left

    total = 0.0
    place = max(bisect_left(spans, (start, start)) - 1, 0)
    while place < len(spans) and spans[place][0] < end:
        total += max(min(end, spans[place][1]) - max(start, spans[place][0]), 0.0)
        place += 1
    return total


def _scheduled(calls: Sequence[Call], durations: list[float]) -> tuple[list[float], float]:
    """Exposed times and the time of the step, from the dependencies.

    Calls of one stream start in the order of the trace.
    """
    ends = [0.0] * len(calls)
    spans = []
    free = {True: 0.0, False: 0.0}
    for number, call in enumerate(calls):
        ready = max((ends[need] for need in call.needs or () if need < number), default=0.0)
        start = max(ready, free[bool(call.collective)])
        ends[number] = start + durations[number]
        free[bool(call.collective)] = ends[number]
        spans.append((start, ends[number]))
    busy = _merged([span for span, call in zip(spans, calls, strict=True) if not call.collective])
    exposed = [
        end - start - _overlap(busy, start, end) if call.collective else 0.0
        for (start, end), call in zip(spans, calls, strict=True)
    ]
    return exposed, max(ends, default=0.0)
