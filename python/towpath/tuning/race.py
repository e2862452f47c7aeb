# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A race of candidates at a size: the longest simulated time that still matters."""

from __future__ import annotations

import math
from collections.abc import Callable

from towpath.schedules.schedule_source import ScheduleSource

# A simulation that is given up has gone beyond its limit by more than a float's last digits.
_BEYOND = 1 + 1e-9


class Race:
    """A race of candidates at a size. A candidate that can no longer matter is dropped.

    The order of candidates determines which ones are dropped, but not the winner.
    """

    def __init__(
        self,
        limit_us: Callable[[ScheduleSource, float], float],
        score_us: Callable[[ScheduleSource, float], float] = lambda _, time_us: time_us,
    ) -> None:
        """Starts the race.

        Args:
            limit_us: the longest time of a candidate that still matters, given the lowest score so
                far; it never falls when that score rises.
            score_us: the score of a candidate's time.
        """
        self._limit_us = limit_us
        self._score_us = score_us
        self._least_us = math.inf

    def limit_us(self, source: ScheduleSource) -> float:
        """The longest time that still matters."""
        return self._limit_us(source, self._least_us) * _BEYOND

    def note(self, source: ScheduleSource, time_us: float) -> None:
        """Records a candidate's time."""
        self._least_us = min(self._least_us, self._score_us(source, time_us))
