# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A collective call, simulated or live: its plan at each size, and the buffers of each rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from towpath import _core
from towpath.collectives.data import CallData, count_wrong, promised, type_bytes


@dataclass(frozen=True)
class Call:
    """One collective call as the user asks for it, without its size.

    Attributes:
        schedule: who sends what to whom.
        type_name: of the elements, such as "float32".
        operation: of reductions: "sum", "prod", "min", "max" or "avg".
    """

    schedule: _core.Schedule
    type_name: str = "float32"
    operation: str = "sum"

    @property
    def collective(self) -> str:
        """The collective's name, such as "all_reduce"."""
        return _core.name_of(self.schedule.collective)

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.schedule.rank_count

    def elements(self, size_bytes: int) -> int:
        """The elements of an array of about that size: rounded down to what the schedule can cut,
        but never to nothing."""
        granularity = _core.element_granularity(self.schedule)
        elements = size_bytes // type_bytes(self.type_name)
        return max(elements // granularity, 1) * granularity

    def plan(self, size_bytes: int, slots_factor: int = 1) -> _core.Plan:
        """The schedule at about that size, with `elements(size_bytes)` elements.

        Args:
            size_bytes: of the whole array.
            slots_factor: multiplies the slots of each FIFO.
        """
        return _core.Plan(
            self.schedule, self.elements(size_bytes), self.type_name, self.operation, slots_factor
        )

    def data(self, elements: int) -> CallData:
        """What ranks bring and must find when the whole array has this many elements."""
        return CallData(
            self.collective, self.ranks, elements, self.type_name, self.operation,
            self.schedule.root, tuple(self.schedule.pattern),
        )  # fmt: skip


def buffers_of(
    call: Call, rank: int, elements: int, in_place: bool
) -> tuple[np.ndarray, np.ndarray]:
    """A rank's input and output, 1-D arrays of the call's type.

    Args:
        call: the call.
        rank: whose buffers.
        elements: of the whole array, as `Call.elements` gives it.
        in_place: whether input and output share memory, one as a part of the other.

    Returns:
        The input, filled with the rank's test data, and the output, filled with what is neutral
        to no operation, so that a result on top of it is wrong.
    """
    source = call.data(elements).input_of(rank)
    part = elements // call.ranks
    if not in_place:
        size = part if call.collective in ("reduce_scatter", "scatter") else elements
        return source, _uninitialised(size, source.dtype)
    if call.collective in ("all_gather", "gather"):
        output = _uninitialised(elements, source.dtype)
        own = output[rank * part : (rank + 1) * part]
        own[:] = source
        return own, output
    if call.collective in ("reduce_scatter", "scatter"):
        return source, source[rank * part : (rank + 1) * part]
    return source, source


def _uninitialised(elements: int, type_: np.dtype[Any]) -> np.ndarray:
    return np.full(elements * type_.itemsize, 0x5A, np.uint8).view(type_)


def wrong_elements(call: Call, rank: int, elements: int, output: np.ndarray) -> int:
    """How many elements of a rank's output differ from what numpy computes.

    Args:
        call: the call.
        rank: whose output.
        elements: of the whole array.
        output: as the call left it, 1-D, of the call's type.
    """
    expected = call.data(elements).expected_of(rank)
    if call.collective == "all_to_all_v" and expected is not None:
        schedule = call.schedule
        is_sent = promised(rank, call.ranks, elements, schedule.chunks, schedule.pattern)
        output, expected = output[is_sent], expected[is_sent]
    return count_wrong(output, expected, call.type_name)
