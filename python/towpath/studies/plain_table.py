# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of texts, as data; pages/plain_text.py renders them for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlainTable:
    """Headings and lines of texts.

    Attributes:
        headings: one per column.
        lines: as many texts each.
        title: "" where something else gives one.
    """

    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    title: str = ""

    @property
    def are_numeric(self) -> list[bool]:
        """Whether each column holds numbers, with units perhaps, and no words."""
        columns = zip(self.headings, *self.lines, strict=True)
        return [all(map(_is_number, column[1:])) for column in columns]


def _is_number(cell: str) -> bool:
    begins = not cell or cell == "-" or cell.lstrip("+-")[:1].isdecimal()
    return begins and cell.count(" ") < 2
