# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a schedule on a described machine: simulated time, and real bytes if they fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from towpath import _core
from towpath.collectives.call import Call
from towpath.collectives.element_types import type_bytes
from towpath.collectives.places import busiest
from towpath.collectives.result import (
    FaultCost,
    Fold,
    Limit,
    LinkFailure,
    LinkLoad,
    RunRow,
    Timeline,
    measure,
)

if TYPE_CHECKING:
    from towpath.collectives.places import Place

# Where messages of different ranks met at a link at the same time, all ranks are simulated if that
# takes no more events than this: about two minutes.
_EVENTS_MAX = 1_000_000_000
# Runs whose buffers would take more memory than this keep time only.
DATA_BYTES_MAX = 4 << 30


@dataclass(frozen=True)
class Outcome:
    """One invocation on all ranks. `wrong` is None if only time was simulated.

    `run` is None after a run with data, whose memory is large; `links` is then already filled.
    `events` counts the events of the `fold.ranks_simulated` simulated ranks.
    """

    time_us: float
    wrong: int | None
    events: int
    place: Place
    run: _core.SimulatedRun | None
    fold: Fold
    known_links: list[LinkLoad] = field(default_factory=list)
    trace_hash: int | None = None
    timeline: Timeline | None = None
    failures: list[LinkFailure] = field(default_factory=list)
    limit: Limit | None = None

    @cached_property
    def links(self) -> list[LinkLoad]:
        """Data carried by each link, in the machine's order."""
        return self.known_links if self.run is None else self.place.links_of(self.run)

    @property
    def busiest(self) -> LinkLoad | None:
        """The first of the busiest links; None if there are no links."""
        if self.run is None:
            return busiest(self.links)
        return self.place.busiest_of(self.run)

    @property
    def events_of_all(self) -> int:
        """Approximate number of events if all ranks are simulated."""
        return self.events * self.fold.ranks // self.fold.ranks_simulated


def fits(call: Call, size_bytes: int) -> bool:
    """True if a simulated run of that size may carry data."""
    plan = call.plan(size_bytes)
    per_rank = plan.input_bytes + plan.output_bytes + plan.heap_bytes
    return per_rank * call.ranks <= DATA_BYTES_MAX


def time_us(place: Place, call: Call, size_bytes: int) -> float:
    """The time of one invocation without data: only the time that `invoke` returns.

    Raises:
        DeadlockError: the schedule hangs; the sentence lists the waits. ValueError: the machine is
        too small.
    """
    found = time_within_us(place, call, size_bytes, math.inf)
    assert found is not None
    return found


def time_within_us(place: Place, call: Call, size_bytes: int, limit_us: float) -> float | None:
    """The time of one invocation without data, or None if it exceeds the limit. The simulation ends
    at the limit.

    Raises:
        DeadlockError: the schedule hangs within the limit. ValueError: the machine is too small.
    """
    return _timed(place, call, call.plan(size_bytes), seed=1, limit_us=limit_us)[1]


def _timed(
    place: Place, call: Call, plan: _core.Plan, *, seed: int, limit_us: float = math.inf
) -> tuple[_core.SimulatedRun, float | None, str]:
    """A run without data: its time in microseconds, and remarks about the time."""
    run = place.run_of(plan, with_data=False, seed=seed)
    time_us = run.invoke_within(limit_us)
    if not run.may_differ:
        return run, time_us, ""
    met = (
        "messages of different ranks met at a link at the same time, and the order of ranks decides"
    )
    if run.events * call.ranks // run.simulated_ranks > _EVENTS_MAX:
        return run, time_us, f"{met}: the time of all ranks may differ a little"
    run = place.changed(folds=False).run_of(plan, with_data=False, seed=seed)
    return run, run.invoke_within(limit_us), met


