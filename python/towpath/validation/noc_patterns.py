# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The traffic patterns of tt-metal's NoC estimator table, as programs for the cores of a chip.

Cores are identified by their position on the logical grid. Every master uses the same list of
subordinates, column by column, in tt-metal's default order (corerange_to_cores). The list includes
its own core if masters and subordinates are the same. No master waits for the others at the start,
which is random within START_SPREAD_CYCLES.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import isqrt
from typing import Any, Literal

from towpath import _core
from towpath.validation.table_kind import CannotSimulate

Mechanism = Literal["unicast", "multicast", "multicast_linked"]
Place = tuple[int, int]

PATTERNS = (
    "one_to_one", "one_from_one", "one_to_all", "one_from_all", "all_to_all", "all_from_all",
    "one_to_row", "row_to_row", "one_to_column", "column_to_column",
)  # fmt: skip
MECHANISMS = ("unicast", "multicast", "multicast_linked")

# Masters start by chance within so many cycles: the word to start is a multicast, which passes up
# to some twenty routers of nine cycles each, and firmware polls for it.
START_SPREAD_CYCLES = 200


@dataclass(frozen=True)
class _LoopCode:
    """Cycles of the compiled loop over the ends of a kernel's transactions.

    Attributes:
        destination_cycles: cycles per end: its position is read from the arguments.
        loop_cycles: additional cycles if several transactions with each end form a separate loop.
    """

    destination_cycles: int
    loop_cycles: int


@dataclass(frozen=True)
class _KernelCode:
    """The loops of a kernel that writes, and of one that reads, on one architecture."""

    of_write: _LoopCode
    of_read: _LoopCode


# From rows of the table itself: one to all with one write to each; the same with 4 and 16 against
# one (a count, a branch and a wrong one); all from all with one read from each of 9, 25 and 56; one
# from all with 16 and 64 reads from each. On Blackhole the loops of reads are hidden behind the 34
# cycles of a call.
_KERNEL_CODE = {
    "wormhole_b0": _KernelCode(of_write=_LoopCode(13, 6), of_read=_LoopCode(6, 13)),
    "blackhole": _KernelCode(of_write=_LoopCode(13, 13), of_read=_LoopCode(0, 0)),
}
# Added to a call that is written out behind a loop of the same calls: 4 to 256 linked multicasts of
# 64 B against one. gcc makes of it nine constants besides the stores, five before the loop and a
# wrong branch.
_LOOP_EXIT_CYCLES = 20

_MULTICAST_VC = 4
_UNICAST_WRITE_VC = 0


@dataclass(frozen=True)
class Pattern:
    """Source, destination and data of a pattern; one row of the table without its size.

    Attributes:
        name: one of PATTERNS.
        mechanism: one of MECHANISMS.
        subordinates: number in the table: without the master if it is excluded, 0 for a single
            subordinate.
        same_axis: True if a single subordinate is in the master's column.
        has_state: True if destination and size are set in advance.
        includes_source: True if the master of a multicast is one of the receivers.
    """

    name: str
    mechanism: str
    subordinates: int
    same_axis: bool
    has_state: bool
    includes_source: bool

    @property
    def reads(self) -> bool:
        return "_from_" in self.name

    @property
    def is_multicast(self) -> bool:
        return self.mechanism != "unicast"


@dataclass(frozen=True)
class Cast:
    """The cores of a pattern, by logical position; for a multicast, the two corners of the
    rectangle.
    """

    masters: tuple[Place, ...]
    subordinates: tuple[Place, ...]


def cast_of(pattern: Pattern, chip: _core.Chip) -> Cast:
    """The cores of a pattern.

    Raises:
        CannotSimulate: the chip has no such cores.
    """
    cast = _multicast_cast(pattern, chip) if pattern.is_multicast else _unicast_cast(pattern, chip)
    for x, y in (*cast.masters, *cast.subordinates):
        if x >= chip.worker_columns or y >= chip.worker_rows:
            raise CannotSimulate(
                f"{pattern.name} with {pattern.subordinates} subordinates needs logical core "
                f"({x}, {y}); the chip has {chip.worker_columns} x {chip.worker_rows}"
            )
    return cast


def programs(
    pattern: Pattern, chip: _core.Chip, transactions: int, transaction_bytes: int, seed: int = 1
) -> list[_core.TrafficProgram]:
    """A program per master: writers on NoC 0, readers on NoC 1, as in the measured kernels.

    If there are several masters, their starts are random within START_SPREAD_CYCLES.

    Args:
        pattern: the pattern.
        chip: the chip.
        transactions: number of transactions from each master to each subordinate, or of multicasts
            of each master.
        transaction_bytes: payload of each transaction.
        seed: seed of the masters' starts.

    Raises:
        CannotSimulate: the chip has no such cores.
    """
    cast = cast_of(pattern, chip)
    noc = 1 if pattern.reads else 0
    ends = [chip.worker(x, y) for x, y in cast.subordinates]
    if pattern.is_multicast:
        steps = _multicast_steps(pattern, chip, ends, transactions, transaction_bytes)
    else:
        steps = _unicast_steps(
            pattern, ends, transactions, transaction_bytes,
            _cycles_per_end(pattern, chip, transactions),
        )  # fmt: skip
    starts = random.Random(seed)
    spread = START_SPREAD_CYCLES if len(cast.masters) > 1 else 0
    return [
        _core.TrafficProgram(
            core=chip.worker(x, y), noc=noc, start_cycle=starts.randint(0, spread), steps=steps
        )
        for x, y in cast.masters
    ]


