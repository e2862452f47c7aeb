# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A kind of measured table in `towpath validate`, with the rules for reading its fields."""

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
    """The reason for which a row has no prediction, in one sentence."""


@dataclass(frozen=True)
class Context:
    """Inputs of a prediction in addition to its row.

    Attributes:
        machine: the machine to simulate instead of the row's.
        folder: the folder of the table.
    """

    machine: str | None = None
    folder: Path = Path()


@dataclass(frozen=True)
class Prediction:
    """The predicted value, and further columns for the row."""

    value: float
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TableKind:
    """One kind of table: how it is recognized, and the simulation of its rows.

    Attributes:
        name: name for people.
        columns: a table with these columns is of this kind.
        unit: unit of predicted and measured values.
        identity: the columns that determine the half of the table of a row; without the columns
            along which values hardly change, so that a whole curve is in one half.
        group: group of a row, for statistics.
        measured: measured value of a row.
        predict: simulation of a row.
        label: text before a row's values.
        check_machine: raises ConfigError for a machine that `predict` does not support.
        is_slow: True if its rows justify one process per processor.
        parts: a row for each measured value of a row.
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
    parts: Callable[[Row], list[Row]] = lambda row: [row]


def half_of(kind: TableKind, row: Row) -> Half:
    """The half of its table to which a row belongs. It does not depend on the rest of the table.

    "fit" if the first byte of SHA-256 over the identifying fields, each on a line, is even.
    """
    text = "".join(f"{row[column].strip()}\n" for column in kind.identity)
    return "check" if hashlib.sha256(text.encode()).digest()[0] % 2 else "fit"


_WHOLE = re.compile(r"[0-9]{1,15}")
_REAL = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?([eE][-+]?[0-9]{1,2})?")


def whole(row: Row, column: str, most: int, least: int = 1) -> int:
    """A field with a whole number.

    Raises:
        CannotSimulate: the field has another value.
    """
    text = row[column].strip()
    if _WHOLE.fullmatch(text) is None or not least <= int(text) <= most:
        allowed = f"a whole number from {least} to {most}"
        raise CannotSimulate(f"{column} is {quoted(text)}; it must be {allowed}")
    return int(text)


def real(row: Row, column: str) -> float:
    """A field with a number above 0.

    Raises:
        CannotSimulate: the field has another value.
    """
    text = row[column].strip()
    if _REAL.fullmatch(text) is None or float(text) <= 0:
        raise CannotSimulate(f"{column} is {quoted(text)}; it must be a number above 0")
    return float(text)


def one_of(row: Row, column: str, allowed: tuple[str, ...]) -> str:
    """A field with one of several allowed words.

    Raises:
        CannotSimulate: the field has another value.
    """
    text = row[column].strip()
    if text not in allowed:
        raise CannotSimulate(f"{column} is {quoted(text)}; choose one of {', '.join(allowed)}")
    return text
