# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The index of statements: a table per document in `statements/`, a line per statement."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from towpath.errors import ConfigError

FOLDER = Path(__file__).parent / "statements"

TITLES = {
    "000": "Basic Ethernet Multichip",
    "001": "Virtual Channels",
    "002": "PCIe Bandwidth Benchmarking",
    "003": "Writing my own communications library, part 1",
    "004": "Low-latency user-level communication for RISC-V clusters",
}
_QUANTITY = re.compile(r"([-+]?[0-9][0-9,]*\.?[0-9]*)( to [0-9.]+)?\s*(.*)")
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_OTHERWISE = re.compile(
    rf"(?P<kind>listed|refuted) (?:no|(?P<least>{_NUMBER}) to (?P<most>{_NUMBER})): (?P<listed>.+)"
    r"|untestable: (?P<untestable>.+)|repeats (?P<repeats>[0-9]{3}#[0-9]+)"
)


@dataclass(frozen=True)
class Otherwise:
    """The expected outcome of a row whose rule is not expected to hold.

    Attributes:
        kind: "listed", "refuted", "untestable", "repeats", or empty if the rule must hold.
        text: phrase of DEVIATIONS.md, reason, or name of the repeated row.
        band: least and largest expected value. None: the property must be absent.
    """

    kind: str = ""
    text: str = ""
    band: tuple[float, float] | None = None

    def expects(self, ours: Any) -> bool:
        """True if a value that breaks the rule is the expected one."""
        if self.band is None or isinstance(ours, bool):
            return self.band is None and ours is False
        return bool(self.band[0] <= ours <= self.band[1])


@dataclass(frozen=True)
class Statement:
    """A statement of a document.

    Attributes:
        document: number of the document, a key of `TITLES`.
        row: number of the statement in its document, from 1.
        section: section of the document.
        says: content of the statement in the project's words.
        theirs: value with its unit, or empty if the statement has no number.
        condition: size, pattern, chip or number of chips at which the run is measured.
        run: name of the run that answers it, or empty if no run can.
        value: key of the answer in the results of the run.
        rule: rule of the verdict, as in `rules.py`.
        otherwise: expected outcome if the rule does not hold: "listed LEAST to MOST: PHRASE" with
            a phrase of DEVIATIONS.md, "refuted LEAST to MOST: REASON", the same with "no" for a
            property, "untestable: REASON", or "repeats ROW" if the row is about the value of
            another row. Empty if the rule must hold.
    """

    document: str
    row: int
    section: str
    says: str
    theirs: str
    condition: str
    run: str
    value: str
    rule: str
    otherwise: str

    @property
    def name(self) -> str:
        """The document and the row: "000#41"."""
        return f"{self.document}#{self.row}"

    @property
    def command(self) -> str:
        """The command that repeats only this statement."""
        return f"towpath reproduce {self.document} {self.row}"

    @property
    def expected(self) -> Otherwise:
        """The parts of `otherwise`.

        Raises:
            ValueError: it has none of the forms.
        """
        if not self.otherwise:
            return Otherwise()
        match = _OTHERWISE.fullmatch(self.otherwise)
        if match is None:
            raise ValueError(f"row {self.name} ends in an unknown form: {self.otherwise}")
        if match["untestable"]:
            return Otherwise("untestable", match["untestable"])
        if match["repeats"]:
            return Otherwise("repeats", match["repeats"])
        band = None if match["least"] is None else (float(match["least"]), float(match["most"]))
        return Otherwise(match["kind"], match["listed"], band)

    @property
    def number(self) -> float | None:
        """The number in `theirs`. None if it has none, or a range."""
        match = _QUANTITY.match(self.theirs)
        return float(match[1].replace(",", "")) if match and not match[2] else None

    @property
    def unit(self) -> str:
        """The unit in `theirs`."""
        match = _QUANTITY.match(self.theirs)
        return match[3] if match else ""


def statements(document: str) -> list[Statement]:
    """The statements of a document in its order.

    Args:
        document: a key of `TITLES`.

    Raises:
        ConfigError: there is no such document.
    """
    if document not in TITLES:
        raise ConfigError(f"there is no document '{document}'; choose one of {', '.join(TITLES)}")
    with open(FOLDER / f"{document}.csv", encoding="utf-8", newline="") as file:
        return [
            Statement(
                document,
                int(line["row"]),
                **{name: value for name, value in line.items() if name != "row"},
            )
            for line in csv.DictReader(file)
        ]
