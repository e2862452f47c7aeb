# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads records of NCCL Inspector, JSON lines of versions 4.0 to 4.3."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from towpath.errors import ConfigError
from towpath.operators.finding import Evidence, Finding
from towpath.operators.judgments import LATE_CALLS_MIN, LATE_RATIO, LATE_SHARE
from towpath.operators.observed import Document, Observed, Timed

NAME = "NCCL Inspector"
_COLLECTIVES = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast", "Reduce": "reduce", "AlltoAll": "all_to_all",
}  # fmt: skip
# Collectives whose message size is the part of one rank.
_OF_PARTS = ("all_gather", "reduce_scatter")
_NOT_BLANK = re.compile(r"\S")
_MARK = re.compile(r'"(?:coll_perf|dump_stats|inspector_output_format_version)"')
_TIMES_MAX = 4096
_NUMBER_MAX = 1e18


@dataclass(frozen=True)
class _Record:
    communicator: str
    rank: int
    ranks: int
    collective: str
    number: int
    time_us: float
    evidence: Evidence


def recognizes(document: Document) -> bool:
    """True if a document contains such records."""
    return document.text.lstrip().startswith("{") and _MARK.search(document.text) is not None


def read(documents: Sequence[Document]) -> Observed:
    """Reads the records of all files, and compares the ranks of each collective.

    Raises:
        ConfigError: a line is not JSON, or a value of a record is wrong.
    """
    found = Observed(formats=[NAME])
    records: list[_Record] = []
    for document in documents:
        _add_records(document, found, records)
    found.findings += _late_ranks(records)
    found.facts["records"] = str(len(records))
    return found


def _add_records(document: Document, found: Observed, records: list[_Record]) -> None:
    dropped: tuple[int, Evidence] | None = None
    for number, line in document.lines_with(_NOT_BLANK):
        data = _json_line(document, number, line)
        evidence = document.evidence(number, line)
        stats = data.get("dump_stats")
        if isinstance(stats, dict):
            lost = _number(stats.get("coll_dropped_total")) + _number(
                stats.get("p2p_dropped_total")
            )
            if lost > 0:
                dropped = (int(lost), evidence)
        if isinstance(data.get("coll_perf"), dict):
            _add_record(document, number, data, found, records)
    if dropped is not None:
        sentence = f"{dropped[0]} records were dropped, so the file has only a part of the calls"
        found.findings.append(Finding("records_lost", sentence, (dropped[1],), 0.9, False))


def _json_line(document: Document, number: int, line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise ConfigError("is not JSON", file=document.file, line=number) from None
    if not isinstance(data, dict):
        raise ConfigError("is not a JSON object", file=document.file, line=number)
    return data


def _add_record(
    document: Document, number: int, data: dict[str, Any], found: Observed, records: list[_Record]
) -> None:
    perf, header = data["coll_perf"], data.get("header")
    if not isinstance(header, dict):
        raise ConfigError("has no header", file=document.file, line=number)
    time_us, size = _number(perf.get("coll_exec_time_us")), _number(perf.get("coll_msg_size_bytes"))
    ranks = int(_number(header.get("n_ranks")))
    if time_us <= 0 or size <= 0 or not 0 < ranks < 1 << 20:
        problem = "coll_exec_time_us, coll_msg_size_bytes and n_ranks must be positive numbers"
        raise ConfigError(problem, file=document.file, line=number)
    name = str(perf.get("coll", ""))
    collective = _COLLECTIVES.get(name, "")
    evidence = document.evidence(number, json.dumps({"header": header, "coll_perf": perf}))
    if collective and len(found.times) < _TIMES_MAX:
        whole = int(size) * (ranks if collective in _OF_PARTS else 1)
        busbw = _number(perf.get("coll_busbw_gbs"))
        found.times.append(Timed(collective, whole, time_us, busbw, ranks, evidence))
    communicator = str(header.get("id", ""))[:64]
    rank, serial = int(_number(header.get("rank"))), int(_number(perf.get("coll_sn")))
    records.append(_Record(communicator, rank, ranks, name[:32], serial, time_us, evidence))
    metadata = data.get("metadata")
    if isinstance(metadata, dict):
        found.hosts.add(str(metadata.get("hostname", ""))[:80])


def _number(value: object) -> float:
    """A finite number that is not negative. 0 for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return 0.0
    return float(value) if 0 <= value < _NUMBER_MAX else 0.0


def _late_ranks(records: list[_Record]) -> list[Finding]:
    """Ranks that spend the shortest time in most collectives: the rest waits for them."""
    by_call: dict[tuple[str, str, int], dict[int, _Record]] = defaultdict(dict)
    for record in records:
        by_call[record.communicator, record.collective, record.number][record.rank] = record
    shortest: dict[str, Counter[int]] = defaultdict(Counter)
    calls: Counter[str] = Counter()
    seen: dict[tuple[str, int], tuple[_Record, float]] = {}
    for (communicator, _, _), ranks in by_call.items():
        if len(ranks) < 3:
            continue
        calls[communicator] += 1
        late = min(ranks.values(), key=lambda each: each.time_us)
        usual = median(each.time_us for each in ranks.values() if each is not late)
        if usual > LATE_RATIO * late.time_us:
            shortest[communicator][late.rank] += 1
            seen[communicator, late.rank] = (late, usual)
    findings = []
    for communicator, late_of in shortest.items():
        rank, count = late_of.most_common(1)[0]
        if calls[communicator] >= LATE_CALLS_MIN and count >= LATE_SHARE * calls[communicator]:
            record, usual = seen[communicator, rank]
            sentence = (
                f"rank {rank} enters last in {count} of {calls[communicator]} collectives: it "
                f"spends {record.time_us:.0f} us where the other ranks wait {usual:.0f} us"
            )
            findings.append(Finding("slow_rank", sentence, (record.evidence,), 0.8))
    return findings
