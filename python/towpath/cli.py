# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The command `towpath`. Each function is one subcommand; what they do is in other modules."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer

from towpath import _core
from towpath.errors import ConfigError
from towpath.run_command import RunRequest, run_all
from towpath.sizes import parse_size

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Moves data between processors: for real, or simulated on a machine only described.",
)  # fmt: skip

FileOption = Optional[Path]


@app.command()
def run(
    collective: Annotated[Optional[str], typer.Argument(help="all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all")] = None,
    schedule: Annotated[FileOption, typer.Option(help="an MSCCL XML file instead")] = None,
    machine: Annotated[Optional[str], typer.Option(help="simulate on this machine: a name or a file")] = None,
    live: Annotated[int, typer.Option(metavar="RANKS", help="run between so many processes here")] = 0,
    sizes: Annotated[str, typer.Option(help="8:1G, 64M, 8:1G:4 or 8,64,512")] = "8:64M",
    dtype: Annotated[str, typer.Option(help="int8 ... float64, float16, bfloat16")] = "float32",
    op: Annotated[str, typer.Option(help="sum, prod, min, max, avg")] = "sum",
    root: Annotated[int, typer.Option(help="of broadcast and reduce")] = 0,
    algorithm: Annotated[Optional[str], typer.Option(help="see `towpath algorithms`")] = None,
    channels: Annotated[int, typer.Option(help="parallel channels; 0: what the machine needs")] = 0,
    protocol: Annotated[str, typer.Option(help="Simple, LL or LL128")] = "Simple",
    hosts: Annotated[Optional[int], typer.Option(help="hosts of the machine")] = None,
    ranks: Annotated[Optional[int], typer.Option(help="GPUs of the machine altogether")] = None,
    ranks_per_host: Annotated[Optional[int], typer.Option(help="use only so many GPUs of each host")] = None,
    data: Annotated[bool, typer.Option(help="carry and check data in the simulation")] = True,
    iterations: Annotated[int, typer.Option(min=1, help="live: measured invocations")] = 20,
    warmup: Annotated[int, typer.Option(min=0, help="live: invocations before")] = 5,
    timeout: Annotated[float, typer.Option(min=0.1, help="live: seconds to wait for a silent peer")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object instead of a table")] = False,
    report: Annotated[FileOption, typer.Option(help="write an HTML report there")] = None,
    trace: Annotated[FileOption, typer.Option(help="write a Perfetto trace of --trace-size there")] = None,
    trace_size: Annotated[Optional[str], typer.Option(help="the size of timeline and trace; default: the last of --sizes up to 1M")] = None,
) -> None:  # fmt: skip
    """Runs a collective or a schedule file: simulated (--machine), for real (--live), or both."""
    request = RunRequest(
        collective=collective, schedule=schedule, machine=machine, live=live, sizes=sizes,
        type_name=dtype, operation=op, root=root, algorithm=algorithm, channels=channels,
        protocol=protocol, hosts=hosts, ranks=ranks, ranks_per_host=ranks_per_host,
        with_data=data, iterations=iterations, warmup=warmup, timeout_s=timeout,
        wants_report=report is not None, wants_trace=trace is not None, trace_size=trace_size,
        command=shlex.join(["towpath", *sys.argv[1:]]),
    )  # fmt: skip
    outcome = run_all(request, print_lines=not as_json)
    if as_json:
        print(json.dumps(outcome.report.to_json()))
    if report is not None:
        from towpath.report import write_report

        write_report(outcome.report, report)
        print(f"report: {report}", file=sys.stderr)
    if trace is not None and outcome.timeline is not None:
        from towpath.perfetto import write_perfetto

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
    from towpath.verify_command import verify_file

    verdict = verify_file(file, parse_size(size), dtype)
    print(json.dumps(verdict.to_json()) if as_json else verdict.text())
    if not verdict.is_correct:
        raise typer.Exit(1)


@app.command()
def validate(
    table: Annotated[Path, typer.Argument(help="a CSV table of measurements")],
    machine: Annotated[Optional[str], typer.Option(help="hold it against this machine instead of the table's own")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object: rows and groups")] = False,
) -> None:  # fmt: skip
    """Holds a table of measurements against the model: predicted, measured, error."""
    from towpath.validate import validate_table

    result = validate_table(table, machine)
    if as_json:
        print(json.dumps(result.to_json()))
    else:
        print(result.text())


@app.command()
def machines() -> None:
    """Lists the machines that come with towpath."""
    from towpath.machines import shipped, shipped_machines

    for name in shipped_machines():
        print(f"{name:<20} {shipped(name).description}")


@app.command()
def algorithms() -> None:
    """Lists the algorithms that towpath writes schedules for, with their cost."""
    for algorithm in _core.algorithms():
        print(f"{algorithm.collective.name:<15} {algorithm.name:<26} {algorithm.cost}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="a machine's name, or a file of any known kind")],
    hosts: Annotated[Optional[int], typer.Option(help="so many hosts")] = None,
    ranks: Annotated[Optional[int], typer.Option(help="so many GPUs altogether")] = None,
    complete_from: Annotated[Optional[str], typer.Option(help="a shipped machine that supplies what a topology file does not say")] = None,
    svg: Annotated[FileOption, typer.Option(help="draw it there")] = None,
) -> None:  # fmt: skip
    """Describes a machine as text, and draws it with --svg."""
    from towpath.machines import load
    from towpath.show import describe, draw_svg

    spec = load(name, hosts=hosts, ranks=ranks, complete_from=complete_from)
    print(describe(spec))
    if svg is not None:
        svg.write_text(draw_svg(spec))
        print(f"drawn: {svg}", file=sys.stderr)


@app.command("export")
def export(
    collective: Annotated[str, typer.Argument(help="the collective")],
    file: Annotated[Path, typer.Argument(help="the MSCCL XML file to write")],
    ranks: Annotated[int, typer.Option(min=1)],
    algorithm: Annotated[Optional[str], typer.Option()] = None,
    channels: Annotated[int, typer.Option(min=1)] = 1,
    protocol: Annotated[str, typer.Option()] = "Simple",
    root: Annotated[int, typer.Option()] = 0,
    hosts: Annotated[int, typer.Option(min=1, help="rings enter and leave hosts on their rail")] = 1,
) -> None:
    """Writes one of towpath's own schedules as MSCCL XML."""
    from towpath.schedule_format.msccl_xml import dump_schedule
    from towpath.schedule_source import ScheduleSource

    source = ScheduleSource(None, collective, algorithm, ranks, channels, protocol, root, hosts)
    dump_schedule(source.schedule(), file)


def main() -> None:
    """Entry point: errors that a user can mend are one sentence on standard error."""
    from towpath.live import LiveError

    try:
        app()
    except (ConfigError, LiveError, _core.TransportError, ValueError) as error:
        print(f"towpath: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"towpath: {error.strerror or error}: {error.filename or ''}".rstrip(": "), file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
