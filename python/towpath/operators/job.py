# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The time of a job from its calls: communication, its exposed part, and the step."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from towpath.operators.job_trace import Call, Job

# The largest difference between extrapolated and simulated times of dgx-h100: all-reduce of 1 GiB
# on 128 hosts, 6.6 % (test_job_scale.py).
EXTRAPOLATION_ERROR_PCT = 6.6

# The time of a collective in microseconds, or the reason for which it is not predicted.
Times = Callable[[Call], float | str]


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
        missing: number of calls that the machine does not predict, by reason. They keep their
            traced times.
        extrapolated: number of groups of equal calls whose times follow from smaller numbers of
            hosts.
    """

    where: str
    groups: list[Group]
    communication_us: float
    exposed_us: float | None
    step_us: float | None
    missing: dict[str, int] = field(default_factory=dict)
    extrapolated: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON."""
        return vars(self) | {"groups": [each.to_dict() for each in self.groups]}


def job_time(job: Job, where: str, time_us: Times) -> JobTime:
    """The times of a job whose collectives take given times.

    Computation keeps its traced times. In a trace with dependencies, each call starts when all
    calls that it needs have finished and its stream is free: computations share one stream,
    collectives another, and the work of the processor a third. In a trace with times only, a
    collective hides behind the same computation as in the trace, and its remaining time is exposed.

    Args:
        job: the calls.
        where: the machine.
        time_us: time of a collective in microseconds, or the reason if it is not predicted.
    """
    has_needs = any(call.needs for call in job.calls)
    durations, missing = _durations(job.calls, time_us)
    if not any(call.duration_us for call in job.calls if call.is_computation):
        exposed: list[float] | None = None
        step = None
    elif has_needs:
        exposed, step = _scheduled(job.calls, durations)
    else:
        exposed, step = _shifted(job.calls, durations)
    return _summed(job.calls, durations, exposed, step, (where, missing))


def _durations(calls: Sequence[Call], time_us: Times) -> tuple[list[float], dict[str, int]]:
    found: list[float] = []
    missing: Counter[str] = Counter()
    for call in calls:
        new = time_us(call) if call.collective else call.duration_us or 0.0
        if isinstance(new, str):
            missing[new] += 1
            new = call.duration_us or 0.0
        found.append(new)
    return found, dict(missing)


def _summed(
    calls: Sequence[Call], durations: list[float], exposed: list[float] | None,
    step: float | None, named: tuple[str, dict[str, int]],
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
    busy = _Busy([
        (call.start_us, call.start_us + (call.duration_us or 0.0))
        for call in calls if call.is_computation
    ])  # fmt: skip
    exposed, change = [], 0.0
    for call, new in zip(calls, durations, strict=True):
        if not call.collective:
            exposed.append(0.0)
            continue
        old = call.duration_us or 0.0
        hidden = busy.between(call.start_us, call.start_us + old)
        exposed.append(max(new - hidden, 0.0))
        change += exposed[-1] - (old - hidden)
    first = min(call.start_us for call in calls)
    last = max(call.start_us + (call.duration_us or 0.0) for call in calls)
    return exposed, last - first + change


class _Busy:
    """The times at which a rank computes."""

    def __init__(self, spans: list[tuple[float, float]]) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []
        for start, end in sorted(spans):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append(start)
                self._ends.append(end)
        lengths = (end - start for start, end in zip(self._starts, self._ends, strict=True))
        self._before = [0.0, *accumulate(lengths)]

    def between(self, start: float, end: float) -> float:
        """The busy time between two times."""
        return max(self._until(end) - self._until(start), 0.0)

    def _until(self, time: float) -> float:
        place = bisect_right(self._starts, time)
        if place == 0:
            return 0.0
        return self._before[place] - max(self._ends[place - 1] - time, 0.0)


def _scheduled(calls: Sequence[Call], durations: list[float]) -> tuple[list[float], float]:
    """Exposed times and the time of the step, from the dependencies.

    Calls of one stream start in the order of the job. A call without a duration takes no stream.
    """
    ends: list[float] = []
    spans: list[tuple[float, float]] = []
    free: dict[str, float] = defaultdict(float)
    for call, duration in zip(calls, durations, strict=True):
        start = max((ends[need] for need in call.needs or ()), default=0.0)
        if duration > 0:
            stream = "communication" if call.collective else call.stream
            start = max(start, free[stream])
            free[stream] = start + duration
        ends.append(start + duration)
        spans.append((start, start + duration))
    busy = _Busy([span for span, call in zip(spans, calls, strict=True) if call.is_computation])
    exposed = [
        end - start - busy.between(start, end) if call.collective else 0.0
        for (start, end), call in zip(spans, calls, strict=True)
    ]
    return exposed, max(ends, default=0.0)
