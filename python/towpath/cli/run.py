# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath run`: a collective or a schedule on a described machine, between processes, or both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from towpath.cli.library_options import GraphFile, RunAs, TunerFile, Variables, library_from
from towpath.cli.machine import cluster
from towpath.cli.options import (
    Algorithm,
    AsJson,
    CompleteFrom,
    FormerOutPage,
    Hosts,
    Iterations,
    Live,
    Machine,
    OutPage,
    Pin,
    Protocol,
    Ranks,
    RanksPerHost,
    Result,
    Root,
    Settings,
    Timeout,
    Warmup,
    Without,
    errors_name_options,
    given,
    live_options,
    refuse,
)
from towpath.cli.output_file import (
    PageOutput,
    check_output,
    command_line,
    json_text,
    note,
    page_output,
)
from towpath.cli.run_options import (
    DEFAULT_SIZES,
    Channels,
    Collective,
    Data,
    Dtype,
    Explain,
    Factor,
    FoldRanks,
    Gpus,
    Largest,
    LinkFaults,
    NetworkModel,
    Operation,
    ScheduleFile,
    Sizes,
    Smallest,
    Threads,
    Trace,
    TraceSize,
)
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath import RunResult, Schedule
    from towpath.api.cluster import Cluster
    from towpath.collectives.live import LiveOptions
    from towpath.collectives.result import Row, Run


@dataclass(frozen=True)
class RunRequest:
    """What to run, parsed.

    Attributes:
        subject: the name of a collective, or a schedule from a file.
        sizes_bytes: sizes of the whole array.
        machines: the machines to simulate it on, several where --set lists several values.
        live: the number of processes to run it between, or None.
        common: options of both: dtype, op, root, algorithm, protocol, channels.
        simulated: options of the simulation: data, link_faults.
        live_options: how to measure live.
    """

    subject: str | Schedule
    sizes_bytes: list[int]
    machines: list[tuple[str, Cluster]]
    live: int | None
    common: dict[str, Any] = field(default_factory=dict)
    simulated: dict[str, Any] = field(default_factory=dict)
    live_options: LiveOptions | None = None


def run(
    collective: Collective = None,
    schedule: ScheduleFile = None,
    result: Result = None,
    machine: Machine = None,
    live: Live = None,
    sizes: Sizes = None,
    smallest: Smallest = None,
    largest: Largest = None,
    factor: Factor = None,
    gpus: Gpus = None,
    dtype: Dtype = "float32",
    op: Operation = "sum",
    root: Root = None,
    algorithm: Algorithm = None,
    channels: Channels = None,
    protocol: Protocol = None,
    run_as: RunAs = None,
    env: Variables = None,
    graph: GraphFile = None,
    tuner: TunerFile = None,
    hosts: Hosts = None,
    ranks: Ranks = None,
    ranks_per_host: RanksPerHost = None,
    complete_from: CompleteFrom = None,
    settings: Settings = None,
    without: Without = None,
    link_fault: LinkFaults = None,
    data: Data = None,
    fold: FoldRanks = None,
    threads: Threads = None,
    network: NetworkModel = None,
    explain: Explain = False,
    iterations: Iterations = None,
    warmup: Warmup = None,
    timeout: Timeout = None,
    pin: Pin = None,
    trace: Trace = None,
    trace_size: TraceSize = None,
    as_json: AsJson = False,
    out: OutPage = None,
    page: FormerOutPage = None,
) -> None:
    """Run a collective or a schedule: simulated (--machine), for real (--live), or both."""
    output = page_output(out or page)
    check_output(trace)
    place = _size(hosts, ranks, ranks_per_host, complete_from)
    place |= given(settings=settings or None, without=without or None)
    faults = link_fault or None
    simulated = given(data=data, fold=fold, threads=threads, network=network, link_fault=faults)
    if machine is None:
        live = _checked_live(gpus if live is None else live, place, trace=trace, **simulated)
    trace_bytes = _trace_size(trace_size, is_traced=trace is not None or output is not None)
    own = given(root=root, algorithm=algorithm, protocol=protocol, channels=channels)
    loaded = [] if machine is None else _machines(machine, place, gpus)
    library = library_from(run_as, env, graph_file=graph, tuner_file=tuner)
    if library is not None:
        _check_library(schedule, machine, live, own)
    else:
        own = _own_schedule(schedule, own, loaded, live)
    measured = live_options(live, iterations=iterations, warmup=warmup, timeout_s=timeout, pin=pin)
    request = RunRequest(
        subject=_subject(collective, schedule, result, root),
        sizes_bytes=_sizes(sizes, smallest, largest, factor),
        machines=loaded, live=live, common={"dtype": dtype, "op": op, **own},
        simulated=_simulated_options(simulated, library), live_options=measured,
    )  # fmt: skip
    with errors_name_options():
        results = run_all(request, prints=not as_json, explains=explain)
    _deliver(results, as_json, output, trace, trace_bytes)


