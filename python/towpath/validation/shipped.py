# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The tables that come with towpath, and the comparison of the models with their tolerances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.errors import ConfigError, quoted
from towpath.studies.progress import Progress, silent

if TYPE_CHECKING:
    from towpath.validation.statistics import ErrorStatistics
    from towpath.validation.table_file import Tolerance


@dataclass(frozen=True)
class TableSummary:
    """Errors of the models for one table.

    Attributes:
        name: the table's name in `towpath validate`.
        kind: the kind of table.
        statistics: errors of all selected rows.
        tolerance: the largest errors allowed; None if the table has none.
        verdict: "holds", "exceeded", or "not run" if no row could be simulated.
        reason: reason for which no row could be simulated; "" otherwise.
    """

    name: str
    kind: str
    statistics: ErrorStatistics
    tolerance: Tolerance | None
    verdict: str
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data for JSON.

        Returns:
            The attributes.
        """
        return asdict(self)


def folder() -> Path:
    """The folder of the tables: in an installed package, or at the top of a source tree."""
    here = Path(__file__).resolve()
    installed = here.parent / "tables"
    return installed if installed.is_dir() else here.parents[3] / "validation"


def names() -> list[str]:
    """Names of all tables.

    >>> names()[:2]
    ['chip_collectives/eight_chips', 'dram/wormhole']
    """
    return sorted(path.relative_to(folder()).with_suffix("").as_posix()
                  for path in folder().glob("*/*.csv"))  # fmt: skip


def find_table(name_or_file: str) -> Path:
    """The file of a table.

    Args:
        name_or_file: a name from `names`, or a path.

    Raises:
        ConfigError: no table or file has that name.
    """
    if name_or_file in names():
        return folder() / f"{name_or_file}.csv"
    if Path(name_or_file).exists() or name_or_file.endswith(".csv"):
        return Path(name_or_file)
    known = ", ".join(names())
    raise ConfigError(
        f"there is no table {quoted(name_or_file)}; choose one of {known}, "
        "or give the path of a CSV file"
    )


def validate_shipped(*, jobs: int = 0, progress: Progress = silent) -> Iterator[TableSummary]:
    """Compares every table that comes with Towpath with the models.

    All of them take minutes; `validate` compares one of them.

    Args:
        jobs: number of processes for slow tables; 0: one per core.
        progress: a display for long work; see `towpath.studies.progress`.

    Returns:
        A summary per table, each as soon as its table is done.
    """
    from towpath.validation.validate import validate  # it imports every model

    for name in names():
        result = validate(name, jobs=jobs, progress=progress)
        statistics = result.statistics
        verdict, reason = result.verdict, ""
        if statistics.predicted == 0:
            reason = next((row["error"] for row in result.rows), "it has no rows")
            verdict = "not run"
        yield TableSummary(name, result.kind, statistics, result.tolerance, verdict, reason)
