# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a request on a machine: finds the schedule for each size, simulates it, and collects
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from towpath import _core
from towpath.api.result import RunResult
from towpath.api.schedule import Schedule
from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.element_types import type_bytes
from towpath.collectives.limits import find_limit
from towpath.collectives.places import GpuPlace
from towpath.collectives.result import RunRow
from towpath.tuning.collective import schedule_of
from towpath.validation.accuracy import accuracy_of, is_measured

if TYPE_CHECKING:
    from towpath.api.cluster import Cluster
    from towpath.api.request import Request
    from towpath.collectives.places import Place
    from towpath.schedules.schedule_source import ScheduleSource

_ROUNDED_SHOWN_MAX = 4

OnRow = Callable[[RunResult, RunRow | None], None]
"""Gets a result without rows and None before the first row, and then each row as it comes."""


def ignore(result: RunResult, row: RunRow | None) -> None:
    """Default value of `on_row`."""


def run_simulated(machine: Cluster, request: Request, on_row: OnRow) -> RunResult:
    """Simulates a request.

    Args:
        machine: a described machine.
        request: the checked request.
        on_row: called with each row as it is computed.

    Returns:
        A row per size.
    """
    from towpath.pages.provenance import provenance

    rows: list[RunRow] = []
    calls: dict[int, tuple[Call, dict[int, simulated.Outcome]]] = {}  # by the schedule's identity
    result: RunResult | None = None
    for size_bytes in request.sizes_bytes:
        chosen, choice = machine._choose(request, size_bytes)
        if isinstance(chosen, RunRow):
            row = chosen
            if result is None:
                result = _without_rows(machine, request, None)
                on_row(result, None)
        else:
            source = chosen._source if isinstance(chosen, Schedule) else chosen
            schedule = chosen._core if isinstance(chosen, Schedule) else schedule_of(chosen)
            if id(schedule) not in calls:
                calls[id(schedule)] = Call(schedule, request.dtype, request.op), {}
            call, kept = calls[id(schedule)]
            place = place_for(machine, request, schedule, source)
            if result is None:
                if request.link_faults:
                    # Mistakes in them come before the first row.
                    place.run_of(call.plan(size_bytes), with_data=False)
                result = _without_rows(machine, request, call)
                on_row(result, None)
            row = simulated.measure_size(place, call, size_bytes, with_data=request.data, kept=kept)
            row = row.at_least(machine._least_us(request), request.collective, call.ranks)
            row = replace(row, steps=schedule, again=_again(machine, place, call, kept))
            if source is not None and source.file is None:
                row = replace(row, algorithm=source.algorithm_name())
                row = _with_error(machine, request, call.ranks, row, size_bytes)
        rows.append(replace(row, choice=choice))
        on_row(result, rows[-1])
    assert result is not None  # a request has at least one size
    notes = dict.fromkeys((*result.notes, *_rounding_notes(rows, request)))
    used = [call.schedule for call, _ in calls.values()]
    return replace(
        result, rows=tuple(rows), notes=tuple(notes), provenance=provenance([machine.spec], used)
    )


def place_for(
    machine: Cluster, request: Request, schedule: _core.Schedule, source: ScheduleSource | None,
    *, by_packets: bool = False,
) -> Place:  # fmt: skip
    """The places in which a schedule of a request runs.

    Args:
        machine: the machine.
        request: the options of the run.
        schedule: the schedule.
        source: origin of the schedule.
        by_packets: True to simulate networks on chips packet by packet in any case.
    """
    place = machine._place_for(schedule, source, request.link_faults)
    return place.changed(
        threads=request.threads, folds=request.fold,
        by_packets=by_packets or request.network == "packets",
    )  # fmt: skip


def described(
    where: str, machine: str, request: Request, ranks: int, notes: Sequence[str]
) -> RunResult:
    """A result without rows."""
    from towpath.pages.provenance import provenance

    return RunResult(
        machine=machine, collective=request.collective,
        kind="live" if machine == "live" else "simulated", where=where, ranks=ranks,
        dtype=request.dtype, op=request.op, root=request.root, is_chosen=request.is_auto,
        iterations=1, warmup=0, notes=tuple(notes), rows=(), provenance=provenance(),
    )  # fmt: skip


