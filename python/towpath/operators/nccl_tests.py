# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads tables of nccl-tests and rccl-tests, with or without `#`, with prefixes of launchers."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from towpath.collectives.result import bus_factor
from towpath.operators.finding import Evidence, Finding
from towpath.operators.observed import Document, Observed, Timed

NAME = "nccl-tests"
_TYPES = frozenset(
    "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 fp8_e4m3 fp8_e5m2 f8e4m3 "
    "f8e5m2 fp8".split()
)
_TYPE = re.compile(rf"\s(?:{'|'.join(sorted(_TYPES))})\s")
_OPS = frozenset(("sum", "prod", "max", "min", "avg", "mulsum", "none"))
_PROGRAM = re.compile(r"\b([a-z_]{4,16})_perf\b")
_PROGRAMS = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all", "broadcast": "broadcast", "reduce": "reduce", "sendrecv": "send_recv",
    "gather": "gather", "scatter": "scatter",
}  # fmt: skip
_RANK = re.compile(
    r"Rank +([0-9]{1,6}) (?:Group +[0-9]{1,6} )?Pid +[0-9]{1,9} on +(\S{1,80}) "
    r"device +[0-9]{1,3} \[[^\]]{1,20}\] (.{1,80})"
)
_WRONG_FOOTER = re.compile(r"Out of bounds values : ([0-9]{1,12}) FAILED")
_ROOT = re.compile(r"-?[0-9]{1,6}\Z", re.ASCII)
_LINE_LENGTH_MIN, _LINE_LENGTH_MAX = 30, 1000
# The shortest line that may belong to a table is a command, such as ./reduce_perf.
_MAY_BELONG = re.compile(r"[^\n]{12}")
_SIZE_MAX = 1 << 50
_TIME_MAX_US = 1e12
# Rows below this number have too few digits to derive the number of ranks from bandwidths.
_BANDWIDTH_DIGITS_MIN = 20.0


def recognizes(document: Document) -> bool:
    """True if a document contains a row of a table."""
    return any(_row_of(document, number, line) for number, line in document.lines_with(_TYPE))


def read(document: Document) -> Observed:
    """Reads the tables of a log: rows, ranks and wrong elements."""
    found = Observed(formats=[NAME])
    tables = _tables(document, found)
    usual = _usual_program(tables, document.file)
    for table in tables:
        table.program = table.program or usual or _collective_of(table.rows)
        table.ranks = table.ranks or _ranks_of(table.program, table.rows)
        found.times += [table.timed(row) for row in table.rows]
        found.ranks = found.ranks or table.ranks
    found.findings = found.findings or _wrong_rows([row for each in tables for row in each.rows])
    collectives = dict.fromkeys(table.program or "not stated" for table in tables)
    found.facts["collective"] = ", ".join(collectives)
    if found.ranks:
        found.facts["ranks"] = str(found.ranks)
    return found


@dataclass
class _Table:
    """The rows of one run of a program, its collective if a line states it, and its ranks."""

    program: str = ""
    ranks: int | None = None
    rows: list[_Row] = field(default_factory=list)

    def timed(self, row: _Row) -> Timed:
        """The faster of both times of a row."""
        time_us, _, busbw, _ = min(row.ways)
        return Timed(self.program, row.size, time_us, busbw, self.ranks, row.evidence)


def _usual_program(tables: list[_Table], file: str) -> str:
    """The program of tables without a command: the only program, or the program in the name."""
    names = {table.program for table in tables if table.program}
    return names.pop() if len(names) == 1 else _program_of_file(file)


def _tables(document: Document, found: Observed) -> list[_Table]:
    """The tables of a log. A command line, a list of ranks or a heading begins the next table."""
    tables = [_Table()]
    for number, line in document.lines_with(_MAY_BELONG):
        row = _row_of(document, number, line)
        if row is not None:
            tables[-1].rows.append(row)
        elif _read_heading(line[:_LINE_LENGTH_MAX], tables, found):
            continue
        elif wrong := _WRONG_FOOTER.search(line[:_LINE_LENGTH_MAX]):
            sentence = f"{wrong[1]} elements of the results are wrong"
            evidence = (document.evidence(number, line),)
            found.findings.append(Finding("wrong_data", sentence, evidence))
    return [table for table in tables if table.rows]


