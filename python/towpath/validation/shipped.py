# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The tables that come with towpath, and the models held to the tolerance that each names."""

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
    """How well the models answer for one table.

    Attributes:
        name: the table, as `towpath validate` takes it.
        kind: the kind of table.
        statistics: errors of all rows that were chosen.
        tolerance: the largest errors allowed; None if the table names none.
        verdict: "holds", "exceeded", or "not run" if no row could be simulated.
        reason: why no row could be simulated; "" otherwise.
    """

    name: str
    kind: str
    statistics: ErrorStatistics
    tolerance: Tolerance | None
    verdict: str
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """It as plain data for JSON.

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
        name_or_file: a name that `names` has, or a path.

    Raises:
        ConfigError: there is neither such a table nor such a file.
    """
    if name_or_file in names():
        return folder() / f"{name_or_file}.csv"
    if Path(name_or_file).exists() or name_or_file.endswith(".csv"):
        return Path(name_or_file)
    known = ", ".join(names())
    raise ConfigError(
        f"there is no table {quoted(name_or_file)}; shipped are {known}; "
        "a CSV file of your own is named by its path"
    )


def validate_shipped(
    *,
    processes: int | None = None,
    progress: Progress = silent,
) -> Iterator[TableSummary]:
    """Compare every shipped table with the models, one after the other, as they are done.

    Args:
        processes: how many to use for tables that take long; None: one per processor.
        progress: shows how many rows of a table are done.

    Yields:
        A summary per table, in the order of `names`.
    """
    for name in names():
        yield summarize(name, processes=processes, progress=progress)


def summarize(
    name: str,
    *,
    processes: int | None = None,
    progress: Progress = silent,
) -> TableSummary:
    """Compare one shipped table with the models; the arguments are those of validate_shipped."""
    from towpath.validation.validate import validate_table  # it imports every model

    result = validate_table(
        find_table(name), processes=processes,
        progress=progress,
    )  # fmt: skip
    statistics = result.statistics
    if statistics.predicted == 0:
        reason = next((row["error"] for row in result.rows), "it has no rows")
        return TableSummary(name, result.kind, statistics, result.tolerance, "not run", reason)
    return TableSummary(name, result.kind, statistics, result.tolerance, result.verdict)
