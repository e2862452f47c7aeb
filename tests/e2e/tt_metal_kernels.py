# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of a checkout of tt-metal, as its own tests call them, for tests that run them."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any, NamedTuple

from towpath import KernelRun, SourceKernel, load

HOME = os.environ.get("TT_METAL_HOME", "")
DATA_MOVEMENT = Path(HOME) / "tests/tt_metal/tt_metal/data_movement"
# Headers that Towpath has of its own come first; pure C++ on top of them comes from the checkout.
INCLUDE = [Path(HOME) / "tt_metal/hw/inc", Path(HOME) / "tt_metal", Path(HOME)]
SOURCE = 0x20000


class Curve(NamedTuple):
    """A row of validation/noc/patterns.csv: cycles on silicon by bytes of a transaction."""

    chip: str
    pattern: str
    transactions: int
    is_same_axis: bool
    is_stateful: bool
    cycles: dict[int, int]


def curves(patterns: tuple[str, ...]) -> list[Curve]:
    """The measured curves of some patterns, on both chips."""
    path = Path(__file__).parents[2] / "validation/noc/patterns.csv"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    found = []
    for row in csv.DictReader(lines):
        if row["pattern"] in patterns:
            cycles = {
                int(column.partition("=")[2]): int(value)
                for column, value in row.items()
                if column.startswith("cycles@") and value
            }
            found.append(
                Curve(
                    "wormhole" if row["arch"] == "wormhole_b0" else row["arch"],
                    row["pattern"],
                    int(row["num_transactions"]),
                    row["same_axis"] == "True",
                    row["stateful"] == "True",
                    cycles,
                )
            )
    return found


def run(chip: str, kernels: list[SourceKernel], **options: Any) -> KernelRun:
    """Runs kernels of the checkout on a shipped chip."""
    machine: Any = load(chip)
    return machine.run_kernels(kernels, **options)


def kernel(path: str, **fields: Any) -> SourceKernel:
    """A kernel of the data movement tests."""
    return SourceKernel(DATA_MOVEMENT / path, include_folders=INCLUDE, **fields)


def tile(chip: str, x: int, y: int) -> tuple[int, int]:
    """Where the worker at a logical place is on the grid."""
    at = load(chip).spec.build().worker(x, y)
    return at[0], at[1]


def estimator_cycles(curve: Curve, size_bytes: int) -> int:
    """Cycles that the estimator's own kernel measures for one point of a curve, one to one."""
    x, y = tile(curve.chip, *((0, 1) if curve.is_same_axis else (1, 1)))
    stateful = int(curve.is_stateful)
    if curve.pattern == "one_to_one":
        used = kernel(
            "noc_estimator_tests/kernels/writer.cpp",
            compile_args=[
                SOURCE, SOURCE + size_bytes, curve.transactions, size_bytes, 0, 0, 0, stateful, 1,
                0, 0, 0, 0, 0, x << 16 | y, 0, 0, 0, int(curve.is_same_axis), 0,
            ],
        )  # fmt: skip
    else:
        used = kernel(
            "noc_estimator_tests/kernels/reader.cpp",
            processor="data_movement_1",
            noc=0,
            args=[x, y],
            compile_args=[
                SOURCE, curve.transactions, size_bytes, 0, 0, 0, stateful, 1, 0, 0, 1,
                int(curve.is_same_axis), 0,
            ],
        )  # fmt: skip
    (zone,) = run(curve.chip, [used]).zones
    return zone.cycles
