# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What a kind of measured table is to `towpath validate`, and how its fields are read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from towpath.errors import quoted

Row = dict[str, str]
Half = Literal["fit", "check"]


class CannotSimulate(ValueError):
    """Why a row has no prediction, in one sentence."""


@dataclass(frozen=True)
class Context:
    """What a prediction may need besides its row.

    Attributes:
        machine: simulate on this one instead of what the row says.
        folder: the folder of the table.
    """

    machine: str | None = None
    folder: Path = Path()


@dataclass(frozen=True)
class Prediction:
    """The predicted figure, and further columns for the row."""

    value: float
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TableKind:
    """One kind of table: how it is recognised and what answers its rows.

    Attributes:
        name: for people.
        columns: a table that has them is of this kind.
        unit: unit of predicted and measured values.
        identity: the columns that decide which half of the table a row belongs to; without those
            along which figures hardly change, so that a curve is in one half as a whole.
        group: a row's group, for statistics.
        measured: a row's measured figure.
        predict: the simulation that answers a row.
        label: text before a row's values.
        check_machine: raises ConfigError for a machine that `predict` cannot take.
        is_slow: whether its rows are worth a process per processor.
    """

    name: str
    columns: frozenset[str]
    unit: str
    identity: tuple[str, ...]
    group: Callable[[Row], str]
    measured: Callable[[Row], float]
    predict: Callable[[Row, Context], Prediction]
    label: Callable[[Row], str]
    check_machine: Callable[[str], object]
    is_slow: bool = False


def half_of(kind: TableKind, row: Row) -> Half:
    """Which half of its table a row belongs to: the same in every table, whatever else is in it.

    "fit" where the first byte of SHA-256 over the identifying fields, each on a line, is even.
    """
    text = "".join(f"{row[column].strip()}\n" for column in kind.identity)
    return "check" if hashlib.sha256(text.encode()).digest()[0] % 2 else "fit"


_WHOLE = re.compile(r"[0-9]{1,15}")
_REAL = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?([eE][-+]?[0-9]{1,2})?")


def whole(row: Row, column: str, most: int, least: int = 1) -> int:
    """A field that holds a whole number.

    Raises:
        CannotSimulate: it does not.
    """
    text = row[column].strip()
    if _WHOLE.fullmatch(text) is None or not least <= int(text) <= most:
        allowed = f"whole numbers {least} to {most}"
        raise CannotSimulate(f"{column} is {quoted(text)}; allowed are {allowed}")
    return int(text)


def real(row: Row, column: str) -> float:
    """A field that holds a number above 0.

    Raises:
        CannotSimulate: it does not.
    """
    text = row[column].strip()
    if _REAL.fullmatch(text) is None or float(text) <= 0:
        raise CannotSimulate(f"{column} is {quoted(text)}; it must be a number above 0")
    return float(text)


def one_of(row: Row, column: str, allowed: tuple[str, ...]) -> str:
    """A field that holds one of a few words.

    Raises:
        CannotSimulate: it does not.
    """
    text = row[column].strip()
    if text not in allowed:
        raise CannotSimulate(f"{column} is {quoted(text)}; allowed are {', '.join(allowed)}")
    return text
