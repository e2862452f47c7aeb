# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The command `towpath`. Each function is one subcommand; what they do is in other modules."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from towpath import _core
from towpath.cli import bench as bench_command
from towpath.cli import new as new_command
from towpath.cli import tune as tune_command
from towpath.cli.options import (
    TIMES_MAX,
    CompleteFrom,
    Hosts,
    Iterations,
    Machine,
    Ranks,
    RanksPerHost,
    Timeout,
    Warmup,
)
from towpath.cli.output_file import check_output, command_line
from towpath.cli.replay import replay
from towpath.cli.run import RunRequest, run_all
from towpath.errors import ConfigError, Interruption, TowpathError
from towpath.specs.sizes import parse_size

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Moves data between processors: for real, or simulated on a machine only described.",
)  # fmt: skip
app.add_typer(bench_command.app, name="bench")
app.add_typer(tune_command.app, name="tune")
app.add_typer(new_command.app, name="new")

FileOption = Path | None
_UsageError = typer.BadParameter.__base__  # typer does not export it, and has moved it before


@app.command()
def run(
    collective: Annotated[
        str | None,
        typer.Argument(
            help="all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all"
        ),
    ] = None,
    schedule: Annotated[FileOption, typer.Option(help="an MSCCL XML file instead")] = None,
    machine: Machine = None,
    live: Annotated[
        int | None, typer.Option(metavar="RANKS", help="run between so many processes here")
    ] = None,
    sizes: Annotated[str, typer.Option(help="8:1G, 64M, 8:1G:4 or 8,64,512")] = "8:64M",
    dtype: Annotated[str, typer.Option(help="int8 ... float64, float16, bfloat16")] = "float32",
    op: Annotated[str, typer.Option(help="sum, prod, min, max, avg")] = "sum",
    root: Annotated[int, typer.Option(help="of broadcast and reduce")] = 0,
    algorithm: Annotated[str | None, typer.Option(help="see `towpath algorithms`")] = None,
    channels: Annotated[int, typer.Option(help="parallel channels; 0: what the machine needs")] = 0,
    protocol: Annotated[str, typer.Option(help="Simple, LL or LL128")] = "Simple",
    hosts: Hosts = None,
    ranks: Ranks = None,
    ranks_per_host: RanksPerHost = None,
    complete_from: CompleteFrom = None,
    link_fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHIP:CHANNEL,...",
            help="a link between chips that fails: loss=0.01, at=20us, every=100us, dead=5us (or "
            "forever), training=5us; may be given for several links",
        ),
    ] = None,
    data: Annotated[bool, typer.Option(help="carry and check data in the simulation")] = True,
    iterations: Iterations = 20,
    warmup: Warmup = 5,
    timeout: Timeout = 30.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object instead of a table")
    ] = False,
    report: Annotated[FileOption, typer.Option(help="write an HTML report there")] = None,
    trace: Annotated[
        FileOption, typer.Option(help="write a Perfetto trace of --trace-size there")
    ] = None,
    trace_size: Annotated[
        str | None,
        typer.Option(help="the size of timeline and trace; default: the last of --sizes up to 1M"),
    ] = None,
) -> None:
    """Runs a collective or a schedule file: simulated (--machine), for real (--live), or both."""
    check_output(report)
    check_output(trace)
    request = RunRequest(
        collective=collective, schedule=schedule, machine=machine, live=live, sizes=sizes,
        type_name=dtype, operation=op, root=root, algorithm=algorithm, channels=channels,
        protocol=protocol, hosts=hosts, ranks=ranks, ranks_per_host=ranks_per_host,
        complete_from=complete_from, link_faults=tuple(link_fault or ()),
        with_data=data, iterations=iterations, warmup=warmup, timeout_s=timeout,
        wants_report=report is not None, wants_trace=trace is not None, trace_size=trace_size,
        command=command_line(),
    )  # fmt: skip
    outcome = run_all(request, print_lines=not as_json)
    if as_json:
        print(outcome.report.to_json())
    if report is not None:
        from towpath.pages.report import write_report

        write_report(outcome.report, report)
        print(f"report: {report}", file=sys.stderr)
    if trace is not None and outcome.timeline is not None:
        from towpath.pages.perfetto import write_perfetto

        write_perfetto(outcome.timeline, trace)
        print(f"trace: {trace} (open it at ui.perfetto.dev)", file=sys.stderr)
    if outcome.wrong:
        raise typer.Exit(1)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="an MSCCL XML file")],
    size: Annotated[str, typer.Option(help="the message size to verify for")] = "64M",
    dtype: Annotated[str, typer.Option(help="element type")] = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Says whether a schedule is correct, and from which size it would hang."""
    from towpath.cli.verify import verify_file

    verdict = verify_file(file, parse_size(size), dtype)
    print(json.dumps(verdict.to_dict()) if as_json else verdict.text())
    if not verdict.is_correct:
        raise typer.Exit(1)


@app.command()
def validate(
    table: Annotated[
        str | None,
        typer.Argument(help="a CSV table of measurements, or a shipped one; default: all shipped"),
    ] = None,
    machine: Annotated[
        str | None, typer.Option(help="hold it against this machine instead of the table's own")
    ] = None,
    half: Annotated[
        str | None,
        typer.Option(help="fit or check: constants are fitted on one half of a table's rows"),
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="REGEX", help="only groups of rows that match")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object: rows and groups")
    ] = False,
) -> None:
    """Holds tables of measurements against the model: predicted, measured, error."""
    from towpath.cli.progress import bar
    from towpath.pages.validation_text import validation_text
    from towpath.validation.shipped import find_table
    from towpath.validation.validate import validate_table

    if table is None:
        if (machine, half, group) != (None, None, None):
            raise ConfigError("--machine, --half and --group are for one table; name it")
        _validate_all(as_json)
        return
    result = validate_table(find_table(table), machine, half=half, group=group, progress=bar)
    print(json.dumps(result.to_dict()) if as_json else validation_text(result))


def _validate_all(as_json: bool) -> None:
    """A line per shipped table as it is done; exits 1 if a tolerance is exceeded."""
    from towpath.cli.progress import bar
    from towpath.pages.validation_text import SUMMARY_HEADING, summary_line, verdict_text
    from towpath.validation.shipped import TableSummary, validate_shipped

    summaries: list[TableSummary] = []
    if not as_json:
        print(SUMMARY_HEADING)
    for summary in validate_shipped(progress=bar):
        summaries.append(summary)
        if not as_json:
            print(summary_line(summary), flush=True)
    if as_json:
        print(json.dumps([summary.to_dict() for summary in summaries]))
    else:
        print(verdict_text(summaries))
    if any(summary.verdict == "exceeded" for summary in summaries):
        raise typer.Exit(1)


app.command()(replay)


@app.command()
def machines() -> None:
    """Lists the machines and chips that come with towpath."""
    from towpath.specs import catalogue as all_machines
    from towpath.specs import shipped

    for kind, word, load in (
        ("machine", "cluster", all_machines.load),
        ("chip_cluster", "chips", all_machines.load_chip_cluster),
        ("mailbox_cluster", "mailbox", all_machines.load_mailbox_cluster),
        ("chip", "chip", all_machines.load_chip),
        ("host", "host", all_machines.load_host),
    ):
        for name in shipped.names(kind):
            print(f"{name:<20} {word:<8} {load(name).description}")


@app.command()
def algorithms() -> None:
    """Lists the algorithms that towpath writes schedules for, with their cost."""
    for algorithm in _core.algorithms():
        print(f"{algorithm.collective.name:<15} {algorithm.name:<26} {algorithm.cost}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="a machine's name, or a file of any known kind")],
    hosts: Annotated[int | None, typer.Option(help="so many hosts")] = None,
    ranks: Annotated[int | None, typer.Option(help="so many GPUs altogether")] = None,
    complete_from: CompleteFrom = None,
    harvest_mask: Annotated[
        int | None, typer.Option(help="of a chip: the rows or columns that it lacks, as bits")
    ] = None,
    svg: Annotated[FileOption, typer.Option(help="draw it there")] = None,
) -> None:
    """Describes a machine or chip as text, and draws it with --svg."""
    from towpath.pages import show as show_machine
    from towpath.pages import show_chip, show_chip_cluster, show_mailbox_cluster
    from towpath.pages.show_host import describe_host
    from towpath.specs import shipped
    from towpath.specs.catalogue import (
        kind_of,
        load,
        load_chip,
        load_chip_cluster,
        load_host,
        load_mailbox_cluster,
    )  # fmt: skip

    check_output(svg)
    kind = kind_of(name)
    if kind != "machine" and any(option is not None for option in (hosts, ranks, complete_from)):
        options = "--hosts, --ranks and --complete-from are for clusters of GPUs"
        raise ConfigError(f"is a {shipped.KINDS[kind]}; {options}", file=name)
    if kind != "chip" and harvest_mask is not None:
        raise ConfigError("is no chip, so it has no --harvest-mask", file=name)
    if kind == "host":
        if svg is not None:
            raise ConfigError("is a host, of which there is nothing to draw", file=name)
        print(describe_host(load_host(name)))
        return
    if kind == "chip":
        chip = load_chip(name, harvest_mask)
        text, drawing = show_chip.describe_chip(chip), show_chip.draw_chip_svg(chip)
    elif kind == "chip_cluster":
        chips = load_chip_cluster(name)
        text = show_chip_cluster.describe_chip_cluster(chips)
        drawing = show_chip_cluster.draw_chip_cluster_svg(chips)
    elif kind == "mailbox_cluster":
        spec = load_mailbox_cluster(name)
        text = show_mailbox_cluster.describe_mailbox_cluster(spec)
        drawing = show_mailbox_cluster.draw_mailbox_cluster_svg(spec)
    else:
        machine = load(name, hosts=hosts, ranks=ranks, complete_from=complete_from)
        text, drawing = show_machine.describe(machine), show_machine.draw_svg(machine)
    print(text)
    if svg is not None:
        svg.write_text(drawing, encoding="utf-8")
        print(f"drawn: {svg}", file=sys.stderr)


@app.command()
def routes(
    machine: Annotated[str, typer.Argument(help="a cluster of chips: a name or a file")],
    route: Annotated[list[str], typer.Argument(help="the chips of each route: 0-1-2 1-2-3")],
    buffers: Annotated[
        int, typer.Option(min=1, max=1024, help="packets that an Ethernet core can keep")
    ] = 1,
    candidates: Annotated[
        int, typer.Option(min=0, max=TIMES_MAX, help="orders to try where not all can be")
    ] = 20_000,
    seed: Annotated[int, typer.Option(min=0, max=TIMES_MAX, help="of that search")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
) -> None:
    """Static routes between chips as commands of Ethernet cores, and their best order."""
    from towpath.specs.catalogue import load_chip_cluster
    from towpath.studies.static_routes import parse_routes, plan_routes

    planned = plan_routes(
        load_chip_cluster(machine), parse_routes(route), buffers_per_core=buffers,
        candidates_max=candidates, seed=seed,
    )  # fmt: skip
    print(json.dumps(planned.to_dict()) if as_json else planned.text())


@app.command("export")
def export(
    collective: Annotated[str, typer.Argument(help="the collective")],
    file: Annotated[Path, typer.Argument(help="the MSCCL XML file to write")],
    ranks: Annotated[int, typer.Option(min=1)],
    algorithm: Annotated[str | None, typer.Option()] = None,
    channels: Annotated[int, typer.Option(min=1)] = 1,
    protocol: Annotated[str, typer.Option()] = "Simple",
    root: Annotated[int, typer.Option()] = 0,
    hosts: Annotated[
        int, typer.Option(min=1, help="rings enter and leave hosts on their rail")
    ] = 1,
) -> None:
    """Writes one of towpath's own schedules as MSCCL XML."""
    from towpath.schedules.msccl_xml import dump_schedule
    from towpath.schedules.schedule_source import ScheduleSource

    check_output(file)
    source = ScheduleSource(None, collective, algorithm, ranks, channels, protocol, root, hosts)
    dump_schedule(source.schedule(), file)


