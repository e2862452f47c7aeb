# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a collective on a machine: finds the schedule for each size, simulates, collects rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from towpath import _core
from towpath.api.result import Part, RunResult, Traced, rows_of
from towpath.collectives import simulated
from towpath.collectives.call import Call
from towpath.collectives.link_faults import LinkFault
from towpath.collectives.result import LinkLoad, Row, Run
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.api.schedule import Schedule
    from towpath.collectives.places import Place
    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.tuning.collective import Options

OnRow = Callable[[Run, "Row | None"], None]
"""Called with a run before its first row (None), and with each row as it comes."""


def ignore(run: Run, row: Row | None) -> None:
    """The default of `on_row`."""


@dataclass(frozen=True)
class Request:
    """What is to run, checked and with full names.

    Attributes:
        collective: its name.
        schedule: run this one; None: one of Towpath's own.
        sizes_bytes: at least one.
        dtype: the element type.
        op: the reduction.
        root: of broadcast and reduce.
        algorithm: its full name; "auto" chooses per size; None is the collective's first.
        protocol: "Simple", "LL", "LL128", or "auto".
        channels: parallel channels; None: what the machine needs, or what "auto" finds.
        data: whether to carry and check bytes.
        link_faults: of links between chips.
    """

    collective: str
    schedule: Schedule | None
    sizes_bytes: tuple[int, ...]
    dtype: str = "float32"
    op: str = "sum"
    root: int = 0
    algorithm: str | None = "auto"
    protocol: str = "auto"
    channels: int | None = None
    data: bool = True
    link_faults: tuple[LinkFault, ...] = ()

    @property
    def is_auto(self) -> bool:
        """Whether the schedule is searched for, size by size."""
        return self.schedule is None and "auto" in (self.algorithm, self.protocol)


class Ground(Protocol):
    """What a kind of machine tells the runner."""

    name: str

    @property
    def spec(self) -> object:
        """The description, for its hash."""

    def source_for(self, request: Request, sizes_bytes: tuple[int, ...]) -> ScheduleSource:
        """The schedule of the request's algorithm as this machine takes it."""

    def options_for(self, request: Request) -> Options:
        """What candidates are made of."""

    def place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None, faults: tuple[LinkFault, ...]
    ) -> Place:
        """Where the ranks of a schedule are."""

    def where(self, ranks: int) -> str:
        """The machine and its ranks in words."""

    def draw_loads(self, links: list[LinkLoad]) -> str | None:
        """The machine as an SVG drawing with the load of each link."""


def run_simulated(
    ground: Ground,
    request: Request,
    choose: Callable[[Request, int], tuple[ScheduleSource, str | None]],
    on_row: OnRow,
) -> RunResult:
    """Simulates a request.

    Args:
        ground: the machine.
        request: what is to run.
        choose: the schedule of a size, and a note about the choice, for requests with "auto".
        on_row: sees runs and rows as they come.

    Returns:
        A row per size.
    """
    from towpath.pages.provenance import provenance

    parts = []
    schedules = []
    for source, sizes_bytes, notes in _groups(ground, request, choose):
        schedule = request.schedule._core if request.schedule else source.schedule()
        schedules.append(schedule)
        call = Call(schedule, request.dtype, request.op)
        place = ground.place_for(schedule, source, request.link_faults)
        # Mistakes in faults come before the first row.
        place.run_of(call.plan(1), with_data=False)
        where = ground.where(call.ranks)
        run = describe("simulated", where, call, [*notes, *_notes(call, sizes_bytes, request.data)])
        rows = simulated.measure_sizes(place, call, list(sizes_bytes), with_data=request.data)
        run = collect(run, rows, on_row)
        algorithm = source.algorithm_name() if source is not None and source.file is None else None
        parts.append(Part(run, algorithm, _tracer(ground, place, call)))
    rows_by_size = [row for part in parts for row in rows_of(part)]
    return RunResult(
        machine=ground.name,
        collective=parts[0].run.collective,
        kind="simulated",
        rows=tuple(rows_by_size),
        parts=tuple(parts),
        provenance=provenance([ground.spec], schedules),  # type: ignore[list-item]
    )


def _groups(
    ground: Ground,
    request: Request,
    choose: Callable[[Request, int], tuple[ScheduleSource, str | None]],
) -> Iterator[tuple[ScheduleSource | None, tuple[int, ...], list[str]]]:
    """Sizes in a row that one schedule serves, and notes about the choice."""
    if request.schedule is not None:
        yield request.schedule._source, request.sizes_bytes, []
        return
    if not request.is_auto:
        yield ground.source_for(request, request.sizes_bytes), request.sizes_bytes, []
        return
    group: list[int] = []
    last: tuple[ScheduleSource, str | None] | None = None
    for size_bytes in request.sizes_bytes:
        chosen = choose(request, size_bytes)
        if last is not None and chosen != last:
            yield last[0], tuple(group), [last[1]] if last[1] else []
            group = []
        group.append(size_bytes)
        last = chosen
    if last is not None:
        yield last[0], tuple(group), [last[1]] if last[1] else []


def _tracer(ground: Ground, place: Place, call: Call) -> Callable[[int], Traced]:
    def trace(size_bytes: int) -> Traced:
        outcome = simulated.invoke(
            place, call, size_bytes, in_place=not call.schedule.out_of_place, with_data=False,
            trace=_core.Trace(),
        )  # fmt: skip
        return Traced(outcome.timeline, outcome.links, ground.draw_loads(outcome.links))

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


def _notes(call: Call, sizes_bytes: tuple[int, ...], with_data: bool) -> list[str]:
    if not with_data:
        return ["data is off: only time is simulated, #wrong is N/A"]
    too_large = [size for size in sizes_bytes if not simulated.fits(call, size)]
    if not too_large:
        return []
    return [
        f"from {min(too_large)} bytes on, the ranks' buffers exceed "
        f"{simulated.DATA_BYTES_MAX >> 30} GiB: only time is simulated, #wrong is N/A"
    ]


def check_ranks(name: str, schedule_ranks: int, schedule_name: str, available: int, what: str
                ) -> None:  # fmt: skip
    """A machine must have a place for every rank of a schedule.

    Raises:
        ConfigError: it has fewer.
    """
    if schedule_ranks > available:
        raise ConfigError(
            f"schedule '{schedule_name}' has {schedule_ranks} ranks; '{name}' has {available} "
            f"{what}"
        )
