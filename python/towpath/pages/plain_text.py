# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of texts for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from towpath.studies.plain_table import PlainTable


def table_text(table: PlainTable) -> Iterator[str]:
    """The lines of a table: numbers to the right, words to the left."""
    if table.title:
        yield f"# {table.title}"
    columns = list(zip(table.headings, *table.lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    are_numeric = table.are_numeric
    first = "  " if table.title else "# "
    for mark, line in [(first, table.headings)] + [("  ", line) for line in table.lines]:
        cells = (
            cell.rjust(width) if is_numeric else cell.ljust(width)
            for cell, width, is_numeric in zip(line, widths, are_numeric, strict=True)
        )
        yield (mark + "  ".join(cells)).rstrip()


def tables_text(tables: Iterable[PlainTable]) -> str:
    """Several tables, an empty line between them."""
    return "\n\n".join("\n".join(table_text(table)) for table in tables)
