# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Files with tables of measurements: CSV, after comments with the source of the values.

A comment at the top is `# key: text`, continued by lines that begin with `#` and two or more
spaces. A column named `VALUE@NAME=TEXT` represents several rows: each of its cells is a row whose
column VALUE contains the cell and whose column NAME contains TEXT. An empty cell is not a row.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from pathlib import Path

from towpath.errors import ConfigError, quoted
from towpath.specs.input_file import read_text
from towpath.validation.table_kind import Row

_FACT = re.compile(r"# (?P<key>[a-z]+): (?P<text>\S.*)")
_CONTINUED = re.compile(r"# {2,}(?P<text>\S.*)")
_SPREAD = re.compile(r"(?P<value>\w+)@(?P<name>\w+)=(?P<text>.+)")


@dataclass(frozen=True)
class TableFile:
    """Content of a file.

    Attributes:
        path: the file.
        facts: its comments by key: title, source, measured, tolerance.
        columns: names of the columns that every row has.
        rows: the rows, by column.
        header_line: the line of the header.
    """

    path: Path
    facts: dict[str, str] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    rows: list[Row] = field(default_factory=list)
    header_line: int = 1


def read_table(path: Path) -> TableFile:
    """Reads a table.

    Raises:
        ConfigError: the file cannot be read, or is not CSV with the same number of fields in each
        row as in its header.
    """
    lines = read_text(path).splitlines(keepends=True)
    comments = next((n for n, line in enumerate(lines) if line[0] != "#"), len(lines))
    facts = _facts(lines[:comments])
    reader = csv.DictReader(io.StringIO("".join(lines[comments:]), newline=""), strict=True)
    rows: list[Row] = []
    try:
        columns = list(reader.fieldnames or [])
        spread = {column: match for column in columns if (match := _SPREAD.fullmatch(column))}
        for row in reader:
            if None in row or None in row.values():
                raise ConfigError(
                    f"a row does not have the {len(columns)} fields of the header",
                    file=str(path), line=comments + reader.line_num,
                )  # fmt: skip
            rows += _spread(row, spread)
    except csv.Error as error:
        line = comments + max(reader.line_num, 1)
        raise ConfigError(str(error), file=str(path), line=line) from None
    names = set(columns) - set(spread)
    names |= {match[part] for match in spread.values() for part in ("value", "name")}
    return TableFile(path, facts, frozenset(names), rows, comments + 1)


def _facts(comments: list[str]) -> dict[str, str]:
    facts: dict[str, str] = {}
    key = None
    for line in comments:
        if match := _FACT.fullmatch(line.rstrip()):
            key = match["key"]
            facts[key] = match["text"]
        elif key is not None and (match := _CONTINUED.fullmatch(line.rstrip())):
            facts[key] += f" {match['text']}"
    return facts


def _spread(row: Row, spread: dict[str, re.Match[str]]) -> list[Row]:
    if not spread:
        return [row]
    common = {column: text for column, text in row.items() if column not in spread}
    return [
        common | {match["name"]: match["text"], match["value"]: row[column]}
        for column, match in spread.items()
        if row[column].strip()
    ]


# --- tolerance ------------------------------------------------------------------------------------

_TOLERANCE = re.compile(
    r"median (?P<median>[0-9.]+) %, p90 (?P<p90>[0-9.]+) %, worst (?P<worst>[0-9.]+) %"
)


@dataclass(frozen=True)
class Tolerance:
    """Largest absolute errors allowed between a model and a table, in percent."""

    median_pct: float
    p90_pct: float
    worst_pct: float

    @classmethod
    def of(cls, table: TableFile) -> Tolerance | None:
        """The tolerance in the comments of a table; None if there is none.

        Raises:
            ConfigError: the comment has another form.
        """
        text = table.facts.get("tolerance")
        if text is None:
            return None
        match = _TOLERANCE.fullmatch(text)
        try:
            if match is not None:
                return cls(*map(float, match.groups()))
        except ValueError:  # more than one point in a number
            pass
        raise ConfigError(
            f"tolerance is {quoted(text)}; write it like 'median 3 %, p90 10 %, worst 20 %'",
            file=str(table.path),
        )
