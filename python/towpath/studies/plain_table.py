# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of texts, for terminals and pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlainTable:
    """Headings, lines with as many texts, and a title where nothing else gives one."""

    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    title: str = ""

    @property
    def rights(self) -> list[bool]:
        """By column, whether it stands to the right, as figures do; words stand to the left."""
        columns = zip(self.headings, *self.lines, strict=True)
        return [all(map(_is_figure, column[1:])) for column in columns]

    def text(self) -> Iterator[str]:
        """For a terminal."""
        if self.title:
            yield f"# {self.title}"
        columns = list(zip(self.headings, *self.lines, strict=True))
        widths = [max(map(len, column)) for column in columns]
        rights = self.rights
        first = "  " if self.title else "# "
        for mark, line in [(first, self.headings)] + [("  ", line) for line in self.lines]:
            cells = (
                cell.rjust(width) if is_right else cell.ljust(width)
                for cell, width, is_right in zip(line, widths, rights, strict=True)
            )
            yield (mark + "  ".join(cells)).rstrip()


def tables_text(tables: Iterable[PlainTable]) -> str:
    """All of them, for a terminal."""
    return "\n\n".join("\n".join(table.text()) for table in tables)


def _is_figure(cell: str) -> bool:
    """A number, with a unit perhaps, or none."""
    begins = not cell or cell == "-" or cell.lstrip("+-")[:1].isdecimal()
    return begins and cell.count(" ") < 2
