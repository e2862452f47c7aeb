# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A collective call, simulated or live: its plan at each size, and the data of its ranks."""

from __future__ import annotations

from dataclasses import dataclass, field

from towpath import _core
from towpath.collectives.element_types import type_bytes


@dataclass(frozen=True)
class Call:
    """One collective call, without its size.

    Attributes:
        schedule: the schedule of the call.
        type_name: type of the elements, such as "float32".
        operation: operation of reductions: "sum", "prod", "min", "max" or "avg".
    """

    schedule: _core.Schedule
    type_name: str = "float32"
    operation: str = "sum"
    # The first plan, if there is one; others share with it what does not depend on the size.
    _planned: list[_core.Plan] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def collective(self) -> str:
        """The collective's name, such as "all_reduce"."""
        return _core.name_of(self.schedule.collective)

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.schedule.rank_count

    def elements(self, size_bytes: int) -> int:
        """Number of elements of an array of about that size: rounded down to a number that the
        schedule can divide, and at least one.
        """
        granularity = _core.element_granularity(self.schedule)
        elements = size_bytes // type_bytes(self.type_name)
        return max(elements // granularity, 1) * granularity

    def plan(self, size_bytes: int, slots_factor: int = 1) -> _core.Plan:
        """The schedule at about that size, with `elements(size_bytes)` elements.

        Args:
            size_bytes: size of the whole array.
            slots_factor: factor for the number of slots of each FIFO.
        """
        elements = self.elements(size_bytes)
        if not self._planned:
            self._planned.append(
                _core.Plan(self.schedule, elements, self.type_name, self.operation)
            )
        return self._planned[0].with_elements(elements, slots_factor)

    def data(self, elements: int) -> _core.CallData:
        """Input and expected output of all ranks for a whole array of this many elements."""
        return _core.CallData(self.schedule, elements, self.type_name, self.operation)
