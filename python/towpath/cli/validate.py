# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath validate`: tables of measurements compared with the models."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from towpath.cli.options import AsJson, Jobs, given, machine_option, refuse
from towpath.cli.output_file import print_json


class HalfWord(str, Enum):
    """Constants are fitted on one half of a table's rows and checked on the other."""

    fit = "fit"
    check = "check"


def validate(
    table: Annotated[
        str | None,
        typer.Argument(help="a CSV table of measurements, or a shipped one; default: all shipped"),
    ] = None,
    machine: Annotated[
        str | None, machine_option("compare with this machine instead of the table's own")
    ] = None,
    half: Annotated[HalfWord | None, typer.Option(help="only this half of the rows")] = None,
    group: Annotated[
        str | None, typer.Option(metavar="REGEX", help="only groups of rows that match")
    ] = None,
    jobs: Jobs = 0,
    as_json: AsJson = False,
) -> None:
    """Compare tables of measurements with the models: predicted, measured, error."""
    from towpath.cli.progress import bar
    from towpath.pages.validation_text import validation_text
    from towpath.validation.shipped import find_table
    from towpath.validation.validate import validate_table

    if table is None:
        refuse(given(machine=machine, half=half, group=group), "is for one table; name it")
        _validate_all(jobs, as_json)
        return
    result = validate_table(
        find_table(table), machine, half=None if half is None else half.value, group=group,
        processes=jobs or None, progress=bar,
    )  # fmt: skip
    if as_json:
        print_json(result.to_dict())
    else:
        print(validation_text(result))


def _validate_all(jobs: int, as_json: bool) -> None:
    """A line per shipped table as it is done; exits 1 if a tolerance is exceeded."""
    from towpath.cli.progress import bar
    from towpath.pages.validation_text import SUMMARY_HEADING, summary_line, verdict_text
    from towpath.validation.shipped import TableSummary, validate_shipped

    summaries: list[TableSummary] = []
    if not as_json:
        print(SUMMARY_HEADING)
    for summary in validate_shipped(processes=jobs or None, progress=bar):
        summaries.append(summary)
        if not as_json:
            print(summary_line(summary), flush=True)
    if as_json:
        print_json({"tables": [summary.to_dict() for summary in summaries]})
    else:
        print(verdict_text(summaries))
    if any(summary.verdict == "exceeded" for summary in summaries):
        raise typer.Exit(1)
