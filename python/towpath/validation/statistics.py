# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of many rows in three numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from towpath.validation.table_file import Tolerance

Verdict = Literal["holds", "exceeded", "not run"]


@dataclass(frozen=True)
class ErrorStatistics:
    """Absolute errors of some rows, in percent.

    Attributes:
        rows: number of rows.
        predicted: number of rows that could be simulated; the errors cover only these.
        median_pct: median; None without such rows, as the next two.
        p90_pct: 90th percentile, linear between neighbors.
        worst_pct: largest error.
    """

    rows: int
    predicted: int
    median_pct: float | None = None
    p90_pct: float | None = None
    worst_pct: float | None = None

    def is_within(self, tolerance: Tolerance) -> bool:
        """True if every row was simulated and no error exceeds its tolerance."""
        if self.median_pct is None or self.p90_pct is None or self.worst_pct is None:
            return False
        return (
            self.predicted == self.rows
            and self.median_pct <= tolerance.median_pct
            and self.p90_pct <= tolerance.p90_pct
            and self.worst_pct <= tolerance.worst_pct
        )


def error_statistics(rows: Iterable[dict[str, Any]]) -> ErrorStatistics:
    """Statistics of rows from `validate`."""
    found = list(rows)
    errors = [abs(row["error_pct"]) for row in found if row["error_pct"] is not None]
    if not errors:
        return ErrorStatistics(len(found), 0)
    import numpy as np

    return ErrorStatistics(
        len(found), len(errors), float(np.median(errors)), float(np.percentile(errors, 90)),
        max(errors),
    )  # fmt: skip
