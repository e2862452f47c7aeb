# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of measurements held against the models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from towpath.validation.validate import Validation


def validate(
    table: str | os.PathLike[str],
    *,
    machine: str | None = None,
    half: Literal["fit", "check"] | None = None,
    group: str | None = None,
    jobs: int = 0,
) -> Validation:
    """Simulates every row of a table of measurements, and compares.

    Args:
        table: a CSV file with a header line; its columns say which kind of table it is
            (docs/validation.md).
        machine: simulate on this one instead of what the rows say: a name or a file.
        half: only this half of the rows: constants are fitted on one and checked on the other.
        group: only rows in whose group this regular expression is found.
        jobs: processes for tables that take long; 0: one per core.

    Returns:
        Each row with predicted, measured and error in percent, and statistics per group.

    Raises:
        ConfigError: the file is not a table of a known kind, there is no such machine, or no row is
            left.
    """
    from towpath.validation.validate import validate_table

    return validate_table(
        Path(os.fspath(table)), machine, half=half, group=group, processes=jobs or None
    )
