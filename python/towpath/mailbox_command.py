# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath bench mailbox`: small messages on a described cluster, or between processes here."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from towpath.errors import ConfigError

_ITERATIONS_MAX = 100_000_000


def mailbox(
    machine: Annotated[
        str | None, typer.Option(help="a cluster with mailboxes: a name or a file")
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option(min=100, max=_ITERATIONS_MAX, help="of the ping-pong; default: 1000000"),
    ] = None,
    size: Annotated[int, typer.Option(min=1, max=65_536, help="of a message, in bytes")] = 32,
    seed: Annotated[int, typer.Option(min=0, max=(1 << 63) - 1, help="of the simulation")] = 1,
    page: Annotated[Path | None, typer.Option(help="write an HTML page there")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="one JSON object instead of tables")
    ] = False,
) -> None:
    """Ping-pong of small messages: histogram, breakdown, sweeps, beside the published figures."""
    from towpath.output_file import check_output

    check_output(page)
    if machine is None:
        raise ConfigError("bench mailbox needs --machine")
    result, text, write = _simulated(machine, iterations or 1_000_000, size, seed)
    print(json.dumps(result) if as_json else text)
    if page is not None:
        write(shlex.join(["towpath", *sys.argv[1:]]), page)
        print(f"page: {page}", file=sys.stderr)


def _simulated(machine: str, iterations: int, size_bytes: int, seed: int) -> tuple[Any, str, Any]:
    from towpath import machines
    from towpath.mailbox_study import StudyRequest, measure_study
    from towpath.mailbox_table import study_tables, tables_text

    spec = machines.load_mailbox_cluster(machine)
    request = StudyRequest(iterations, max(iterations * 3 // 10, 100), size_bytes, seed)
    study = measure_study(spec, request)

    def write(command: str, path: Path) -> None:
        from towpath.mailbox_page import write_mailbox_study

        facts = [
            ("Cluster", f"{spec.name}, {spec.nodes.value} nodes"),
            ("Clock", f"{spec.core_clock_mhz.value:g} MHz"),
            ("Message", f"{size_bytes} B"),
            ("Iterations", f"{request.iterations} with interrupts, {request.calm_iterations} not"),
            ("Seed", str(seed)),
        ]
        write_mailbox_study(study, f"Small messages on {spec.name}", command, facts, path)

    return asdict(study), tables_text(study_tables(study)), write
