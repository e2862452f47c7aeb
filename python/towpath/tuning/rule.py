# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The rule by which `towpath tune` answers every question.

Candidates are ordered from the least demanding for a program to the most demanding: the smallest
packet, the fewest bytes, the fewest channels, the interface's default. The first one that reaches
95 % of the best rate is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

SHARE = 0.95

RULE = (
    f"Of the candidates, in order from the least to the most, the first that reaches {SHARE:.0%} "
    "of the best rate."
)


def reaches(rates: Sequence[float]) -> list[bool]:
    """The candidates that are close enough to the best.

    >>> reaches([1.0, 9.6, 10.0, 9.4])
    [False, True, True, False]
    """
    best = max(rates)
    return [rate >= SHARE * best for rate in rates]


def choose(rates: Sequence[float]) -> int:
    """The index of the candidate that the rule chooses; rates are in the order of the candidates.

    Raises:
        ValueError: there are no candidates.

    >>> choose([1.0, 9.6, 10.0, 9.4])
    1
    """
    if not rates:
        raise ValueError("there are no candidates to choose from")
    return reaches(rates).index(True)
