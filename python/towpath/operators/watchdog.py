# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads lines of the watchdog of PyTorch's ProcessGroupNCCL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from towpath.operators.finding import Evidence, Finding
from towpath.operators.observed import Document, Observed

NAME = "PyTorch watchdog"
_ANY_LINE = re.compile("Rank")
_TIMEOUT = re.compile(
    r"\[Rank ([0-9]{1,7})\] Watchdog caught collective operation timeout: "
    r"WorkNCCL\((?:Seq(?:Num)?=([0-9]{1,19}))?,? ?OpType=([A-Z_0-9]{1,32})"
)
_STATUS = re.compile(
    r"Rank ([0-9]{1,7})\] .{0,120}?last enqueued(?: NCCL)? work: (-?[0-9]{1,19}), "
    r"last completed(?: NCCL)? work: (-?[0-9]{1,19})"
)
_RAN_MS = re.compile(r"ran for ([0-9]{1,15}) milliseconds")


@dataclass
class _Rank:
    """The state of a rank in its watchdog's lines."""

    evidence: Evidence
    timeout: int | None = None
    operation: str = ""
    enqueued: int | None = None
    completed: int | None = None
    ran_s: float | None = None


def recognizes(document: Document) -> bool:
    """True if a document contains such lines."""
    return "Watchdog caught collective operation timeout" in document.text or (
        "last completed" in document.text and _STATUS.search(document.text) is not None
    )


def read(documents: Sequence[Document]) -> Observed:
    """Reads the state of each rank in all files, and finds the rank that is behind."""
    found = Observed(formats=[NAME])
    ranks: dict[int, _Rank] = {}
    for document in documents:
        _add_ranks(document, ranks)
    found.findings += [*_hang(ranks), *_behind(ranks)]
    found.facts["ranks with watchdog lines"] = str(len(ranks))
    return found


def _add_ranks(document: Document, ranks: dict[int, _Rank]) -> None:
    for number, line in document.lines_with(_ANY_LINE):
        text = line[:4000]
        if match := _TIMEOUT.search(text):
            rank = ranks.setdefault(int(match[1]), _Rank(document.evidence(number, line)))
            rank.timeout = int(match[2]) if match[2] else None
            rank.operation = match[3]
            ran = _RAN_MS.search(text)
            rank.ran_s = int(ran[1]) / 1000 if ran else None
        if match := _STATUS.search(text):
            rank = ranks.setdefault(int(match[1]), _Rank(document.evidence(number, line)))
            rank.enqueued, rank.completed = int(match[2]), int(match[3])


def _hang(ranks: dict[int, _Rank]) -> list[Finding]:
    timed_out = {rank: each for rank, each in ranks.items() if each.operation}
    if not timed_out:
        return []
    rank, first = min(timed_out.items(), key=lambda item: (item[1].timeout or 0, item[0]))
    which = "" if first.timeout is None else f" number {first.timeout}"
    waited = "" if first.ran_s is None else f" for {first.ran_s:.0f} s"
    sentence = f"rank {rank} waited{waited} in {first.operation}{which}"
    if len(timed_out) > 1:
        sentence += f", and {len(timed_out) - 1} other ranks timed out"
    return [Finding("hang", sentence, (first.evidence,))]


def _behind(ranks: dict[int, _Rank]) -> list[Finding]:
    """The rank that is behind, or the only rank that reports."""
    known = {rank: each for rank, each in ranks.items() if each.enqueued is not None}
    if not known:
        return []
    enqueued = {rank: each.enqueued or 0 for rank, each in known.items()}
    least, most = min(enqueued.values()), max(enqueued.values())
    late = [rank for rank, value in enqueued.items() if value == least]
    if len(known) > 1 and least < most and len(late) * 2 <= len(known):
        names = ", ".join(map(str, sorted(late)[:8]))
        sentence = f"rank {names} enqueued {least} collectives, the other ranks up to {most}"
        return [Finding("late_rank", sentence, (known[late[0]].evidence,))]
    if len(known) == 1:
        (rank, each), *_ = known.items()
        if each.completed is not None and each.completed < least:
            sentence = (
                f"rank {rank} completed {each.completed} and enqueued {least} collectives, and no "
                "other rank reports: this rank is late, or it waits for a rank without a watchdog"
            )
            return [Finding("late_rank", sentence, (each.evidence,), 0.4)]
    return []
