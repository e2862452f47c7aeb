# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a collective on a machine: finds the schedule for each size, simulates, collects rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from towpath import _core
from towpath.api.result import Loaded, Part, RunResult, Traced, rows_of
from towpath.api.schedule import Schedule
from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.element_types import type_bytes
from towpath.collectives.limits import find_limit
from towpath.collectives.places import GpuPlace
from towpath.collectives.result import Row, Run
from towpath.tuning.collective import schedule_of
from towpath.validation.accuracy import Accuracy, accuracy_of, is_measured

if TYPE_CHECKING:
    from towpath.api.request import Request
    from towpath.collectives.places import Place
    from towpath.collectives.result import LinkLoad
    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.tuning.sites import Site

_ROUNDED_SHOWN_MAX = 4

OnRow = Callable[[Run, Row | None], None]
"""Called with a run before its first row (None), and with each row as it comes."""

Choice = tuple["ScheduleSource | Schedule", "str | None"]
"""A schedule for one size, and a note about how it was chosen."""


Draw = Callable[[list["LinkLoad"]], "str | None"]
"""A machine as an SVG drawing with the load of each link; None: there is none."""


def ignore(run: Run, row: Row | None) -> None:
    """The default of `on_row`."""


def run_simulated(
    site: Site,
    request: Request,
    choose: Callable[[Request, int], Choice],
    draw: Draw,
    on_row: OnRow,
) -> RunResult:
    """Simulates a request.

    Args:
        site: the machine.
        request: what is to run.
        choose: the schedule of a size, and a note about the choice, for requests with "auto".
        draw: the machine with the load of each link.
        on_row: sees runs and rows as they come.

    Returns:
        A row per size.
    """
    from towpath.pages.provenance import provenance

    parts = []
    schedules = []
    for schedule, source, sizes_bytes, notes in _groups(site, request, choose):
        schedules.append(schedule)
        call = Call(schedule, request.dtype, request.op)
        place = place_for(site, request, schedule, source)
        if request.link_faults:
            # Mistakes in them come before the first row.
            place.run_of(call.plan(sizes_bytes[0]), with_data=False)
        where = site.where(call.ranks)
        choice = notes[0] if notes else None
        run = describe("simulated", where, call, [*notes, *_notes(call, sizes_bytes, request)])
        run = replace(run, is_chosen=request.is_auto, choice=choice)
        kept: dict[int, simulated.Outcome] = {}
        rows = simulated.measure_sizes(
            place, call, list(sizes_bytes), with_data=request.data, kept=kept
        )
        algorithm = source.algorithm_name() if source is not None and source.file is None else None
        if site.has_nccl:
            accuracies = [
                accuracy_of(site.spec, run.ranks, run.collective, algorithm, size)
                for size in sizes_bytes
            ]
            measured = is_measured(site.spec, run.ranks, run.collective)
            run = replace(run, notes=[*run.notes, _accuracy_note(measured)])
            rows = _with_errors(rows, accuracies)
        run = collect(run, rows, on_row)
        parts.append(
            Part(
                run,
                algorithm,
                _tracer(draw, place, call),
                _limit_finder(site, draw, place, call, kept),
            )
        )
    rows_by_size = [row for part in parts for row in rows_of(part)]
    return RunResult(
        machine=site.spec.name,
        collective=parts[0].run.collective,
        kind="simulated",
        rows=tuple(rows_by_size),
        parts=tuple(parts),
        provenance=provenance([site.spec], schedules),
    )


def place_for(
    site: Site, request: Request, schedule: _core.Schedule, source: ScheduleSource | None
) -> Place:
    """Where a schedule of a request runs."""
    place = site.place_for(schedule, source, request.link_faults).on_threads(request.threads)
    if request.network == "packets":
        place = place.quick()
    return place if request.fold else place.without_fold()


def quick_place_for(
    site: Site, request: Request, schedule: _core.Schedule, source: ScheduleSource | None
) -> Place:
    """Where a candidate is simulated for the choice: networks on chips packet by packet."""
    return place_for(site, request, schedule, source).quick()


class _Group(NamedTuple):
    """Consecutive sizes that one schedule serves, where it is from, and notes about the choice."""

    schedule: _core.Schedule
    source: ScheduleSource | None
    sizes_bytes: tuple[int, ...]
    notes: list[str]


