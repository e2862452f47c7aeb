# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A run as plain text in the columns of nccl-tests, so that scripts which read those read these."""

from __future__ import annotations

from collections.abc import Iterator

from towpath.collectives.result import Measurement, Percentiles, Row, Run

_HEADINGS = (
    "#                                                              out-of-place"
    "                       in-place",
    "#       size         count      type   redop    root"
    "     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
    "#        (B)    (elements)                          "
    "     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
)


def header(run: Run) -> Iterator[str]:
    """The comment lines above the first row."""
    if run.is_chosen:
        yield f"# {run.collective}, ranks {run.ranks}, the fastest schedule at each size"
    else:
        yield (
            f"# {run.collective}, schedule {run.schedule}, protocol {run.protocol}, "
            f"channels {run.channels}, ranks {run.ranks}"
        )
    yield f"# {run.kind} on {run.where}"
    yield f"# warmup iters: {run.warmup} iters: {run.iterations}"
    for note in run.notes:
        yield f"# {note}"
    yield "#"
    yield from _HEADINGS


def row(run: Run, row: Row) -> str:
    """One size. A way the schedule does not run, and data not checked, read N/A.

    At the end of the line are what the model chose, and the error to expect.
    """
    operation = run.operation if run.reduces else "none"
    root = run.root if run.has_root else -1
    chosen = f"  {run.schedule} {run.protocol} {run.channels}" if run.is_chosen else ""
    return (
        f"{row.size_bytes:>12}  {row.count:>12}  {run.type:>8}  {operation:>6}  {root:>6}"
        f"{_columns(row.out_of_place)}{_columns(row.in_place)}{chosen}{_error(row)}"
    )


def _error(row: Row) -> str:
    """The error to expect, median and 90th percentile."""
    return "" if row.error_pct is None else "  +-{:.0f}/{:.0f}%".format(*row.error_pct)


def row_lines(run: Run, each: Row) -> Iterator[str]:
    """One size, and below it, as comments, how live times spread and what failing links cost."""
    yield row(run, each)
    for way, measurement in (("out of place", each.out_of_place), ("in place", each.in_place)):
        if measurement is not None and measurement.percentiles is not None:
            yield _spread(way, measurement.time_us, measurement.percentiles)
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
    """How the times of single calls differ; the spread is that of the middle half."""
    middle = (spread.p75_us - spread.p25_us) / median_us
    return (
        f"#   {way}: median {format_time(median_us)} us, 99 % within {format_time(spread.p99_us)} "
        f"us, {format_time(spread.min_us)} to {format_time(spread.max_us)} us, spread {middle:.0%}"
    )


def footer(run: Run) -> Iterator[str]:
    """The comment lines below the last row; run.rows must be complete."""
    measurements = run.measurements
    unchecked = sum(measurement.wrong is None for measurement in measurements)
    if run.wrong is None:
        yield "# Out of bounds values : N/A (data not checked)"
    else:
        yield f"# Out of bounds values : {run.wrong} {'FAILED' if run.wrong else 'OK'}"
        if unchecked:
            yield f"# Data not checked     : {unchecked} of {len(measurements)} measurements"
    mean_gb_per_s = run.busbw_mean_gb_per_s
    yield f"# Avg bus bandwidth    : {'N/A' if mean_gb_per_s is None else f'{mean_gb_per_s:g}'}"
    yield from _folds(run, is_folded=True)
    if run.limit is not None:
        yield f"# Limit                : {run.limit}"
    yield "#"


def fold_lines(run: Run) -> Iterator[str]:
    """Why all ranks were simulated, where they were, as `footer` says where they were not; and how
    the schedule was chosen, as `header` says of the first sizes only."""
    yield from _folds(run, is_folded=False)
    if run.choice is not None:
        sizes = ", ".join(str(each.size_bytes) for each in run.rows)
        yield f"# Choice               : at {sizes} B {run.choice}"


def _folds(run: Run, *, is_folded: bool) -> Iterator[str]:
    folds = [row.fold for row in run.rows if row.fold is not None]
    for sentence in dict.fromkeys(fold.sentence for fold in folds if fold.is_folded == is_folded):
        yield f"# Ranks                : {sentence}"


def lines(run: Run) -> Iterator[str]:
    """The whole table."""
    yield from header(run)
    for each in run.rows:
        yield from row_lines(run, each)
    yield from footer(run)


def format_time(time_us: float) -> str:
    """Microseconds in at most seven characters up to ten seconds, as nccl-tests rounds.

    >>> format_time(12.345), format_time(125.84), format_time(11363.4)
    ('12.35', '125.8', '11363')
    """
    decimals = 0 if time_us >= 10_000 else 1 if time_us >= 100 else 2
    return f"{time_us:.{decimals}f}"


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
