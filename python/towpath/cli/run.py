# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath run`: from what the user asked to tables, a report and a trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from towpath import _core
from towpath.collectives import fabric, live, simulated
from towpath.collectives.call import Call
from towpath.collectives.data import OPERATIONS, TYPES
from towpath.collectives.gpus import channels_to_fill, channels_worth_it, gpus_used, hosts_of
from towpath.collectives.link_faults import parse_link_fault
from towpath.collectives.places import ChipPlace, GpuPlace, MailboxPlace, Place
from towpath.collectives.result import Report, Row, Run, Timeline
from towpath.errors import ConfigError, quoted
from towpath.pages import table
from towpath.pages.show import draw_svg
from towpath.pages.show_chip_cluster import draw_chip_cluster_svg
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs import catalogue
from towpath.specs.sizes import parse_size, parse_sizes

if TYPE_CHECKING:
    from collections.abc import Iterator


_TIMELINE_BYTES_MAX = 1 << 20  # a timeline of more than this by default is too long to read
_TRACE_BYTES_MAX = 1 << 30  # and of more than this, to write


@dataclass(frozen=True)
class RunRequest:
    """The options of `towpath run`, as typed."""

    collective: str | None = None
    schedule: Path | None = None
    machine: str | None = None
    live: int | None = None
    sizes: str = "8:64M"
    type_name: str = "float32"
    operation: str = "sum"
    root: int = 0
    algorithm: str | None = None
    channels: int = 0
    protocol: str = "Simple"
    hosts: int | None = None
    ranks: int | None = None
    ranks_per_host: int | None = None
    complete_from: str | None = None
    link_faults: tuple[str, ...] = ()
    with_data: bool = True
    iterations: int = 20
    warmup: int = 5
    timeout_s: float = 30.0
    wants_report: bool = False
    wants_trace: bool = False
    trace_size: str | None = None
    command: str = ""


@dataclass(frozen=True)
class RunOutcome:
    """What came of it. `wrong` counts wrong elements over all runs."""

    report: Report
    timeline: Timeline | None
    wrong: int


def run_all(request: RunRequest, *, print_lines: bool) -> RunOutcome:
    """Runs what is asked for, simulated first.

    Raises:
        ConfigError: an option is wrong.
        LiveError: a live rank failed.
        DeadlockError: the schedule hangs in the simulation.
    """
    _check(request)
    live_call = None if request.live is None else _live_call(request)  # its mistakes come first
    runs = []
    if request.machine is not None:
        runs.append(_run_simulated(request, print_lines))
    if live_call is not None:
        runs.append(_run_live(request, live_call, print_lines))
    title = f"{runs[0].collective}: {', '.join(run.where for run in runs)}"
    timeline = next((run.timeline for run in runs if run.timeline is not None), None)
    return RunOutcome(
        Report(title=title, command=request.command, runs=runs), timeline,
        sum(run.wrong or 0 for run in runs),
    )  # fmt: skip


def _check(request: RunRequest) -> None:
    if (request.collective is None) == (request.schedule is None):
        raise ConfigError("name either a collective or a --schedule file")
    if request.machine is None and request.live is None:
        raise ConfigError("say where: --machine NAME simulates, --live RANKS runs here, or both")
    if request.machine is None:
        _refuse(request,
                ("hosts", "ranks", "ranks_per_host", "wants_trace", "with_data", "link_faults"),
                "is about a simulated run, which --machine asks for")  # fmt: skip
    if request.schedule is not None:
        _refuse(request, ("algorithm", "channels", "protocol", "root"),
                "is for towpath's own schedules; a --schedule file says it itself")  # fmt: skip
    if request.live is not None:
        live.check_ranks(request.live)
    if request.type_name not in TYPES:
        raise ConfigError(f"--dtype is {quoted(request.type_name)}; allowed are {', '.join(TYPES)}")
    if request.operation not in OPERATIONS:
        raise ConfigError(
            f"--op is {quoted(request.operation)}; allowed are {', '.join(OPERATIONS)}"
        )
    if request.trace_size is not None and parse_size(request.trace_size) > _TRACE_BYTES_MAX:
        raise ConfigError(
            f"--trace-size is {quoted(request.trace_size)}; allowed is up to 1G, a million spans"
        )


_OPTIONS = {"with_data": "--no-data", "wants_trace": "--trace", "link_faults": "--link-fault"}


_FAULTS_ARE = "is about links between chips, such as those of --machine t3000"