def _size(
    hosts: int | None, ranks: int | None, ranks_per_host: int | None, complete_from: Any
) -> dict[str, Any]:
    """Options of the machine's size that were given."""
    return given(
        hosts=hosts, ranks=ranks, ranks_per_host=ranks_per_host, complete_from=complete_from
    )


def _simulated_options(own: dict[str, Any], library: Any) -> dict[str, Any]:
    """Options of a simulation alone, with what was not given."""
    return {
        "data": own.get("data", True), "fold": own.get("fold", True),
        "threads": own.get("threads"), "network": own.get("network", "flits"),
        "link_faults": own.get("link_fault", ()), "library": library,
    }  # fmt: skip


def run_all(request: RunRequest, *, prints: bool, explains: bool = False) -> list[RunResult]:
    """Run what is asked for, simulated first.

    Args:
        request: what to run.
        prints: whether to print tables, each row as it comes.
        explains: whether to print why all ranks were simulated, too.

    Returns:
        One result per place.

    Raises:
        ConfigError: an option is wrong.
        LiveError: a live rank failed.
        TransportError: the schedule hangs in the simulation.
    """
    results = []
    for setting, machine in request.machines:
        if prints and setting:
            print(f"# with {setting}")
        results.append(_simulate(request, machine, prints))
        if prints and explains:
            _print_folds(results[-1])
    if request.live is not None:
        results.append(_run_live(request, prints))
    return results


def _simulate(request: RunRequest, machine: Cluster, prints: bool) -> RunResult:
    with _shown(prints, len(request.sizes_bytes)) as on_row:
        result = machine.run(
            request.subject, size_bytes=request.sizes_bytes, on_row=on_row, **request.common,
            **request.simulated,
        )  # fmt: skip
    if prints:
        _print_footer(result)
    return result


def _run_live(request: RunRequest, prints: bool) -> RunResult:
    from towpath.api.live_run import run_live

    with _shown(prints, len(request.sizes_bytes)) as on_row:
        result = run_live(
            request.subject, ranks=request.live or 0, size_bytes=request.sizes_bytes,
            options=request.live_options, on_row=on_row, **request.common,
        )  # fmt: skip
    if prints:
        _print_footer(result)
    return result


# --- what was typed -------------------------------------------------------------------------------


def _subject(
    collective: str | None, schedule: Path | None, result: str | None, root: int | None
) -> str | Schedule:
    import towpath
    from towpath.schedules.words import check_root, collective_named

    if collective is not None and schedule is None:
        refuse(given(result=result), "requires --schedule")
        check_root(root, collective_named(collective))
        return collective
    if schedule is not None and collective is None:
        return towpath.Schedule.load(schedule, result=result)
    raise ConfigError("name either a collective or a --schedule file")


def _sizes(text: str | None, smallest: str | None, largest: str | None, factor: int | None
           ) -> list[int]:  # fmt: skip
    """--sizes, or the same as -b, -e and -f."""
    from towpath.specs.sizes import parse_sizes

    if smallest is None and largest is None and factor is None:
        return parse_sizes(DEFAULT_SIZES if text is None else text)
    if text is not None:
        raise ConfigError("--sizes and -b, -e, -f exclude each other")
    first, last = DEFAULT_SIZES.split(":")
    return parse_sizes(f"{smallest or first}:{largest or smallest or last}:{factor or 2}")


def _checked_live(live: int | None, place: dict[str, Any], **simulated: Any) -> int:
    """Refuse options of a simulation where nothing is simulated, and no place at all."""
    if live is None:
        raise ConfigError("say where: --machine NAME simulates, --live RANKS runs, or both")
    refuse(place | given(**simulated), "requires --machine")
    return live


def _own_schedule(
    schedule: Path | None,
    options: dict[str, Any],
    machines: list[tuple[str, Cluster]],
    live: int | None,
) -> dict[str, Any]:
    """Options of towpath's own schedules.

    By default the fastest for each size of a simulation, none where it only runs live, and the
    collective's first algorithm with Simple on both.
    """
    if schedule is not None:
        refuse(options, "is for towpath's own schedules; a --schedule file contains its own")
        return {"algorithm": None}
    if not machines:
        return {"algorithm": None, **options}
    if live is None:
        return {"algorithm": "auto", "protocol": "auto", **options}
    return {"algorithm": None, "protocol": "Simple", **options}


