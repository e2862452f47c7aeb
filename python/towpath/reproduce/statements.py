# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The index of statements: a table per document in `statements/`, a line per statement."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from towpath.errors import ConfigError

FOLDER = Path(__file__).parent / "statements"

TITLES = {
    "000": "Basic Ethernet Multichip",
    "001": "Virtual Channels",
    "002": "PCIe Bandwidth Benchmarking",
    "003": "Writing my own communications library, part 1",
    "004": "Low-latency user-level communication for RISC-V clusters",
}
_QUANTITY = re.compile(r"([-+]?[0-9][0-9,]*\.?[0-9]*)\s*(.*)")


@dataclass(frozen=True)
class Statement:
    """A statement of a document.

    Attributes:
        document: number of the document, a key of `TITLES`.
        row: number of the statement in its document, from 1.
        section: section of the document.
        says: content of the statement in the project's words, with its condition.
        theirs: value with its unit, or empty if the statement has no number.
        run: name of the run that answers it, or empty if no run can.
        value: key of the answer in the results of the run.
        rule: rule of the verdict, as in `rules.py`.
        otherwise: reason if the rule does not hold: "listed: PHRASE" with a phrase of
            DEVIATIONS.md, "refuted: REASON" or "untestable: REASON". Empty if there is none.
    """

    document: str
    row: int
    section: str
    says: str
    theirs: str
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
    def number(self) -> float | None:
        """The number in `theirs`."""
        match = _QUANTITY.match(self.theirs)
        return float(match[1].replace(",", "")) if match else None

    @property
    def unit(self) -> str:
        """The unit in `theirs`."""
        match = _QUANTITY.match(self.theirs)
        return match[2] if match else ""


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
                **{
                    name: line[name]
                    for name in ("section", "says", "theirs", "run", "value", "rule", "otherwise")
                },
            )
            for line in csv.DictReader(file)
        ]
