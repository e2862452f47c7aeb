# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""From chosen statements to their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from towpath.errors import ConfigError
from towpath.reproduce.execution import execute
from towpath.reproduce.report import Report
from towpath.reproduce.rules import Verdict, judge
from towpath.reproduce.runs import RUNS
from towpath.reproduce.statements import TITLES, Statement, statements
from towpath.studies.progress import Progress, silent


def chosen(words: Sequence[str]) -> list[Statement]:
    """The statements that a command line names.

    >>> [statement.name for statement in chosen(["000", "41"])]
    ['000#41']

    Args:
        words: documents, and numbers of rows of the document before them, also as "000#41". Without
            words all statements are chosen.

    Raises:
        ConfigError: there is no such document or row.
    """
    pieces = [piece for word in words for piece in word.split("#")]
    if not pieces:
        return [each for document in TITLES for each in statements(document)]
    found: dict[str, list[int]] = {}
    last = ""
    for piece in pieces:
        if piece in TITLES:
            last = piece
            found.setdefault(last, [])
        elif piece.isdecimal() and last:
            found[last].append(int(piece))
        else:
            raise ConfigError(
                f"'{piece}' is not a document; choose one of {', '.join(TITLES)}, and then rows by "
                "number"
            )
    return [each for document, rows in found.items() for each in _rows(document, rows)]


def _rows(document: str, rows: Sequence[int]) -> list[Statement]:
    own = statements(document)
    for row in rows:
        if not 1 <= row <= len(own):
            raise ConfigError(f"document {document} has no row {row}; its rows are 1 to {len(own)}")
    return [each for each in own if not rows or each.row in rows]


def _source(statement: Statement) -> Statement:
    """The statement whose value a statement is about: itself, or the one that it repeats."""
    if statement.expected.kind != "repeats":
        return statement
    document, _, row = statement.expected.text.partition("#")
    return statements(document)[int(row) - 1]


def _is_quick(statement: Statement) -> bool:
    return not statement.run or RUNS[statement.run].is_quick


def report(
    asked: Sequence[Statement],
    *,
    quick: bool = False,
    jobs: int = 0,
    progress: Progress = silent,
    afresh: bool = False,
) -> Report:
    """Executes the runs of statements, as far as their results are not kept, and judges.

    Args:
        asked: the statements.
        quick: True to leave out statements whose runs take long.
        jobs: number of processes. 0: one per core.
        progress: a display for long work.
        afresh: True to ignore kept results.
    """
    taken = [each for each in asked if not quick or _is_quick(_source(each))]
    names = [_source(each).run for each in taken if _source(each).run]
    executed = execute(names, jobs=jobs, progress=progress, afresh=afresh)

    def verdict(statement: Statement) -> Verdict:
        return judge(statement, executed.results[statement.run] if statement.run else None)

    verdicts = []
    for each in taken:
        source = _source(each)
        found = verdict(source)
        if source is not each:
            found = Verdict(each, found.verdict, reason=found.reason, repeats=source.name)
        verdicts.append(found)
    figures: dict[str, list[dict[str, Any]]] = {}
    drawn = set()
    for each in taken:
        result = executed.results.get(each.run, {})
        for key, value in result.items():
            if key.startswith("figure") and (each.run, key) not in drawn:
                drawn.add((each.run, key))
                figures.setdefault(each.document, []).append(value)
    return Report(verdicts, figures)