def _refuse(request: RunRequest, names: tuple[str, ...], reason: str) -> None:
    """Options that would have no effect."""
    default = RunRequest()
    for name in names:
        if getattr(request, name) != getattr(default, name):
            raise ConfigError(f"{_OPTIONS.get(name, '--' + name.replace('_', '-'))} {reason}")


# --- simulated ----------------------------------------------------------------------------------


def _run_simulated(request: RunRequest, print_lines: bool) -> Run:
    if catalogue.kind_of(request.machine) == "mailbox_cluster":
        return _run_on_mailboxes(request, print_lines)
    if catalogue.kind_of(request.machine) == "chip_cluster":
        return _run_on_chips(request, print_lines)
    _refuse(request, ("link_faults",), _FAULTS_ARE)
    spec = catalogue.load(request.machine, request.hosts, request.ranks, request.complete_from)
    gpus = gpus_used(spec, request.ranks_per_host)
    sizes = parse_sizes(request.sizes)
    channels = min(channels_to_fill(spec), channels_worth_it(len(gpus), max(sizes)))
    source = _source(request, len(gpus), channels, hosts_of(spec, gpus))
    schedule = source.schedule()
    gpus = gpus[: schedule.rank_count]
    if len(gpus) < schedule.rank_count:
        raise ConfigError(
            f"schedule '{schedule.name}' has {schedule.rank_count} ranks, but {len(gpus)} GPUs of "
            f"machine '{spec.name}' are used; --hosts or --ranks makes it larger"
        )
    call = Call(schedule, request.type_name, request.operation)
    place = GpuPlace(spec.build(), tuple(gpus))
    where = f"{spec.name}, {call.ranks} of {spec.ranks} GPUs on {spec.host_count} hosts"
    run = _measured(request, where, place, call, print_lines)
    run = _with_timeline(request, run, place, call)
    if run.timeline is not None:
        load = {number: link.busy_fraction for number, link in enumerate(run.links)}
        run = replace(run, topology_svg=draw_svg(spec, load=load))
    return run


def _run_on_mailboxes(request: RunRequest, print_lines: bool) -> Run:
    _refuse(request, ("hosts", "ranks_per_host", "complete_from", "wants_trace"),
            "is about clusters of GPUs")  # fmt: skip
    _refuse(request, ("link_faults",), _FAULTS_ARE)
    spec = catalogue.load_mailbox_cluster(request.machine)
    if request.ranks is not None:
        spec = spec.with_figures(nodes=request.ranks)
    nodes = spec.nodes.value
    call = Call(_source(request, nodes, 1, 1).schedule(), request.type_name, request.operation)
    if call.ranks > nodes:
        raise ConfigError(
            f"schedule '{call.schedule.name}' has {call.ranks} ranks; cluster '{spec.name}' has "
            f"{nodes} nodes; --ranks makes it larger"
        )
    where = f"{spec.name}, {call.ranks} of {nodes} nodes"
    return _measured(request, where, MailboxPlace(spec.build()), call, print_lines)


def _run_on_chips(request: RunRequest, print_lines: bool) -> Run:
    _refuse(request, ("hosts", "ranks", "ranks_per_host", "complete_from"),
            "is for clusters of GPUs; on chips that Ethernet joins, each has a rank")  # fmt: skip
    spec = catalogue.load_chip_cluster(request.machine)
    cluster = spec.build()
    fabric.check_linked(request.machine, cluster)
    on_grid = fabric.is_on_grid(request.algorithm)
    try:
        layout = fabric.layout_of(cluster, on_grid)
        planes = _core.fabric_planes(cluster, layout.shape)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    places = layout.places
    source = _source(request, len(places), 2 * planes, 1)
    grid = fabric.grid_of(layout.shape) if on_grid else {}
    schedule = replace(source, both_ways=True, **grid).schedule()
    if schedule.rank_count > len(places):
        raise ConfigError(
            f"schedule '{schedule.name}' has {schedule.rank_count} ranks; cluster '{spec.name}' "
            f"has {len(places)} chips"
        )
    call = Call(schedule, request.type_name, request.operation)
    place = ChipPlace(
        cluster, places[: call.ranks], tuple(map(parse_link_fault, request.link_faults)),
        layout.shape,
    )  # fmt: skip
    # Mistakes in faults come before the first line.
    place.run_of(call.plan(1), with_data=False)
    where = f"{spec.name}, {call.ranks} of {len(places)} chips"
    run = _measured(request, where, place, call, print_lines)
    run = _with_timeline(request, run, place, call)
    if run.links:
        load = {number: link.busy_fraction for number, link in enumerate(run.links)}
        run = replace(run, topology_svg=draw_chip_cluster_svg(spec, load=load))
    return run