def rounding_notes(call: Call, sizes_bytes: Sequence[int]) -> list[str]:
    """A sentence if the sizes of the run differ from the requested sizes."""
    element_bytes = type_bytes(call.type_name)
    return rounding_sentences({size: call.elements(size) * element_bytes for size in sizes_bytes})


def rounding_sentences(rounded: dict[int, int]) -> list[str]:
    """A sentence if sizes were rounded.

    Args:
        rounded: size of the run by the requested size.
    """
    changed = [f"{asked} to {ran}" for asked, ran in rounded.items() if ran != asked]
    if not changed:
        return []
    shown = ", ".join(changed[:_ROUNDED_SHOWN_MAX])
    more = ", ..." if len(changed) > _ROUNDED_SHOWN_MAX else ""
    return [f"sizes are rounded to whole elements in each chunk: {shown}{more} bytes"]


def _without_rows(machine: Cluster, request: Request, call: Call | None) -> RunResult:
    """The result, with the notes that are available before the first row."""
    ranks = machine.ranks if call is None else call.ranks
    notes = list(machine._assumed(request))
    if call is not None and not request.is_auto:
        notes += rounding_notes(call, request.sizes_bytes)
    if request.network == "packets":
        notes.append("networks on chips are simulated packet by packet: docs/fabric.md has errors")
    if not request.data:
        notes.append("data is off: only time is simulated, #wrong is N/A")
    elif call is not None and (
        too_large := [size for size in request.sizes_bytes if not simulated.fits(call, size)]
    ):
        notes.append(
            f"from {min(too_large)} bytes on, the ranks' buffers exceed "
            f"{simulated.DATA_BYTES_MAX >> 30} GiB: only time is simulated, #wrong is N/A"
        )
    if machine.has_nccl:
        notes.append(_accuracy_note(is_measured(machine.described, ranks, request.collective)))
    where = machine._where(ranks)
    result = described(where, machine.name, request, ranks, notes)
    return replace(result, draw=machine._draw_loads, has_limit=machine.has_nccl)


def _rounding_notes(rows: list[RunRow], request: Request) -> list[str]:
    asked = zip(request.sizes_bytes, rows, strict=True)
    return rounding_sentences({size: row.size_bytes for size, row in asked})


def _accuracy_note(has_measurements: bool) -> str:
    """A sentence about the errors of predictions."""
    if not has_measurements:
        return "not validated: there are no measurements of this on this machine"
    return (
        "the end of a row is the error to expect, median and 90th percentile of the measurements "
        "nearest to it; a row without one is not validated"
    )


def _with_error(
    machine: Cluster, request: Request, ranks: int, row: RunRow, size_bytes: int
) -> RunRow:
    """The row with its expected error, if similar rows were measured."""
    library = request.library
    has_files = library is not None and not isinstance(library, str) and library.has_files
    if not machine.has_nccl or has_files:
        return row  # channels and choices from a user's files were not measured
    found = accuracy_of(machine.described, ranks, request.collective, row.algorithm, size_bytes)
    if found is None:
        return row
    return replace(row, error_pct=(found.median_pct, found.p90_pct), error_rows=found.rows)


def _again(
    machine: Cluster, place: Place, call: Call, kept: dict[int, simulated.Outcome]
) -> Callable[[int, bool], simulated.Outcome]:
    """Simulates a call again: with a trace, or to find the loads and the limit."""

    def again(size_bytes: int, is_traced: bool) -> simulated.Outcome:
        if isinstance(place, GpuPlace) and not is_traced:
            limit, outcome = find_limit(machine.spec, place, call, size_bytes, kept.get(size_bytes))
            return replace(outcome, limit=limit)
        trace = _core.Trace() if is_traced else None
        in_place = not call.schedule.out_of_place
        return simulated.invoke(
            place, call, size_bytes, in_place=in_place, with_data=False, trace=trace
        )

    return again
