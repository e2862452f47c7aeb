# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads tables of nccl-tests and rccl-tests, with or without `#`, with prefixes of launchers."""

from __future__ import annotations

import math
import re
from collections import Counter

from towpath.collectives.result import bus_factor
from towpath.operators.finding import Evidence, Finding
from towpath.operators.observed import Document, Observed, Timed

NAME = "nccl-tests"
_TYPES = frozenset(
    "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 fp8_e4m3 fp8_e5m2 f8e4m3 "
    "f8e5m2 fp8".split()
)
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
_SIZE_MAX = 1 << 50
_TIME_MAX_US = 1e12
# Rows below this number have too few digits to derive the number of ranks from bandwidths.
_BANDWIDTH_DIGITS_MIN = 20.0


def recognizes(document: Document) -> bool:
    """True if a document contains a row of a table."""
    return any(_row_words(line) for _, line in document.lines())


def read(document: Document) -> Observed:
    """Reads the rows, the ranks and the number of wrong elements."""
    found = Observed(formats=[NAME])
    rows = []
    for number, line in document.lines():
        row = _row_words(line)
        if row is not None:
            rows.append((document.evidence(number, line), row))
            continue
        _read_other(document, number, line, found)
    collective = _program(document) or _collective_of([row for _, row in rows])
    if found.ranks is None:
        found.ranks = _ranks_of(collective, [row for _, row in rows])
    for evidence, row in rows:
        time_us, _, busbw, _ = min(row.ways)
        found.times.append(Timed(collective, row.size, time_us, busbw, found.ranks, evidence))
    found.findings += _wrong_rows(rows) if not found.findings else []
    found.facts["collective"] = collective or "not stated"
    if found.ranks:
        found.facts["ranks"] = str(found.ranks)
    return found


def _read_other(document: Document, number: int, line: str, found: Observed) -> None:
    """Reads a line that is not a row: a rank with its GPU, or the sum of wrong elements."""
    text = line[:1000]
    if "Rank" in text and (rank := _RANK.search(text)):
        found.ranks = max(found.ranks or 0, int(rank[1]) + 1)
        found.hosts.add(rank[2])
        found.gpu = found.gpu or rank[3].strip()
    if "Out of bounds" in text and (wrong := _WRONG_FOOTER.search(text)):
        sentence = f"{wrong[1]} elements of the results are wrong"
        evidence = (document.evidence(number, line),)
        found.findings.append(Finding("wrong_data", sentence, evidence))


def _wrong_rows(rows: list[tuple[Evidence, _Row]]) -> list[Finding]:
    for evidence, row in rows:
        count = sum(wrong for _, _, _, wrong in row.ways)
        if count:
            sentence = f"{count} elements of the results are wrong"
            return [Finding("wrong_data", sentence, (evidence,))]
    return []


class _Row:
    """The words of one row.

    `ways` has time in microseconds, algorithm and bus bandwidth in GB/s and the wrong elements
    for each of out of place and in place.
    """

    def __init__(
        self, size: int, op: str, root: int, ways: list[tuple[float, float, float, int]]
    ) -> None:
        self.size, self.op, self.root, self.ways = size, op, root, ways


def _row_words(line: str) -> _Row | None:
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
    ways = [way for n in (0, 4) if (way := _way(rest[n : n + 4])) is not None]
    return _Row(size, op, root, ways) if ways else None


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


def _program(document: Document) -> str:
    """The collective that a command line or the name of the file states."""
    for text in (document.text[:200_000], document.file):
        for match in _PROGRAM.finditer(text):
            if match[1] in _PROGRAMS:
                return _PROGRAMS[match[1]]
    name = document.file.lower().replace("-", "_")
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
