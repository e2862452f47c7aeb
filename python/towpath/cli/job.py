# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath job`: the communication of a traced job, and its time on other machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.options import AsJson, OutPage, errors_name_options, machine_option
from towpath.cli.output_file import command_line, json_text, page_output


def job(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE", help="a trace of one rank: Kineto, Chakra or a flight recorder dump"
        ),
    ],
    machines: Annotated[str, machine_option("a machine, or several: dgx-h100,dgx-b200")],
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", metavar="N", min=2, help="GPUs of groups that span the job"),
    ] = None,
    scale: Annotated[
        int, typer.Option("--scale", metavar="N", min=1, help="times as many hosts")
    ] = 1,
    out: OutPage = None,
    as_json: AsJson = False,
) -> None:
    """Print the communication of a traced job, as traced and on machines."""
    from towpath.api.job import job_times, read_job, scaled
    from towpath.cli.progress import bar
    from towpath.pages.html import write_page
    from towpath.pages.job_page import job_page
    from towpath.pages.text import page_text

    page = page_output(out)
    with errors_name_options():
        found = read_job(trace)
        if ranks is not None:
            found = scaled(found, ranks)
        times = job_times(found, machines.split(","), scale=scale, progress=bar)
    result = job_page(found, times, command_line())
    plain = {
        "trace": found.form, "ranks": found.ranks, "left_out": found.left_out,
        "times": [each.to_dict() for each in times],
    }  # fmt: skip
    text = json_text(plain) if as_json or page is not None else ""
    print(text if as_json else page_text(result))
    if page is not None:
        page.write(lambda path: write_page(result, path), text)