def _read_heading(text: str, tables: list[_Table], found: Observed) -> bool:
    """Reads a line above a table. False for other lines."""
    program = _program_in(text)
    rank = _RANK.search(text) if "Rank" in text else None
    if not (program or rank or "minBytes" in text):
        return False
    if tables[-1].rows:
        tables.append(_Table())
    tables[-1].program = program or tables[-1].program
    if rank:
        tables[-1].ranks = max(tables[-1].ranks or 0, int(rank[1]) + 1)
        found.hosts.add(rank[2])
        found.gpu = found.gpu or rank[3].strip()
    return True


def _wrong_rows(rows: list[_Row]) -> list[Finding]:
    for row in rows:
        count = sum(wrong for _, _, _, wrong in row.ways)
        if count:
            sentence = f"{count} elements of the results are wrong"
            return [Finding("wrong_data", sentence, (row.evidence,))]
    return []


@dataclass(frozen=True)
class _Row:
    """The words of one row.

    `ways` has time in microseconds, algorithm and bus bandwidth in GB/s and the wrong elements
    for each of out of place and in place.
    """

    size: int
    op: str
    root: int
    ways: tuple[tuple[float, float, float, int], ...]
    evidence: Evidence


def _row_of(document: Document, number: int, line: str) -> _Row | None:
    if not _LINE_LENGTH_MIN <= len(line) <= _LINE_LENGTH_MAX:
        return None
    words = line.split()
    place = next((n for n, word in enumerate(words) if word in _TYPES), -1)
    size = _size(words[place - 2 : place]) if place >= 2 else 0
    if not size:
        return None
    rest = words[place + 1 :]
    op = rest.pop(0) if rest and rest[0] in _OPS else "none"
    is_root = bool(rest) and _ROOT.match(rest[0]) is not None
    root = int(rest.pop(0)) if is_root else -1
    ways = tuple(way for n in (0, 4) if (way := _way(rest[n : n + 4])) is not None)
    return _Row(size, op, root, ways, document.evidence(number, line)) if ways else None


def _size(words: list[str]) -> int:
    """The size of a row in bytes, the first of size and count. 0 if they are not numbers."""
    if not all(word.isascii() and word.isdecimal() and len(word) <= 18 for word in words):
        return 0
    size = int(words[0])
    return size if size <= _SIZE_MAX else 0


def _way(words: list[str]) -> tuple[float, float, float, int] | None:
    """Time, bandwidths and wrong elements. None if they are incomplete or not numbers."""
    if len(words) < 3:
        return None
    try:
        time, algbw, busbw = (float(word) for word in words[:3])
        wrong = int(float(words[3])) if len(words) > 3 and words[3] != "N/A" else 0
    except (ValueError, OverflowError):
        return None
    finite = all(map(math.isfinite, (time, algbw, busbw)))
    return (time, algbw, busbw, wrong) if finite and 0 < time < _TIME_MAX_US else None


def _program_in(text: str) -> str:
    """The collective of the program that a text names, such as all_gather_perf."""
    names = (_PROGRAMS.get(match[1], "") for match in _PROGRAM.finditer(text))
    return next(filter(None, names), "")


def _program_of_file(file: str) -> str:
    """The collective that the name of a file states, without its folder."""
    name = Path(file).name.lower().replace("-", "_")
    words = sorted(_PROGRAMS, key=len, reverse=True)
    return next((_PROGRAMS[word] for word in words if word in name), "")


def _collective_of(rows: list[_Row]) -> str:
    """The collective that the columns imply. Empty if several fit."""
    if not rows:
        return ""
    row = rows[-1]
    _, algbw, busbw, _ = row.ways[0]
    ratio = busbw / algbw if algbw > 0 else 0.0
    if row.op != "none" and row.root < 0:
        return "all_reduce" if ratio > 0.995 else "reduce_scatter"
    if row.op != "none":
        return "reduce"
    return "broadcast" if row.root >= 0 else ""


def _ranks_of(collective: str, rows: list[_Row]) -> int | None:
    """The number of ranks from the ratio of both bandwidths, if its digits suffice."""
    if collective not in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        return None
    votes: Counter[int] = Counter()
    for row in rows:
        for _, algbw, busbw, _ in row.ways:
            if algbw >= _BANDWIDTH_DIGITS_MIN:
                votes[_fitting_ranks(collective, busbw / algbw)] += 1
    ranks, count = votes.most_common(1)[0] if votes else (0, 0)
    return ranks if ranks and count * 2 > sum(votes.values()) else None


def _fitting_ranks(collective: str, ratio: float) -> int:
    """The number of ranks whose bus factor is nearest to a ratio. 0 if several are as near."""
    near = sorted((abs(bus_factor(collective, n) - ratio), n) for n in range(2, 257))
    return near[0][1] if near[0][0] < 4e-4 and near[1][0] > 2 * near[0][0] else 0
