# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A run as plain text in the columns of nccl-tests, so that the same scripts can read it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from towpath.collectives.result import Measurement, Percentiles, RunRow, has_root, reduces
from towpath.pages.text import format_time
from towpath.specs.sizes import format_size

if TYPE_CHECKING:
    from towpath.api.result import RunResult

_HEADINGS = (
    "#                                                              out-of-place"
    "                       in-place",
    "#       size         count      type   redop    root"
    "     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
    "#        (B)    (elements)                          "
    "     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
)


# The widest row that `row` makes for a schedule with a usual name.
FULL_COLUMNS = 150
_NARROW = "#    size  time (us)  busbw (GB/s)  +-error   schedule, protocol, channels"


def header(result: RunResult, *, is_narrow: bool = False) -> Iterator[str]:
    """Returns the comment lines above the first row.

    Args:
        result: the run.
        is_narrow: True if rows have the columns that fit 80 characters.
    """
    yield f"# {result.collective}, ranks {result.ranks}"
    yield f"# {result.kind} on {result.where}"
    yield f"# warmup iters: {result.warmup} iters: {result.iterations}"
    for note in result.notes:
        yield from (
            textwrap.wrap(f"# {note}", 80, subsequent_indent="#   ") if is_narrow else [f"# {note}"]
        )
    yield "#"
    yield from [_NARROW] if is_narrow else _HEADINGS


def narrow_row(result: RunResult, row: RunRow) -> Iterator[str]:
    """Size, time, bandwidth, expected error and schedule; in place only if it differs."""
    ways = [("", row.out_of_place or row.in_place)]
    if row.in_place is not None and row.in_place != ways[0][1]:
        ways.append(("in place", row.in_place))
    error = "" if row.error_pct is None else "+-{:.0f}/{:.0f}%".format(*row.error_pct)
    mark = " *" if _is_predicted(result, row) else ""
    for words, way in ways:
        if way is None:
            yield f"{format_size(row.size_bytes):>9}  {'N/A':>9}  {'N/A':>12}"
            continue
        wrong = f"  {way.wrong} WRONG" if way.wrong else ""
        name = row.schedule.removesuffix(f"_{result.collective}")
        ran = words or f"{name} {row.protocol} {row.channels}{mark}"
        yield (
            f"{format_size(row.size_bytes):>9}  {format_time(way.time_us):>9}  "
            f"{way.busbw_gb_per_s:>12.2f}  {error:<8}  {ran}{wrong}"
        )


def row(result: RunResult, row: RunRow) -> str:
    """One size. A form that the schedule does not support, and unchecked data, are N/A.

    The schedule and the expected error are at the end of the line.
    """
    operation = result.op if reduces(result.collective) else "none"
    root = result.root if has_root(result.collective) else -1
    return (
        f"{row.size_bytes:>12}  {row.count:>12}  {result.dtype:>8}  {operation:>6}  {root:>6}"
        f"{_columns(row.out_of_place)}{_columns(row.in_place)}"
        f"  {row.schedule} {row.protocol} {row.channels}"
        f"{' *' if _is_predicted(result, row) else ''}{_error(row)}"
    )


def _is_predicted(result: RunResult, row: RunRow) -> bool:
    """True if the time is the prediction of the imitated library."""
    return result.kind == "simulated" and not row.is_simulated


def _error(row: RunRow) -> str:
    """The expected error: median and 90th percentile."""
    return "" if row.error_pct is None else "  +-{:.0f}/{:.0f}%".format(*row.error_pct)


def row_lines(
    result: RunResult, each: RunRow, *, explains: bool = False, is_narrow: bool = False
) -> Iterator[str]:
    """One size, followed by comment lines with the spread of live times and the cost of failing
    links.

    Args:
        result: the run.
        each: its row.
        explains: True to print how the schedule was chosen and why all ranks were simulated.
        is_narrow: True if the row has the columns that fit 80 characters.
    """
    if is_narrow:
        yield from narrow_row(result, each)
    else:
        yield row(result, each)
    for way, measurement in (("out of place", each.out_of_place), ("in place", each.in_place)):
        if measurement is not None and measurement.percentiles is not None:
            yield _spread(way, measurement.time_us, measurement.percentiles)
    if explains and each.choice is not None:
        yield f"#   choice: {each.choice}"
    cost = each.fault_cost
    if cost is None:
        return
    yield (
        f"#   links fail: {format_time(cost.time_us)} us instead of "
        f"{format_time(cost.time_without_us)} us"
    )
    for link in cost.links:
        yield (
            f"#   {link.link} ({link.fault}): {link.drops} drops, down for "
            f"{format_time(link.down_us)} us{'' if link.is_up else ' and still so'}, "
            f"{link.frames_lost} frames lost, {link.resent_bytes} B sent again"
        )


def _spread(way: str, median_us: float, spread: Percentiles) -> str:
    """The spread of the times of single calls: the middle half."""
    middle = (spread.p75_us - spread.p25_us) / median_us
    return (
        f"#   {way}: median {format_time(median_us)} us, 99 % within {format_time(spread.p99_us)} "
        f"us, {format_time(spread.min_us)} to {format_time(spread.max_us)} us, spread {middle:.0%}"
    )


def footer(result: RunResult, *, explains: bool = False) -> Iterator[str]:
    """Returns the comment lines below the last row; `result.rows` must be complete."""
    measurements = result.measurements
    unchecked = sum(measurement.wrong is None for measurement in measurements)
    if result.wrong is None:
        yield "# Out of bounds values : N/A (data not checked)"
    else:
        yield f"# Out of bounds values : {result.wrong} {'FAILED' if result.wrong else 'OK'}"
        if unchecked:
            yield f"# Data not checked     : {unchecked} of {len(measurements)} measurements"
    mean_gb_per_s = result.busbw_mean_gb_per_s
    yield f"# Avg bus bandwidth    : {'N/A' if mean_gb_per_s is None else f'{mean_gb_per_s:g}'}"
    if any(_is_predicted(result, row) for row in result.rows):
        yield "# *                    : predicted by the library's own model, without a schedule"
    folds = [row.fold for row in result.rows if row.fold is not None]
    shown = [fold.sentence for fold in folds if fold.is_folded or explains]
    for sentence in dict.fromkeys(shown):
        yield f"# Ranks                : {sentence}"
    if result.limit is not None:
        yield f"# Limit                : {result.limit.sentence}"
    yield "#"


def _columns(measurement: Measurement | None) -> str:
    if measurement is None:
        texts = ("N/A",) * 4
    else:
        texts = (
            format_time(measurement.time_us),
            f"{measurement.algbw_gb_per_s:.2f}",
            f"{measurement.busbw_gb_per_s:.2f}",
            "N/A" if measurement.wrong is None else str(measurement.wrong),
        )
    return "".join(f"  {text:>{width}}" for text, width in zip(texts, (7, 6, 6, 5), strict=True))