def invoke(
    place: Place, call: Call, size_bytes: int, *, in_place: bool, with_data: bool,
    trace: _core.Trace | None = None, seed: int = 1, slots_factor: int = 1,
) -> Outcome:  # fmt: skip
    """Simulates one invocation and checks the data that every rank received.

    Args:
        place: the places of the ranks.
        call: the call of the ranks.
        size_bytes: size of the array; rounded to a size that the schedule can divide.
        in_place: True if input and output share memory.
        with_data: True to carry and check bytes; otherwise only time is simulated.
        trace: receives the events, if given; the outcome then has a timeline.
        seed: seed of all random behavior.
        slots_factor: factor for the number of slots of each FIFO.

    Raises:
        DeadlockError: the schedule hangs; the sentence lists the waits. ValueError: the machine is
        too small.
    """
    elements = call.elements(size_bytes)
    plan = call.plan(size_bytes, slots_factor)
    wrong = None
    note = ""
    if with_data:
        run = place.run_of(plan, with_data=with_data, seed=seed, trace=trace)
        data = call.data(elements)
        ranks = [_core.RankBuffers(data, rank, in_place=in_place) for rank in range(call.ranks)]
        time_us = run.invoke(plan, ranks)
        wrong = data.count_wrong(ranks)
    elif trace is not None:
        run = place.run_of(plan, with_data=False, seed=seed, trace=trace)
        time_us = run.invoke(plan)
        note = "what each does is traced"
    else:
        run, found, note = _timed(place, call, plan, seed=seed)
        assert found is not None  # there is no limit
        time_us = found
    if not note and run.simulated_ranks == call.ranks:
        note = place.why_all(plan, with_data=with_data)
    return Outcome(
        time_us=time_us,
        wrong=wrong,
        events=run.events,
        place=place,
        run=None if with_data else run,
        fold=Fold(call.ranks, run.simulated_ranks, note),
        known_links=place.links_of(run) if with_data else [],
        trace_hash=trace.hash if trace is not None else None,
        timeline=_timeline(place, trace, size_bytes) if trace is not None else None,
        failures=place.failures_of(run),
    )


def measure_size(
    place: Place, call: Call, size_bytes: int, *, with_data: bool = True,
    kept: dict[int, Outcome] | None = None,
) -> RunRow:  # fmt: skip
    """Measures a size, out of place and in place if the schedule supports both.

    Args:
        place: the places of the ranks.
        call: the call of the ranks.
        size_bytes: size of the array.
        with_data: True to carry and check bytes, if they fit.
        kept: receives the outcome by its exact size if only time was simulated, in place of the
            previous outcome, so that it need not be simulated again.
    """
    elements = call.elements(size_bytes)
    exact_bytes = elements * type_bytes(call.type_name)
    carries = with_data and fits(call, size_bytes)
    schedule = call.schedule
    ways = [
        way for way, runs in ((False, schedule.out_of_place), (True, schedule.in_place)) if runs
    ]
    # Without memory, in place and out of place are the same.
    outcomes = [
        invoke(place, call, size_bytes, in_place=in_place and carries, with_data=carries)
        for in_place in (ways if carries else ways[:1])
    ]
    if kept is not None:
        kept.clear()
        if outcomes[0].wrong is None:
            kept[exact_bytes] = outcomes[0]
    measured = {
        in_place: measure(outcome.time_us, exact_bytes, call.collective, call.ranks, outcome.wrong)
        for in_place, outcome in zip(ways, outcomes * (len(ways) // len(outcomes)), strict=True)
    }
    return RunRow(
        size_bytes=exact_bytes, count=elements, algorithm=schedule.name, schedule=schedule.name,
        protocol=_core.name_of(schedule.protocol), channels=schedule.channels,
        out_of_place=measured.get(False), in_place=measured.get(True),
        fault_cost=_fault_cost(place, call, size_bytes, outcomes[0]), fold=outcomes[0].fold,
    )  # fmt: skip


def _fault_cost(place: Place, call: Call, size_bytes: int, outcome: Outcome) -> FaultCost | None:
    """The cost compared with the same call without faults; None if no link may fail."""
    if not outcome.failures:
        return None
    healthy = invoke(
        place.changed(link_faults=()), call, size_bytes, in_place=False, with_data=False
    )
    return FaultCost(outcome.time_us, healthy.time_us, outcome.failures)


def _timeline(place: Place, trace: _core.Trace, size_bytes: int) -> Timeline:
    names = place.track_names()
    tracks = [names.get(track, track) for track in trace.tracks]
    return Timeline(size_bytes, tracks, list(trace.names), list(trace.spans))