def _run_command(interruption: Interruption) -> int:
    """Runs what the command line says; the exit code. A mistake is one sentence."""
    from towpath.collectives.live import LiveError

    try:
        code = app(standalone_mode=False, obj=interruption)
        if sys.stdout is not None:  # it is when the command was started with none
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except _UsageError as error:
        problem = error.format_message()
    except (TowpathError, LiveError, ValueError) as error:
        problem = str(error)
    except MemoryError:
        problem = "this needs more memory than there is"
    except OSError as error:
        problem = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    print(f"towpath: {' '.join(problem.split())}", file=sys.stderr)
    return 2


def main() -> None:
    """Entry point. Exit codes: 0 all well, 1 wrong data or an incorrect schedule, 2 a mistake."""
    # Python hears of ctrl-C in its main thread only, and between two of its own lines only. So that
    # thread does nothing but wait, and a simulation of minutes ends as promptly as one of seconds.
    codes: list[int] = []
    interruption = Interruption()
    command = threading.Thread(target=lambda: codes.append(_run_command(interruption)), daemon=True)
    try:
        command.start()
        command.join()
    except KeyboardInterrupt:
        Console(stderr=True).show_cursor()  # a progress bar hides it
        print(f"towpath: {interruption.sentence}", file=sys.stderr)
        os._exit(130)
    sys.exit(codes[0] if codes else 1)


if __name__ == "__main__":
    main()
