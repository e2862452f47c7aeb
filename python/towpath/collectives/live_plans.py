# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Cached plans for a Communicator's calls that run by a schedule."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from towpath import _core
from towpath.schedules.schedule_source import ScheduleSource

if TYPE_CHECKING:
    from collections.abc import Callable

    Kept = tuple[_core.Schedule, _core.Plan, _core.Executor]

_PLANS_MAX = 32


@dataclass(frozen=True)
class Request:
    """A call of a collective, without its arrays."""

    collective: str
    operation: str
    root: int
    algorithm: str | None
    dtype: str | None


class LivePlans:
    """The most recent plans of a rank, with their executors. All ranks request the same plans in
    order.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Request, int, str], Kept] = OrderedDict()

    def clear(self) -> None:
        self._kept.clear()

    def plan(
        self,
        transport: _core.LiveTransport,
        request: Request,
        elements: int,
        element_type: str,
        synchronize: Callable[[str], None],
    ) -> Kept:
        """The plan of a call and its executor, created at the first call of this kind.

        `synchronize` is a barrier of ranks that make the same statement. Ranks that map each
        other's memory pass it in each call. For other ranks it costs a round trip, so they pass it
        only in the first call of each kind, and compare later calls if one of them has to wait.
        """
        key = (request, elements, element_type)
        kept = self._kept.pop(key, None)
        if kept is None:
            schedule = ScheduleSource(
                None, request.collective, request.algorithm, transport.ranks, root=request.root
            ).schedule()
            plan = _core.Plan(schedule, elements, element_type, request.operation)
            synchronize(plan.statement)
            if len(self._kept) == _PLANS_MAX:
                synchronize("the end of a plan")  # a peer may still write to its memory
                self._kept.popitem(last=False)
            kept = (schedule, plan, _core.Executor(transport, plan))
        elif transport.reaches_all:
            synchronize(kept[1].statement)
        self._kept[key] = kept
        return kept