def _measured(
    request: RunRequest, where: str, place: Place, call: Call, print_lines: bool
) -> Run:
    sizes = parse_sizes(request.sizes)
    run = _describe("simulated", where, call, _notes(call, sizes, request.with_data))
    rows = simulated.measure_sizes(place, call, sizes, with_data=request.with_data)
    return replace(run, rows=_show(run, rows, len(sizes), print_lines))


def _with_timeline(request: RunRequest, run: Run, place: Place, call: Call) -> Run:
    """Where a report or a trace is asked for, the run with what one traced invocation showed."""
    if not (request.wants_report or request.wants_trace):
        return run
    outcome = simulated.invoke(
        place, call, _timeline_size(request), in_place=not call.schedule.out_of_place,
        with_data=False, trace=_core.Trace(),
    )  # fmt: skip
    return replace(run, timeline=outcome.timeline, links=outcome.links)


def _timeline_size(request: RunRequest) -> int:
    if request.trace_size is not None:
        return parse_size(request.trace_size)
    sizes = parse_sizes(request.sizes)
    return max((size for size in sizes if size <= _TIMELINE_BYTES_MAX), default=sizes[0])


def _notes(call: Call, sizes: list[int], with_data: bool) -> list[str]:
    if not with_data:
        return ["data is off (--no-data): only time is simulated, #wrong is N/A"]
    too_large = [size for size in sizes if not simulated.fits(call, size)]
    if not too_large:
        return []
    return [
        f"from {min(too_large)} bytes on, the ranks' buffers exceed "
        f"{simulated.DATA_BYTES_MAX >> 30} GiB: only time is simulated, #wrong is N/A"
    ]


# --- live ---------------------------------------------------------------------------------------


def _live_call(request: RunRequest) -> live.LiveCall:
    source = _source(request, request.live, 1, 1)
    schedule = source.schedule()
    if schedule.rank_count != request.live:
        raise ConfigError(
            f"schedule '{schedule.name}' has {schedule.rank_count} ranks; --live is {request.live}"
        )
    sizes = parse_sizes(request.sizes)
    return live.LiveCall(source, tuple(sizes), request.type_name, request.operation)


def _run_live(request: RunRequest, asked: live.LiveCall, print_lines: bool) -> Run:
    call = Call(asked.source.schedule(), asked.type_name, asked.operation)
    options = live.LiveOptions(request.iterations, request.warmup, request.timeout_s)
    notes = live.notes(request.live)
    run = _describe("live", f"{request.live} processes of this host", call, notes)
    run = replace(run, iterations=request.iterations, warmup=request.warmup)
    rows = (row for _, row in live.measure_calls([asked], request.live, options))
    return replace(run, rows=_show(run, rows, len(asked.sizes_bytes), print_lines))


# --- both ---------------------------------------------------------------------------------------


def _source(request: RunRequest, ranks: int, channels: int, hosts: int) -> ScheduleSource:
    if request.schedule is not None:
        return ScheduleSource(file=str(request.schedule))
    return ScheduleSource(
        None, request.collective, request.algorithm, ranks, request.channels or channels,
        request.protocol, request.root, hosts,
    )  # fmt: skip


def _describe(kind: str, where: str, call: Call, notes: list[str]) -> Run:
    schedule = call.schedule
    return Run(
        kind=kind, where=where, collective=call.collective, schedule=schedule.name,
        protocol=_core.name_of(schedule.protocol), channels=schedule.channels, ranks=call.ranks,
        type=call.type_name, operation=call.operation, root=schedule.root, rows=[], iterations=1,
        warmup=0, timeline=None, links=[], topology_svg=None, notes=notes,
    )  # fmt: skip


def _show(run: Run, rows: Iterator[Row], count: int, print_lines: bool) -> list[Row]:
    """Collects the rows, printing each as it comes, with a bar for those who wait."""
    if print_lines:
        print("\n".join(table.header(run)))
    shown: list[Row] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(f"{run.kind} {run.collective}", total=count)
        for row in rows:
            shown.append(row)
            if print_lines:
                print("\n".join(table.row_lines(run, row)), flush=True)
            bar.advance(task)
    if print_lines:
        print("\n".join(table.footer(replace(run, rows=shown))))
    return shown
