# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""`towpath validate`: compares a table of measurements with the model, row by row.

The columns of a table determine its kind. The kind defines the name of a row's group, the measured
value, and the corresponding simulation. A row that cannot be simulated stays in the result with the
reason. The kinds are in gpu, noc, ethernet, fabric and pcie.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from towpath.errors import ConfigError, quoted
from towpath.studies.parallel import map_in_order, processors
from towpath.studies.progress import Progress, silent
from towpath.validation.ethernet import ETHERNET_KINDS
from towpath.validation.fabric import FABRIC_KINDS
from towpath.validation.gpu import GPU_KINDS
from towpath.validation.noc import NOC_KINDS
from towpath.validation.pcie import PCIE_KINDS
from towpath.validation.shipped import find_table
from towpath.validation.statistics import ErrorStatistics, Verdict, error_statistics
from towpath.validation.table_file import TableFile, Tolerance, read_table
from towpath.validation.table_kind import Context, Row, TableKind, half_of

KINDS: list[TableKind] = [*GPU_KINDS, *NOC_KINDS, *ETHERNET_KINDS, *FABRIC_KINDS, *PCIE_KINDS]


@dataclass(frozen=True)
class Validation:
    """A table with its predictions.

    Attributes:
        kind: the kind of table.
        unit: the unit of predicted and measured values.
        rows: the table's own columns and group, label, predicted, measured, error_pct; `error` is
            the reason if a row has no prediction.
        groups: statistics of each group, with its name as `group`.
        tolerance: the table's own tolerance, if any.
    """

    kind: str
    unit: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    tolerance: Tolerance | None = None

    @property
    def statistics(self) -> ErrorStatistics:
        """Statistics of all rows."""
        return error_statistics(self.rows)

    @property
    def verdict(self) -> Verdict:
        """The result of comparing all rows with the table's tolerance, if any."""
        statistics = self.statistics
        if statistics.predicted == 0:
            return "not run"
        holds = self.tolerance is None or statistics.is_within(self.tolerance)
        return "holds" if holds else "exceeded"

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain data for JSON.

        Returns:
            The attributes, and the statistics of all rows as "all".
        """
        return {
            "kind": self.kind, "unit": self.unit, "rows": self.rows, "groups": self.groups,
            "all": asdict(self.statistics),
            "tolerance": None if self.tolerance is None else asdict(self.tolerance),
        }  # fmt: skip


def _no_kind(columns: frozenset[str]) -> str:
    """The sentence about a table of no known kind: the nearest kind, and the columns it lacks."""
    nearest = max(KINDS, key=lambda kind: len(kind.columns & columns) / len(kind.columns))
    start, end = "its columns fit no known table", "docs/validation.md lists the kinds"
    if not nearest.columns & columns:
        return f"{start}; {end}"
    missing = ", ".join(sorted(nearest.columns - columns))
    return f"{start}; the nearest, '{nearest.name}', also needs {missing}; {end}"


def validate(
    table: str | os.PathLike[str],
    machine: str | None = None,
    *,
    half: Literal["fit", "check"] | None = None,
    group: str | None = None,
    jobs: int = 0,
    progress: Progress = silent,
) -> Validation:
    """Simulates every row of a table of measurements, and compares.

    Args:
        table: the name of a shipped table, such as "host_link/accesses", or a CSV file with a
            header line, whose columns determine its kind (docs/validation.md).
        machine: the machine to simulate instead of the one in the rows: a name or a file.
        half: only this half of the rows: constants are fitted on one half and checked on the other.
        group: only rows whose group matches this regular expression.
        jobs: number of processes for slow tables; 0: one per core.
        progress: a display for long work; see `towpath.studies.progress`.

    Returns:
        Each row with predicted, measured and error in percent, and statistics per group.

    Raises:
        ConfigError: there is no such table, the file is not of a known kind, there is no such
        machine, or no row is left.
    """
    path = find_table(os.fspath(table))
    read = read_table(path)
    kind = next((kind for kind in KINDS if kind.columns <= read.columns), None)
    if kind is None:
        raise ConfigError(_no_kind(read.columns), file=str(path), line=read.header_line)
    tolerance = Tolerance.of(read)
    if machine is not None:
        kind.check_machine(machine)
    rows = _chosen(kind, read, half, group)
    points = [_Job(kind.name, row, Context(machine, path.parent)) for row in rows]
    processes = (jobs or processors()) if kind.is_slow else 1
    done = map_in_order(
        _validate_row, points, f"validating {path.stem}", processes, progress=progress
    )
    return Validation(kind.name, kind.unit, done, _groups(done), tolerance)


def _chosen(kind: TableKind, table: TableFile, half: str | None, group: str | None) -> list[Row]:
    if half not in (None, "fit", "check"):
        raise ConfigError(f"--half is {quoted(half)}; choose fit or check")
    try:
        pattern = re.compile(group or "")
    except (re.error, RecursionError, OverflowError) as error:
        problem = f"--group is {quoted(group)}, which is not a regular expression: {error}"
        raise ConfigError(problem) from None
    chosen = [
        row
        for whole_row in table.rows
        for row in kind.parts(whole_row)
        if (half is None or half_of(kind, row) == half) and pattern.search(kind.group(row))
    ]
    if table.rows and not chosen:
        problem = "none of its rows is chosen by --half and --group"
        raise ConfigError(problem, file=str(table.path))
    return chosen


@dataclass(frozen=True)
class _Job:
    """A row for the process that runs it; kinds contain functions, which cannot be sent."""

    kind: str
    row: Row
    context: Context


def _validate_row(job: _Job) -> dict[str, Any]:
    kind = next(kind for kind in KINDS if kind.name == job.kind)
    row = job.row
    result: dict[str, Any] = dict(row)
    result |= {"group": kind.group(row), "label": kind.label(row)}
    result |= {"predicted": None, "measured": None, "error_pct": None}
    try:
        measured = kind.measured(row)
        result["measured"] = measured
        prediction = kind.predict(row, job.context)
        result["predicted"] = prediction.value
        result["error_pct"] = 100 * (prediction.value / measured - 1)
        result |= prediction.details
    except (ValueError, RuntimeError) as error:  # it cannot be run, or it hangs
        result["error"] = str(error)
    return result


def _groups(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = dict.fromkeys(row["group"] for row in rows)
    return [
        {"group": name, **asdict(error_statistics(row for row in rows if row["group"] == name))}
        for name in names
    ]
