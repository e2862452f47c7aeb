# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a schedule on a described machine: simulated time, and real bytes where they fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from towpath import _core
from towpath.collectives.call import Call, buffers_of, wrong_elements
from towpath.collectives.data import type_bytes
from towpath.collectives.result import FaultCost, LinkFailure, LinkLoad, Row, Timeline, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from towpath.collectives.places import Place

# Runs whose buffers would take more memory than this keep time only.
DATA_BYTES_MAX = 4 << 30


@dataclass(frozen=True)
class Outcome:
    """One invocation on all ranks. `wrong` is None when the run kept time only."""

    time_us: float
    wrong: int | None
    events: int
    trace_hash: int | None = None
    timeline: Timeline | None = None
    links: list[LinkLoad] = field(default_factory=list)
    failures: list[LinkFailure] = field(default_factory=list)


def fits(call: Call, size_bytes: int) -> bool:
    """Whether a simulated run of that size may carry data."""
    plan = call.plan(size_bytes)
    per_rank = plan.input_bytes + plan.output_bytes + plan.heap_bytes
    return per_rank * call.ranks <= DATA_BYTES_MAX


def time_us(place: Place, call: Call, size_bytes: int) -> float:
    """The time of one invocation without data: what `invoke` gives, and nothing besides.

    Raises:
        DeadlockError: the schedule hangs; the sentence names who waits for whom.
        ValueError: the machine is too small.
    """
    plan = call.plan(size_bytes)
    return place.run_of(plan, with_data=False).invoke(plan)


def invoke(
    place: Place, call: Call, size_bytes: int, *, in_place: bool, with_data: bool,
    trace: _core.Trace | None = None, seed: int = 1, slots_factor: int = 1,
) -> Outcome:  # fmt: skip
    """Simulates one invocation and checks what every rank received.

    Args:
        place: where the ranks run.
        call: what they run.
        size_bytes: of the array; rounded to what the schedule can cut.
        in_place: whether input and output share memory.
        with_data: whether bytes are carried and checked; otherwise only time is simulated.
        trace: gets what happens, if given; the outcome then has a timeline.
        seed: of all that is random.
        slots_factor: multiplies the slots of each FIFO.

    Raises:
        DeadlockError: the schedule hangs; the sentence names who waits for whom.
        ValueError: the machine is too small.
    """
    elements = call.elements(size_bytes)
    plan = call.plan(size_bytes, slots_factor)
    run = place.run_of(plan, with_data=with_data, seed=seed, trace=trace)
    wrong = None
    if with_data:
        pairs = [buffers_of(call, rank, elements, in_place) for rank in range(call.ranks)]
        time_us = run.invoke(
            plan, [source.view(np.uint8) for source, _ in pairs],
            [output.view(np.uint8) for _, output in pairs],
        )  # fmt: skip
        wrong = sum(
            wrong_elements(call, rank, elements, output) for rank, (_, output) in enumerate(pairs)
        )
    else:
        time_us = run.invoke(plan)
    return Outcome(
        time_us=time_us,
        wrong=wrong,
        events=run.events,
        trace_hash=trace.hash if trace is not None else None,
        timeline=_timeline(place, trace, size_bytes) if trace is not None else None,
        links=place.links_of(run),
        failures=place.failures_of(run),
    )


def measure_sizes(
    place: Place, call: Call, sizes_bytes: list[int], *, with_data: bool = True
) -> Iterator[Row]:
    """One row per size, out of place and in place as far as the schedule runs that way."""
    for size_bytes in sizes_bytes:
        elements = call.elements(size_bytes)
        exact_bytes = elements * type_bytes(call.type_name)

        carries = with_data and fits(call, size_bytes)

        def column(
            in_place: bool, size_bytes: int = size_bytes, carries: bool = carries
        ) -> Outcome:
            return invoke(place, call, size_bytes, in_place=in_place, with_data=carries)

        ways = {False: call.schedule.out_of_place, True: call.schedule.in_place}
        if carries:
            outcomes = {in_place: column(in_place) for in_place, runs in ways.items() if runs}
        else:
            # Without memory, in place and out of place are the same.
            outcomes = dict.fromkeys((way for way, runs in ways.items() if runs), column(False))
        measured = {
            in_place: measure(
                outcome.time_us, exact_bytes, call.collective, call.ranks, outcome.wrong
            )
            for in_place, outcome in outcomes.items()
        }
        yield Row(
            size_bytes=exact_bytes,
            count=elements,
            out_of_place=measured.get(False),
            in_place=measured.get(True),
            fault_cost=_fault_cost(place, call, size_bytes, next(iter(outcomes.values()))),
        )


def _fault_cost(place: Place, call: Call, size_bytes: int, outcome: Outcome) -> FaultCost | None:
    """Against the same call where nothing fails; None where nothing may."""
    if not outcome.failures:
        return None
    healthy = invoke(place.without_faults(), call, size_bytes, in_place=False, with_data=False)
    return FaultCost(outcome.time_us, healthy.time_us, outcome.failures)


def _timeline(place: Place, trace: _core.Trace, size_bytes: int) -> Timeline:
    names = place.track_names()
    tracks = [names.get(track, track) for track in trace.tracks]
    return Timeline(size_bytes, tracks, list(trace.names), list(trace.spans))
