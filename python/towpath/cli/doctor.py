# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath doctor`: the causes of slow and hanging jobs, from the files that operators have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.options import AsJson, Hosts, OutPage, errors_name_options, machine_option
from towpath.cli.output_file import check_output, command_line, json_text, note, page_output
from towpath.files import write_text


def doctor(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="logs of nccl-tests, NCCL_DEBUG=INFO and PyTorch, records of NCCL Inspector, "
            "output of ncclras, flight recorder dumps, topologies, ibstatus",
        ),
    ],
    machine: Annotated[
        str | None, machine_option("expected times of this machine: a name or a file")
    ] = None,
    hosts: Hosts = None,
    gate: Annotated[
        Path | None,
        typer.Option("--gate", metavar="FILE", help="write pass marks as JSON, exit 1 on a fault"),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="write the result as JUnit XML"),
    ] = None,
    out: OutPage = None,
    as_json: AsJson = False,
) -> None:
    """Find the cause of a slow or hanging job in logs, traces and topologies."""
    from towpath.api.doctor import diagnose
    from towpath.cli.progress import bar
    from towpath.operators.gate import junit as junit_text
    from towpath.operators.gate import marks
    from towpath.pages.doctor_page import doctor_page, doctor_text
    from towpath.pages.html import write_page

    check_output(gate)
    check_output(junit)
    page = page_output(out)
    with errors_name_options():
        found = diagnose(files, machine=machine, hosts=hosts, progress=bar)
    text = json_text(found.to_dict()) if as_json or page is not None else ""
    print(text if as_json else doctor_text(found))
    if page is not None:
        page.write(lambda path: write_page(doctor_page(found, command_line()), path), text)
    if junit is not None:
        write_text(junit, junit_text(found))
        note(f"junit: {junit}")
    if gate is not None:
        write_text(gate, json.dumps(marks(found), indent=1) + "\n")
        note(f"gate: {gate}")
        if not found.is_healthy:
            raise typer.Exit(1)
