# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What every rank brings to a collective, and what must come out: numpy's own sums, not ours.

The core's `CallData`, which runs are checked with, must bring the same and find the same.

Values are small whole numbers, so that every order of reduction gives the same bits in every type.
Each element is the work of a few ranks only, a different few from element to element; a missing or
doubled contribution shows in some element for any number of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inside.live import TYPES

_CONTRIBUTORS = 8  # ranks whose value is not neutral, per element


def _to_type(values: np.ndarray, type_name: str) -> np.ndarray:
    if type_name != "bfloat16":
        return values.astype(TYPES[type_name])
    # Exact: whole numbers below 256 have no bits beyond the upper half of a float32.
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _from_type(stored: np.ndarray, type_name: str) -> np.ndarray:
    if type_name != "bfloat16":
        return stored
    return (stored.astype(np.uint32) << 16).view(np.float32)


_NOISE_PERIOD = 8191


def _period(ranks: int) -> int:
    """All patterns below repeat after this many elements, so no more are computed."""
    return _NOISE_PERIOD * ranks


def _noise(indices: np.ndarray, salt: int, below: int) -> np.ndarray:
    """Scattered numbers from 0, so that a chunk in the wrong place does not look right.

    The indices are consecutive, so one period of the numbers is computed and repeated.
    """
    mixed = np.arange(1, _NOISE_PERIOD + 1) * 2654435761 + salt * 40503
    period = ((mixed ^ (mixed >> 15)) >> 7) % below
    return np.resize(np.roll(period, -(indices[0] % _NOISE_PERIOD)), len(indices))


def _values(rank: int, ranks: int, indices: np.ndarray, operation: str) -> np.ndarray:
    """One rank's numbers at the given places of the whole array, as int64."""
    turn = (indices + rank) % ranks
    if operation in ("min", "max"):
        # From place to place another of the few is the smallest, or the largest.
        neutral = 101 if operation == "min" else 0
        return np.where(turn < _CONTRIBUTORS, _noise(indices, rank, 101), neutral)
    if operation == "prod":
        return np.where(turn < 6, 1 + _noise(indices, rank, 2), 1)
    return np.where(turn < _CONTRIBUTORS, 1 + _noise(indices, rank, 13), 0)


def _tagged(rank: int, indices: np.ndarray) -> np.ndarray:
    """For collectives that only move data: numbers that name rank and place."""
    return _noise(indices, rank, 101)


_REDUCING = ("all_reduce", "reduce_scatter", "reduce", "barrier")
_SAME_EVERYWHERE = ("all_reduce", "barrier", "broadcast", "all_gather")
_OF_PARTS = ("all_gather", "gather")  # whose input is one part of the array
_COMBINE = {"prod": np.multiply, "min": np.minimum, "max": np.maximum}  # others: np.add


def _average(total: np.ndarray, ranks: int, type_name: str) -> np.ndarray:
    if type_name == "bfloat16" or np.issubdtype(TYPES[type_name], np.floating):
        return total / ranks
    return _to_type(total // ranks, type_name)


@dataclass(frozen=True)
class CallData:
    """What the ranks of one call bring, and what they must find.

    Attributes:
        collective: its name, such as "all_reduce".
        ranks: the number of ranks.
        elements: of the whole array.
        type_name: of the elements, such as "float32".
        operation: of reductions: "sum", "prod", "min", "max" or "avg".
        root: of broadcast, reduce, gather and scatter.
        pattern: of send_recv, the rank that each rank sends to.
    """

    collective: str
    ranks: int
    elements: int
    type_name: str = "float32"
    operation: str = "sum"
    root: int = 0
    pattern: tuple[int, ...] = ()

    @property
    def part_elements(self) -> int:
        """The elements of one rank's part of the array."""
        return self.elements // self.ranks

    @property
    def is_same_everywhere(self) -> bool:
        """Whether all ranks must find the same."""
        return self.collective in _SAME_EVERYWHERE

    def input_of(self, rank: int) -> np.ndarray:
        """What a rank brings: the whole array, or its part for all_gather and gather; 1-D."""
        count = self.part_elements if self.collective in _OF_PARTS else self.elements
        places = self._places(0, count)
        if self.collective in _REDUCING:
            values = _values(rank, self.ranks, places, self.operation)
        else:
            values = _tagged(rank, places)
        return np.resize(_to_type(values, self.type_name), count)

    def expected_of(self, rank: int) -> np.ndarray | None:
        """What a rank must find in its output, 1-D; None where it is promised nothing.

        Of all_to_all_v these are whole parts; `promised` says how much of them is sent.

        Raises:
            ValueError: no reference is known for the collective.
        """
        if self.collective in ("reduce", "gather") and rank != self.root:
            return None
        if self.collective == "reduce_scatter":
            return self._reduced(rank * self.part_elements, self.part_elements)
        if self.collective in _REDUCING:
            return self._reduced(0, self.elements)
        if self.collective == "broadcast":
            return self._brought(self.root, 0, self.elements)
        if self.collective == "scatter":
            return self._brought(self.root, rank * self.part_elements, self.part_elements)
        if self.collective == "send_recv":
            return self._brought(self.pattern.index(rank), 0, self.elements)
        if self.collective in ("all_gather", "gather", "all_to_all", "all_to_all_v"):
            start = rank * self.part_elements if self.collective not in _OF_PARTS else 0
            parts = [self._brought(r, start, self.part_elements) for r in range(self.ranks)]
            return np.concatenate(parts)
        raise ValueError(f"collective is '{self.collective}'; no reference is known for it")

    def _places(self, start: int, count: int) -> np.ndarray:
        return np.arange(start, start + min(count, _period(self.ranks)), dtype=np.int64)

    def _brought(self, rank: int, start: int, count: int) -> np.ndarray:
        values = _tagged(rank, self._places(start, count))
        return np.resize(_to_type(values, self.type_name), count)

    def _reduced(self, start: int, count: int) -> np.ndarray:
        places = self._places(start, count)
        combine = _COMBINE.get(self.operation, np.add)
        total = _values(0, self.ranks, places, self.operation)
        for rank in range(1, self.ranks):
            total = combine(total, _values(rank, self.ranks, places, self.operation))
        # A barrier's token is not divided.
        if self.operation == "avg" and self.collective != "barrier":
            return np.resize(_average(total, self.ranks, self.type_name), count)
        return np.resize(_to_type(total, self.type_name), count)


def promised(
    rank: int, ranks: int, elements: int, chunks: int, pattern: Sequence[int]
) -> np.ndarray:
    """Which elements of its output all_to_all_v promises to a rank, bool, shape (elements,).

    Args:
        rank: whose output.
        ranks: how many take part.
        elements: of the whole array.
        chunks: into which a schedule cuts it.
        pattern: at s * ranks + d, the chunks that rank s sends to rank d.
    """
    part = elements // ranks
    chunk = -(-part // (chunks // ranks))
    sent = [min(pattern[sender * ranks + rank] * chunk, part) for sender in range(ranks)]
    return np.concatenate([np.arange(part) < count for count in sent])


def count_wrong(output: np.ndarray, expected: np.ndarray | None, type_name: str) -> int:
    """Elements that differ. Averages may differ by the rounding of their division."""
    if expected is None:
        return 0
    if output.dtype == expected.dtype:
        return int(np.count_nonzero(output != expected))
    step = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-22, "float64": 2.0**-51}
    found = _from_type(output, type_name).astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinities
        is_right = np.abs(found - expected) <= np.abs(expected) * step[type_name]  # never for NaN
    return int(np.count_nonzero(~is_right))
