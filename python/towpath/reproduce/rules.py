# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The rules of verdicts: from a statement and the value of a run to one of six verdicts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from towpath.reproduce.statements import Statement
from towpath.validation.shipped import folder

SAME = "same"
WITHIN = "within"
LISTED = "off, in DEVIATIONS"
REFUTED = "refuted"
UNTESTABLE = "cannot be tested"
OFF = "off"
VERDICTS = (SAME, WITHIN, LISTED, REFUTED, UNTESTABLE, OFF)
# Closer values round to the number that the document prints.
_EQUAL = 0.005

RULES = {
    "true": "the run must find the property",
    "within X%": "the value may differ from the document's number by X %",
    "at least X": "the value must be X or more",
    "at most X": "the value must be X or less",
    "from X to Y": "the value must be in this range",
}


@dataclass(frozen=True)
class Verdict:
    """The verdict on a statement.

    Attributes:
        statement: the statement.
        verdict: one of `VERDICTS`.
        ours: the value of the run. None if there is none.
        seen: text of the run about the value.
        difference: relative difference from the document's number. None if there is none.
        reason: reason for a verdict other than "same" and "within".
    """

    statement: Statement
    verdict: str
    ours: Any = None
    seen: str = ""
    difference: float | None = None
    reason: str = ""

    @property
    def is_good(self) -> bool:
        """True if the run shows what the document says."""
        return self.verdict in (SAME, WITHIN)

    @property
    def words(self) -> str:
        """The verdict with its difference or reason."""
        if self.verdict == WITHIN and self.difference is not None:
            return f"within {max(abs(self.difference), 0.005):.1%}"
        return self.verdict


def judge(statement: Statement, result: dict[str, Any] | None) -> Verdict:
    """The verdict on a statement.

    Args:
        statement: the statement.
        result: the results of its run. None if it has no run. The key "cannot" holds the reason for
            which the run is not possible here, and "failed" the error that ended it.
    """
    if result is None or "cannot" in result:
        reason = result["cannot"] if result else statement.otherwise.partition(": ")[2]
        return Verdict(statement, UNTESTABLE, reason=reason)
    if "failed" in result:
        return Verdict(statement, OFF, reason=result["failed"])
    if statement.value not in result:
        return Verdict(statement, OFF, reason=f"the run has no value '{statement.value}'")
    ours, seen = _value(result[statement.value])
    if ours is None:
        return Verdict(statement, UNTESTABLE, seen=seen, reason=seen)
    difference = _difference(statement, ours)
    if holds(statement.rule, ours, statement.number):
        is_close = difference is None or abs(difference) <= _EQUAL
        is_bound = not statement.rule.startswith("within")
        return Verdict(statement, SAME if is_close or is_bound else WITHIN, ours, seen, difference)
    kind, _, reason = statement.otherwise.partition(": ")
    if kind == "listed":
        if reason not in _deviations():
            return Verdict(
                statement, OFF, ours, seen, difference, f"DEVIATIONS.md does not contain '{reason}'"
            )
        return Verdict(statement, LISTED, ours, seen, difference, reason)
    if kind == "refuted":
        return Verdict(statement, REFUTED, ours, seen, difference, reason)
    return Verdict(statement, OFF, ours, seen, difference, f"the rule is: {statement.rule}")


def _value(found: Any) -> tuple[Any, str]:
    """The value of a run and its text. A run gives either the value or both."""
    if isinstance(found, (list, tuple)):
        value, seen = found
        return value, seen
    return found, ""


def _difference(statement: Statement, ours: Any) -> float | None:
    theirs = statement.number
    if theirs is None or theirs == 0 or isinstance(ours, (bool, str)):
        return None
    return ours / theirs - 1


def holds(rule: str, ours: Any, theirs: float | None = None) -> bool:
    """True if a value meets a rule.

    >>> holds("within 5%", 104, 100), holds("within 5%", 106, 100), holds("from 530 to 620", 537)
    (True, False, True)

    Args:
        rule: one of the forms of `RULES`.
        ours: the value of the run.
        theirs: the document's number.

    Raises:
        ValueError: there is no such rule, or it needs a number that the document does not have.
    """
    if rule == "true":
        return ours is True
    if isinstance(ours, bool):
        raise ValueError(f"the rule '{rule}' needs a number")
    if match := re.fullmatch(r"within ([0-9.]+)%", rule):
        if theirs is None:
            raise ValueError(f"the rule '{rule}' needs the document's number")
        return bool(abs(ours / theirs - 1) <= float(match[1]) / 100)
    if match := re.fullmatch(r"at (least|most) (-?[0-9.]+)", rule):
        bound = float(match[2])
        return bool(ours >= bound if match[1] == "least" else ours <= bound)
    if match := re.fullmatch(r"from (-?[0-9.]+) to (-?[0-9.]+)", rule):
        return bool(float(match[1]) <= ours <= float(match[2]))
    raise ValueError(f"there is no rule '{rule}'")


@lru_cache(maxsize=1)
def _deviations() -> str:
    text = (folder() / "DEVIATIONS.md").read_text(encoding="utf-8")
    return " ".join(text.split())