def _groups(
    site: Site, request: Request, choose: Callable[[Request, int], Choice]
) -> Iterator[_Group]:
    if request.schedule is not None:
        own = request.schedule
        yield _Group(own._core, own._source, request.sizes_bytes, [])
    elif request.is_auto:
        choices = [(choose(request, size), size) for size in request.sizes_bytes]
        for (chosen, note), group in groupby(choices, key=itemgetter(0)):
            sizes_bytes = tuple(size for _, size in group)
            notes = [note] if note else []
            if isinstance(chosen, Schedule):
                yield _Group(chosen._core, None, sizes_bytes, notes)
            else:
                yield _Group(schedule_of(chosen), chosen, sizes_bytes, notes)
    else:
        source = site.source_for(request)
        yield _Group(source.schedule(), source, request.sizes_bytes, [])


def _accuracy_note(has_measurements: bool) -> str:
    """What is known about the errors of predictions."""
    if not has_measurements:
        return "not validated: there are no measurements of this on this machine"
    return (
        "the end of a row is the error to expect, median and 90th percentile of the measurements "
        "nearest to it; a row without one is not validated"
    )


def _with_errors(rows: Iterator[Row], accuracies: list[Accuracy | None]) -> Iterator[Row]:
    for row, found in zip(rows, accuracies, strict=True):
        error_pct = None if found is None else (found.median_pct, found.p90_pct)
        yield replace(row, error_pct=error_pct)


def _limit_finder(
    site: Site, draw: Draw, place: Place, call: Call, kept: dict[int, simulated.Outcome]
) -> Callable[[int], Loaded]:
    def loaded(size_bytes: int) -> Loaded:
        if isinstance(place, GpuPlace):
            limit, outcome = find_limit(site.spec, place, call, size_bytes, kept.get(size_bytes))
        else:
            limit = None
            outcome = simulated.invoke(
                place, call, size_bytes, in_place=not call.schedule.out_of_place, with_data=False
            )
        return Loaded(outcome, draw, limit)

    return loaded


def _tracer(draw: Draw, place: Place, call: Call) -> Callable[[int], Traced]:
    def trace(size_bytes: int) -> Traced:
        outcome = simulated.invoke(
            place, call, size_bytes, in_place=not call.schedule.out_of_place, with_data=False,
            trace=_core.Trace(),
        )  # fmt: skip
        return Traced(outcome.timeline, outcome.links, draw(outcome.links))

    return trace


def describe(kind: str, where: str, call: Call, notes: list[str]) -> Run:
    """A run without rows."""
    schedule = call.schedule
    return Run(
        kind=kind, where=where, collective=call.collective, schedule=schedule.name,
        protocol=_core.name_of(schedule.protocol), channels=schedule.channels, ranks=call.ranks,
        type=call.type_name, operation=call.operation, root=schedule.root, rows=[], iterations=1,
        warmup=0, timeline=None, links=[], topology_svg=None, notes=notes,
    )  # fmt: skip


def collect(run: Run, rows: Iterator[Row], on_row: OnRow) -> Run:
    """The run with its rows, each shown as it comes."""
    on_row(run, None)
    collected: list[Row] = []
    for row in rows:
        collected.append(row)
        on_row(run, row)
    return replace(run, rows=collected)


def rounding_notes(call: Call, sizes_bytes: Sequence[int]) -> list[str]:
    """A sentence where the sizes that run are not those that were asked for."""
    element_bytes = type_bytes(call.type_name)
    cut = {size: call.elements(size) * element_bytes for size in sizes_bytes}
    changed = [f"{asked} to {cut[asked]}" for asked in cut if cut[asked] != asked]
    if not changed:
        return []
    shown = ", ".join(changed[:_ROUNDED_SHOWN_MAX])
    more = ", ..." if len(changed) > _ROUNDED_SHOWN_MAX else ""
    return [f"sizes are rounded to whole elements in each chunk: {shown}{more} bytes"]


def _notes(call: Call, sizes_bytes: tuple[int, ...], request: Request) -> list[str]:
    notes = rounding_notes(call, sizes_bytes)
    if request.network == "packets":
        notes.append("networks on chips are simulated packet by packet: docs/fabric.md has errors")
    if not request.data:
        return [*notes, "data is off: only time is simulated, #wrong is N/A"]
    too_large = [size for size in sizes_bytes if not simulated.fits(call, size)]
    if not too_large:
        return notes
    return [
        *notes,
        f"from {min(too_large)} bytes on, the ranks' buffers exceed "
        f"{simulated.DATA_BYTES_MAX >> 30} GiB: only time is simulated, #wrong is N/A",
    ]
