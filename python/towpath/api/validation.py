# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of measurements held against the models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from towpath.studies.progress import Progress
    from towpath.validation.shipped import TableSummary
    from towpath.validation.validate import Validation


def validate(
    table: str | os.PathLike[str],
    *,
    machine: str | None = None,
    half: Literal["fit", "check"] | None = None,
    group: str | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> Validation:
    """Simulates every row of a table of measurements, and compares.

    Args:
        table: the name of a shipped table, such as "host_link/accesses", or a CSV file with a
            header line; its columns say which kind of table it is (docs/validation.md).
        machine: simulate on this one instead of what the rows say: a name or a file.
        half: only this half of the rows: constants are fitted on one and checked on the other.
        group: only rows in whose group this regular expression is found.
        jobs: processes for tables that take long; 0: one per core.
        progress: a display for long work; see `towpath.studies.progress`.

    Returns:
        Each row with predicted, measured and error in percent, and statistics per group.

    Raises:
        ConfigError: there is no such table, the file is not one of a known kind, there is no such
            machine, or no row is left.
    """
    from towpath.studies.progress import silent
    from towpath.validation.shipped import find_table
    from towpath.validation.validate import validate_table

    return validate_table(
        find_table(os.fspath(table)), machine, half=half, group=group, processes=jobs or None,
        progress=progress or silent,
    )  # fmt: skip


def validate_shipped(*, jobs: int = 0, progress: Progress | None = None) -> Iterator[TableSummary]:
    """Compares every table that comes with Towpath with the models.

    All of them take minutes; `validate` takes one of them.

    Args:
        jobs: processes for tables that take long; 0: one per core.
        progress: a display for long work; see `towpath.studies.progress`.

    Returns:
        A summary per table, each as soon as its table is done.
    """
    from towpath.studies.progress import silent
    from towpath.validation import shipped

    return shipped.validate_shipped(processes=jobs or None, progress=progress or silent)
