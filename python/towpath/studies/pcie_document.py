# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Values of tt-umd's document PCIe Bandwidth Benchmarking: Blackhole, PCIe generation 5 x16.

Ten transfers one after the other, through windows. MB are 2^20 bytes, as in the benchmark (tt-umd,
tests/microbenchmark/common/microbenchmark_utils.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass

REPETITIONS = 10
MB = 1 << 20
CHIP, HOST = "blackhole", "blackhole-host"


@dataclass(frozen=True)
class Cell:
    """A row of one of the tables: MB/s of writes and reads."""

    size_bytes: int
    write_mb_per_s: int
    read_mb_per_s: int


@dataclass(frozen=True)
class Table:
    """One of the four tables, with windows allocated for each transfer or once, and its memory."""

    is_static: bool
    kind: str
    cells: tuple[Cell, ...]

    @property
    def title(self) -> str:
        """The title as a heading."""
        where = "DRAM" if self.kind == "dram" else "L1"
        return f"{'Static' if self.is_static else 'Dynamic'} windows, {where}"


_KB = 1 << 10
TABLES = (
    Table(False, "dram", (
        Cell(1 * _KB, 965, 47), Cell(2 * _KB, 1894, 83), Cell(4 * _KB, 3613, 45),
        Cell(8 * _KB, 6478, 86), Cell(MB, 7633, 44), Cell(8 * MB, 7609, 44),
    )),
    Table(False, "worker", (
        Cell(1 * _KB, 1002, 42), Cell(2 * _KB, 1962, 79), Cell(4 * _KB, 3738, 43),
        Cell(8 * _KB, 6660, 43), Cell(MB, 5247, 85),
    )),
    Table(True, "dram", (
        Cell(2 * _KB, 8918, 46), Cell(4 * _KB, 17361, 46), Cell(8 * _KB, 11712, 45),
        Cell(MB, 7653, 44), Cell(8 * MB, 7613, 45),
    )),
    Table(True, "worker", (
        Cell(2 * _KB, 12440, 44), Cell(4 * _KB, 13286, 43), Cell(8 * _KB, 13778, 83),
        Cell(MB, 5261, 42),
    )),
)  # fmt: skip
