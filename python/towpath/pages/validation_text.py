# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Output of `towpath validate`: a table's rows and groups, or a line per shipped table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from towpath.validation.shipped import TableSummary
from towpath.validation.table_file import Tolerance
from towpath.validation.validate import Validation

_LABEL_WIDTH_MIN = 14
_LABEL_WIDTH_MAX = 60


def validation_text(validation: Validation) -> str:
    """A table per group, and the summary below."""
    lines = []
    widest = max((len(row["label"]) for row in validation.rows), default=0)
    width = min(max(widest, _LABEL_WIDTH_MIN), _LABEL_WIDTH_MAX)
    for group in validation.groups:
        lines += [
            "", group["group"], f"{'':>{width}} {'predicted':>12} {'measured':>12}   error",
        ]  # fmt: skip
        lines += [
            _row_text(row, width) for row in validation.rows if row["group"] == group["group"]
        ]
    lines += ["", "absolute error         rows   median      p90    worst   not simulated"]
    for group in validation.groups:
        skipped = group["rows"] - group["predicted"]
        lines.append(f"  {group['group'][:60]}")
        lines.append(f"{'':>20} {group['rows']:>6}{_percentages(group)} {skipped:>15}")
    return "\n".join(lines)


def tolerance_text(validation: Validation) -> str:
    """The table's own tolerance, and the result of the comparison."""
    allowed = _allowed(validation.tolerance)
    return f"\ntolerance (median, p90, worst): {allowed}: {validation.verdict}"


def _allowed(most: Tolerance | None) -> str:
    if most is None:
        return "none"
    return f"{most.median_pct:g}, {most.p90_pct:g}, {most.worst_pct:g}%"


def _row_text(row: dict[str, Any], width: int) -> str:
    label = f"{row['label'][:width]:>{width}}"
    measured = f"{'-' if row['measured'] is None else format(row['measured'], '.2f'):>12}"
    if row["predicted"] is None:
        return f"{label} {'-':>12} {measured}   {row['error']}"
    error = f"{row['error_pct']:+7.1f}%" if row["error_pct"] is not None else "      -"
    return f"{label} {row['predicted']:>12.2f} {measured} {error}"


def _percentages(statistics: dict[str, Any]) -> str:
    numbers = [statistics[name] for name in ("median_pct", "p90_pct", "worst_pct")]
    return "".join(f"{'-' if n is None else f'{n:.1f}%':>9}" for n in numbers)


# --- all shipped tables ---------------------------------------------------------------------------

SUMMARY_HEADING = (
    f"{'absolute error':<42}{'rows':>6}{'median':>9}{'p90':>9}{'worst':>9}"
    f"  {'tolerance':<20}verdict"
)


def summary_line(summary: TableSummary) -> str:
    """One table: its errors, its tolerances, the verdict."""
    found = summary.statistics
    numbers = _percentages(summary.to_dict()["statistics"])
    allowed = _allowed(summary.tolerance)
    line = f"{summary.name:<42}{found.rows:>6}{numbers}  {allowed:<20}{summary.verdict}"
    skipped = found.rows - found.predicted
    if summary.reason:
        return f"{line}: {summary.reason}"
    return line + (f"; {skipped} rows not simulated" if skipped else "")


def verdict_text(summaries: Iterable[TableSummary]) -> str:
    """The sentence below the lines."""
    verdicts = [summary.verdict for summary in summaries]
    parts = [
        f"{number} {words}"
        for words, number in (
            ("within tolerance", verdicts.count("holds")),
            ("beyond it", verdicts.count("exceeded")),
            ("not run", verdicts.count("not run")),
        )
        if number
    ]
    return f"{len(verdicts)} tables: {', '.join(parts)}"
