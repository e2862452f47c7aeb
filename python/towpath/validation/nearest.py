# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Measured rows near a prediction, from the tables of GPU clusters that come with towpath."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from towpath.validation.shipped import folder

# A row is near if its size is within this factor.
_SIZE_FACTOR = 4


@dataclass(frozen=True)
class Measured:
    """One measured call of NCCL on servers of 8 H100 with an adapter of 400 Gb/s each."""

    collective: str
    nodes: int
    ranks: int
    size_bytes: int
    time_us: float


@dataclass(frozen=True)
class Accuracy:
    """How far predictions were from measured rows: parts of the measured time.

    Attributes:
        rows: how many.
        median: of the errors without their sign.
        p90: 90 of 100 errors are at most this.
    """

    rows: int
    median: float
    p90: float


def accuracy_of(errors: Sequence[float]) -> Accuracy | None:
    """Statistics of errors; None where there are none.

    >>> accuracy_of([0.1, -0.3, 0.2])
    Accuracy(rows=3, median=0.2, p90=0.3)
    """
    if not errors:
        return None
    sizes = sorted(abs(error) for error in errors)
    return Accuracy(len(sizes), _at(sizes, 0.5), _at(sizes, 0.9))


def measured_near(collective: str, nodes: int, ranks: int, size_bytes: int) -> list[Measured]:
    """Rows of NCCL as it comes, on so many nodes and ranks, near a size.

    Args:
        collective: such as "all_reduce".
        nodes: of the measured cluster.
        ranks: of the measured cluster.
        size_bytes: of the whole array.
    """
    return [
        row
        for row in _rows()
        if (row.collective, row.nodes, row.ranks) == (collective, nodes, ranks)
        and size_bytes <= row.size_bytes * _SIZE_FACTOR
        and row.size_bytes <= size_bytes * _SIZE_FACTOR
    ]


@lru_cache
def _rows() -> tuple[Measured, ...]:
    found = []
    for path in sorted(folder().glob("gpu_collectives/*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            lines = (line for line in file if not line.startswith("#"))
            for row in csv.DictReader(lines):
                times_us = [
                    float(text)
                    for way in ("out_of_place", "in_place")
                    if (text := row.get(f"time_us_{way}"))
                ]
                if row.get("config") == "default" and times_us:
                    # The first calls of a run have its warm-up in one of their two times.
                    found.append(Measured(
                        "all_reduce", int(row["nodes"]), int(row["gpus"]),
                        int(row["size_bytes"]), min(times_us),
                    ))  # fmt: skip
    return tuple(found)


def _at(sorted_values: list[float], part: float) -> float:
    """The smallest value that so large a part of the values does not exceed."""
    position = max(0, -(-int(part * 1000) * len(sorted_values) // 1000) - 1)
    return sorted_values[position]
