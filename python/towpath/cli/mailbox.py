# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench mailbox`: small messages on a described cluster, or between processes here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from towpath.cli.options import AsJson
from towpath.errors import ConfigError

_ITERATIONS_MAX = 100_000_000


def mailbox(
    machine: Annotated[
        str | None, typer.Option(help="a cluster with mailboxes: a name or a file")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="between two processes of this host instead")
    ] = False,
    iterations: Annotated[
        int | None,
        typer.Option(
            min=100, max=_ITERATIONS_MAX, help="of the ping-pong; default: 1000000, live 200000"
        ),
    ] = None,
    size: Annotated[int, typer.Option(min=1, max=65_536, help="of a message, in bytes")] = 32,
    seed: Annotated[int, typer.Option(min=0, max=(1 << 63) - 1, help="of the simulation")] = 1,
    cores: Annotated[
        str | None, typer.Option(metavar="A,B", help="live: pin the processes there; default: 2")
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(help="live: where zeromq_peer and mpi_peer were built; default: build"),
    ] = None,
    page: Annotated[Path | None, typer.Option(help="write an HTML page there")] = None,
    as_json: AsJson = False,
) -> None:
    """Ping-pong of small messages: histogram, breakdown, and sweeps or other libraries."""
    from towpath.cli.output_file import check_output, command_line

    check_output(page)
    if live == (machine is not None):
        raise ConfigError("bench mailbox needs either --machine or --live")
    if live:
        result, text, write = _live(iterations or 200_000, size, cores, peers or Path("build"))
    elif cores is not None or peers is not None:
        raise ConfigError("--cores and --peers are for --live")
    else:
        result, text, write = _simulated(machine, iterations or 1_000_000, size, seed)
    print(json.dumps(result) if as_json else text)
    if page is not None:
        write(command_line(), page)
        print(f"page: {page}", file=sys.stderr)


def _live(iterations: int, size_bytes: int, cores: str | None, peers: Path) -> tuple[Any, str, Any]:
    from dataclasses import replace

    from towpath.cli.progress import bar
    from towpath.pages.plain_text import tables_text
    from towpath.studies.mailbox_live import LiveRequest, live_tables, measure_live, parse_cores
    from towpath.studies.mailbox_peers import peer_measurements
    from towpath.studies.parallel import map_in_order

    request = LiveRequest(iterations, size_bytes, parse_cores(cores))
    steps: list[Callable[[], Any]] = [
        lambda: measure_live(request), *peer_measurements(request, peers)
    ]  # fmt: skip
    label = "measuring mailboxes and libraries"
    study, *rows = map_in_order(lambda step: step(), steps, label, progress=bar)
    study = replace(study, peers=rows)

    def write(command: str, path: Path) -> None:
        from towpath.pages.mailbox_page import Drawing, histogram_figure, write_tables_page
        from towpath.pages.plots import CURVE_COLORS

        drawings = [
            Drawing("Mailbox", histogram_figure(study.message)),
            Drawing("Cache line", histogram_figure(study.line, CURVE_COLORS[1])),
        ]
        pinned = "nowhere" if request.cores is None else "cores {} and {}".format(*request.cores)
        facts = [
            ("Message", f"{size_bytes} B"), ("Iterations", str(iterations)), ("Pinned to", pinned),
            ("Waiting", "polling"),
        ]  # fmt: skip
        title = "Small messages between two processes"
        write_tables_page(title, command, facts, drawings, live_tables(study), path)

    return asdict(study), tables_text(live_tables(study)), write


def _simulated(machine: str, iterations: int, size_bytes: int, seed: int) -> tuple[Any, str, Any]:
    from towpath.cli.progress import bar
    from towpath.pages.mailbox_table import study_tables
    from towpath.pages.plain_text import tables_text
    from towpath.specs import catalogue
    from towpath.studies.mailbox_study import StudyRequest, measure_study

    spec = catalogue.load_mailbox_cluster(machine)
    request = StudyRequest(iterations, max(iterations * 3 // 10, 100), size_bytes, seed)
    study = measure_study(spec, request, bar)

    def write(command: str, path: Path) -> None:
        from towpath.pages.mailbox_page import write_mailbox_study

        facts = [
            ("Cluster", f"{spec.name}, {spec.nodes.value} nodes"),
            ("Clock", f"{spec.core_clock_mhz.value:g} MHz"),
            ("Message", f"{size_bytes} B"),
            ("Iterations", f"{request.iterations} with interrupts, {request.calm_iterations} not"),
            ("Seed", str(seed)),
        ]
        write_mailbox_study(study, f"Small messages on {spec.name}", command, facts, path)

    return asdict(study), tables_text(study_tables(study)), write