def _check_library(
    schedule: Path | None, machine: str | None, live: int | None, own: dict[str, Any]
) -> None:
    """Refuse what does not go with --as.

    Raises:
        ConfigError: something does not.
    """
    if machine is None or live is not None:
        raise ConfigError("--as is for a simulation, so it needs --machine and no --live")
    if schedule is not None:
        raise ConfigError("--as chooses a schedule, and --schedule names one; give either")
    chosen = {name: value for name, value in own.items() if name != "root"}
    refuse(chosen, "is for Towpath's own choice; with --as, --env NCCL_ALGO=Ring bends the choice")


def _machines(name: str, sizes: dict[str, Any], gpus: int | None) -> list[tuple[str, Cluster]]:
    """The machine, as large as asked for, with each combination of settings and these in words.

    Raises:
        ConfigError: there is no such machine, or no collective runs on it.
    """
    settings = sizes.pop("settings", None)
    if gpus is not None:
        refuse(
            {name: sizes[name] for name in sizes if name != "without"}, "and -g exclude each other"
        )
        sizes |= _sizes_for(cluster(name), gpus)
    if settings is None:
        return [("", cluster(name, **sizes))]
    from towpath.specs.override import combinations

    return [
        (", ".join(each), cluster(name, settings=each, **sizes)) for each in combinations(settings)
    ]


def _sizes_for(machine: object, gpus: int) -> dict[str, int]:
    """The options of `towpath.load` for a number of ranks: part of one host, or whole hosts."""
    from towpath import GpuCluster

    if isinstance(machine, GpuCluster) and gpus <= machine.spec.gpus_per_host:
        return {"hosts": 1, "ranks_per_host": gpus}
    return {"ranks": gpus}


def _trace_size(text: str | None, *, is_traced: bool) -> int | None:
    from towpath.api.result import timeline_size
    from towpath.specs.sizes import parse_size

    if not is_traced:
        refuse(given(trace_size=text), "requires --trace or --out")
    return None if text is None else timeline_size([], parse_size(text))


# --- what is shown --------------------------------------------------------------------------------


@contextmanager
def _shown(prints: bool, count: int) -> Iterator[Callable[[Run, Row | None], None]]:
    """Prints a table as its rows come, with a bar while it waits for the next one."""
    from towpath.cli.progress import bar
    from towpath.pages import table

    runs: list[Run] = []
    rows: list[Row] = []
    with bar("running", count) as update:

        def show(run: Run, row: Row | None) -> None:
            if row is not None:
                rows.append(row)
                lines = table.row_lines(run, row)
            elif not runs:
                lines = table.header(run)
            elif run.is_chosen:
                lines = iter(())  # each row says what was chosen
            else:
                lines = iter([next(table.header(run))])  # another schedule serves the next sizes
            if row is None:
                runs.append(run)
            text = "\n".join(lines)
            if prints and text:
                print(text, flush=True)
            update(len(rows), f"{run.kind} {run.collective}")

        yield show


def _print_footer(result: RunResult) -> None:
    """The lines below the last row, and what limits the largest size."""
    from towpath.pages import table

    rows = [row for run in result.runs for row in run.rows]
    limit = None if result.limit is None else result.limit.sentence
    print("\n".join(table.footer(replace(result.runs[0], rows=rows, limit=limit))))


def _print_folds(result: RunResult) -> None:
    from towpath.pages import table

    for run in result.runs:
        for line in table.fold_lines(run):
            print(line)


def _deliver(
    results: list[RunResult], as_json: bool, output: PageOutput | None, trace: Path | None,
    trace_bytes: int | None,
) -> None:  # fmt: skip
    from towpath.api.result import traced_run
    from towpath.collectives.result import Report
    from towpath.pages.provenance import joined

    wants_timeline = output is not None or trace is not None
    if not (as_json or wants_timeline):
        return _end(results)
    runs = [
        traced_run(part, trace_bytes) if wants_timeline else part.run
        for result in results
        for part in result.parts
    ]
    title = f"{runs[0].collective}: {', '.join(dict.fromkeys(run.where for run in runs))}"
    report = Report(title, command_line(), runs)
    made_with = joined(result.provenance for result in results)
    text = json_text(json.loads(report.to_json()), made_with)
    if as_json:
        print(text)
    if output is not None:
        from towpath.pages.report import write_report

        output.write(lambda path: write_report(report, path, made_with), text)
    if trace is not None:
        results[0].trace(trace, size_bytes=trace_bytes)
        note(f"trace: {trace} (open it at ui.perfetto.dev)")
    _end(results)


def _end(results: list[RunResult]) -> None:
    """Wrong data is a status of 1."""
    if any(result.wrong for result in results):
        raise typer.Exit(1)
