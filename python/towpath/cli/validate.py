# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath validate`: tables of measurements compared with the models."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

import towpath
from towpath.cli.options import AsJson, Jobs, given, machine_option, refuse
from towpath.cli.output_file import print_json
from towpath.errors import ConfigError


def validate(
    table: Annotated[
        str | None,
        typer.Argument(help="a CSV table of measurements, or a shipped one; default: all shipped"),
    ] = None,
    machine: Annotated[
        str | None, machine_option("compare with this machine instead of the table's own")
    ] = None,
    half: Annotated[
        Literal["fit", "check"] | None,
        typer.Option(help="only this half of the rows; constants are fitted on fit"),
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="REGEX", help="only groups of rows that match")
    ] = None,
    jobs: Jobs = 0,
    as_json: AsJson = False,
) -> None:
    """Compare measurements with the models: predicted, measured, error.

    Exits 1 where a table is out of its tolerance, 2 where no row of it could be simulated.
    """
    from towpath.cli.progress import bar
    from towpath.pages.validation_text import tolerance_text, validation_text

    if table is None:
        refuse(given(machine=machine, half=half, group=group), "applies to one table; name it")
        _validate_all(jobs, as_json)
        return
    result = towpath.validate(
        table, machine=machine, half=half, group=group, jobs=jobs, progress=bar
    )
    if as_json:
        print_json(result.to_dict())
    else:
        print(validation_text(result))
    if result.verdict == "not run":
        raise ConfigError(
            f"none of its {len(result.rows)} rows could be simulated; the first error is: "
            f"{result.rows[0]['error']}",
            file=table,
        )
    is_whole = machine is None and half is None and group is None
    if is_whole and result.tolerance is not None:
        if not as_json:
            print(tolerance_text(result))
        if result.verdict == "exceeded":
            raise typer.Exit(1)


def _validate_all(jobs: int, as_json: bool) -> None:
    """Prints a line per shipped table when it is done; exits with 1 if a tolerance is exceeded."""
    from towpath.cli.progress import bar
    from towpath.pages.validation_text import SUMMARY_HEADING, summary_line, verdict_text

    summaries: list[towpath.TableSummary] = []
    if not as_json:
        print(SUMMARY_HEADING)
    for summary in towpath.validate_shipped(jobs=jobs, progress=bar):
        summaries.append(summary)
        if not as_json:
            print(summary_line(summary), flush=True)
    if as_json:
        print_json([summary.to_dict() for summary in summaries])
    else:
        print(verdict_text(summaries))
    if any(summary.verdict == "exceeded" for summary in summaries):
        raise typer.Exit(1)
