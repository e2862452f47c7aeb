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
    "true": "the property must be present",
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
        repeats: name of the row whose value this is. Empty if the row has its own.
    """

    statement: Statement
    verdict: str
    ours: Any = None
    seen: str = ""
    difference: float | None = None
    reason: str = ""
    repeats: str = ""

    @property
    def is_good(self) -> bool:
        """True if the run shows what the document says."""
        return self.verdict in (SAME, WITHIN)

    @property
    def words(self) -> str:
        """The verdict with its difference."""
        is_tolerance = self.statement.rule.startswith("within")
        if self.verdict == WITHIN and self.difference is not None and is_tolerance:
            return f"within {max(abs(self.difference), 0.005):.1%}"
        return self.verdict


def judge(statement: Statement, result: dict[str, Any] | None) -> Verdict:
    """The verdict on a statement that repeats no other.

    A row that is listed or refuted has a band of expected values. A value outside of the band is
    off, and so is a value that now meets the rule.

    Args:
        statement: the statement.
        result: the results of its run. None if it has no run. The key "cannot" holds the reason for
            which the run is not possible here, and "failed" the error that ended it.
    """
    expected = statement.expected
    if result is None:
        return Verdict(statement, UNTESTABLE, reason=expected.text)
    if "failed" in result:
        return Verdict(statement, OFF, reason=result["failed"])
    if "cannot" in result:
        return Verdict(statement, UNTESTABLE, reason=result["cannot"])
    ours, seen = _value(result.get(statement.value))
    if ours is None:
        return Verdict(statement, OFF, reason=f"the run has no value '{statement.value}'")
    difference = _difference(statement, ours)

    def verdict(kind: str, reason: str = "") -> Verdict:
        return Verdict(statement, kind, ours, seen, difference, reason)

    if holds(statement.rule, ours, statement.number):
        if expected.kind:
            return verdict(OFF, f"the rule holds now; the row is still {expected.kind}")
        return verdict(SAME if _is_same(statement.rule, difference) else WITHIN)
    if not expected.kind:
        return verdict(OFF, f"the rule is: {statement.rule}")
    if not expected.expects(ours):
        return verdict(OFF, f"the value has left the band of the row: {statement.otherwise}")
    if expected.kind == "refuted":
        return verdict(REFUTED, expected.text)
    if expected.text not in _deviations():
        return verdict(OFF, f"DEVIATIONS.md does not contain '{expected.text}'")
    return verdict(LISTED, expected.text)


def _is_same(rule: str, difference: float | None) -> bool:
    """True for a property, and for a number that rounds to the document's. A bound is neither."""
    if rule == "true":
        return True
    return rule.startswith("within") and (difference is None or abs(difference) <= _EQUAL)


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