def _cycles_per_end(pattern: Pattern, chip: _core.Chip, transactions: int) -> int:
    """Time of the kernel's code between the transactions of one subordinate and the next.

    The kernel is compiled for a constant number of transactions, so a single one is not a loop.
    """
    code = _KERNEL_CODE.get(chip.architecture, _KERNEL_CODE["wormhole_b0"])
    end = code.of_read if pattern.reads else code.of_write
    return end.destination_cycles + (end.loop_cycles if transactions > 1 else 0)


def _unicast_steps(
    pattern: Pattern, ends: list[Place], transactions: int, transaction_bytes: int, end_cycles: int
) -> list[_core.TrafficStep]:
    """Reads each subordinate's position from the kernel's arguments, and then issues all its
    transactions.
    """
    vc: dict[str, Any] = {} if pattern.reads else {"first_vc": _UNICAST_WRITE_VC}
    steps = []
    for end in ends:
        if end_cycles > 0:
            steps.append(_core.TrafficStep("work", cycle=end_cycles))
        steps.append(
            _core.TrafficStep(
                "read" if pattern.reads else "write", to=end, size_bytes=transaction_bytes,
                count=transactions, has_state=pattern.has_state, **vc,
            )
        )  # fmt: skip
    steps.append(_core.TrafficStep("read_barrier" if pattern.reads else "write_barrier"))
    return steps


def _multicast_steps(
    pattern: Pattern, chip: _core.Chip, ends: list[Place], transactions: int,
    transaction_bytes: int,
) -> list[_core.TrafficStep]:  # fmt: skip
    # The kernel's loop has the linked ones; the last, which is not, is written out behind it.
    linked = pattern.mechanism == "multicast_linked"
    multicast = _core.TrafficStep(
        "multicast", to=ends[0], to_last=ends[-1], size_bytes=transaction_bytes,
        count=transactions, first_vc=_MULTICAST_VC, linked=linked,
        includes_source=pattern.includes_source,
        last_call_cycles=_LOOP_EXIT_CYCLES if linked else 0,
    )  # fmt: skip
    return [multicast, _core.TrafficStep("write_barrier")]


# --- which cores ----------------------------------------------------------------------------------


def _unicast_cast(pattern: Pattern, chip: _core.Chip) -> Cast:
    count = pattern.subordinates
    match pattern.name:
        case "one_to_one" | "one_from_one":
            return Cast(((0, 0),), ((0, 1) if pattern.same_axis else (1, 1),))
        case "one_to_all" | "one_from_all":
            columns, rows = _grid(pattern, chip)
            everyone = _rectangle(columns, rows)
            if len(everyone) == count:  # a square, and its master beside it
                return Cast(((columns, 0),), everyone)
            return Cast(everyone[:1], everyone[1:])
        case "all_to_all" | "all_from_all":
            everyone = _rectangle(*_grid(pattern, chip))
            return Cast(everyone, everyone)
        case "one_to_row":
            row = _rectangle(count + 1, 1)
            return Cast(row[:1], row[1:])
        case "one_to_column":
            column = _rectangle(1, count + 1)
            return Cast(column[:1], column[1:])
        case "row_to_row":
            row = _rectangle(count, 1)
            return Cast(row, row)
        case "column_to_column":
            column = _rectangle(1, count)
            return Cast(column, column)
    raise CannotSimulate(f"pattern is '{pattern.name}'; choose one of {', '.join(PATTERNS)}")


def _multicast_cast(pattern: Pattern, chip: _core.Chip) -> Cast:
    """The cores of a multicast, whose source is in the rectangle, or directly next to it."""
    count, inside = pattern.subordinates, pattern.includes_source
    match pattern.name:
        case "one_to_all":
            columns, rows = _grid(pattern, chip)
            return Cast(((0 if inside else columns, 0),), ((0, 0), (columns - 1, rows - 1)))
        case "one_to_row":
            return Cast(((0, 0 if inside else 1),), ((0, 0), (count - 1, 0)))
        case "row_to_row":
            masters = tuple((x, 0 if inside else 1) for x in range(count))
            return Cast(masters, ((0, 0), (count - 1, 0)))
        case "one_to_column":
            return Cast(((0 if inside else 1, 0),), ((0, 0), (0, count - 1)))
        case "column_to_column":
            masters = tuple((0 if inside else 1, y) for y in range(count))
            return Cast(masters, ((0, 0), (0, count - 1)))
    raise CannotSimulate(f"pattern is '{pattern.name}', which has no multicast")


def _rectangle(columns: int, rows: int) -> tuple[Place, ...]:
    return tuple((x, y) for x in range(columns) for y in range(rows))


def _grid(pattern: Pattern, chip: _core.Chip) -> tuple[int, int]:
    """Columns and rows: a square, or the whole grid except the dispatch cores.

    Dispatch uses the last row or the last column of workers. The number of subordinates in the
    table determines which one.
    """
    count = pattern.subordinates
    side = isqrt(count)
    if side * side == count:
        return side, side
    columns, rows = chip.worker_columns, chip.worker_rows
    left_out = 0 if pattern.is_multicast or pattern.name.startswith("all_") else 1
    for full in ((columns, rows - 1), (columns - 1, rows)):
        if full[0] * full[1] == count + left_out:
            return full
    raise CannotSimulate(
        f"{pattern.name} with {count} subordinates is neither a square nor all of the chip's "
        f"{columns} x {rows} workers but the last row or column"
    )
