# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the output of `ncclras`, as text and as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from towpath.errors import ConfigError
from towpath.operators.finding import Evidence, Finding
from towpath.operators.observed import Document, Observed

NAME = "NCCL RAS"
_TEXT = re.compile(r"(?m)^Job summary\s*$|^ +[0-9]+ +[0-9]+ .{0,120}\b(?:RUNNING|INIT|MISMATCH)\b")
_GROUP = re.compile(r"^ +[0-9]{1,6}((?: +[0-9]{1,7}){5,6}) +([A-Z]{2,16}) +([A-Z]{2,16})\s*$")
_LINE_LENGTH_MIN = 12
_MISSING = re.compile(r"Missing communicator data from ([0-9]{1,7}) ranks?")
_DEAD = re.compile(r"([0-9]{1,7}) job process(?:es are| is) considered dead")
_COUNTS = re.compile(r"Communicator ranks have different (\S{1,24}) operation counts")
_LAUNCHED = re.compile(
    r" +(?:Rank (?P<rank>[0-9]{1,7})|(?P<ranks>[0-9]{1,7}) ranks) (?:has|have) "
    r"(?:launched up to operation (?P<done>[0-9]{1,19})|not launched any)"
)
_RANK = re.compile(r"^ +Rank ([0-9]{1,7}) --")
_STATUS = re.compile(r"Communicator ranks have different status")
_ERRORS = re.compile(r"(Initialization|Asynchronous) errors? on ([0-9]{1,7}) ranks?")


@dataclass(frozen=True)
class _Launched:
    """The number of operations that ranks of a communicator launched.

    `names` has the ranks behind a number of ranks, if they are listed.
    """

    who: str
    ranks: int
    done: int
    evidence: Evidence
    names: list[str] = field(default_factory=list)

    def shown(self) -> str:
        return f"rank {', '.join(self.names[:8])}" if self.names else self.who


def recognizes(document: Document) -> bool:
    """True if a document contains such output."""
    start = document.text.lstrip()[:1]
    if start == "{":
        return '"communicators"' in document.text and '"missing_ranks' in document.text
    return _TEXT.search(document.text) is not None


def read(document: Document) -> Observed:
    """Reads the state of all communicators.

    Raises:
        ConfigError: the JSON is wrong.
    """
    if document.text.lstrip().startswith("{"):
        return _read_json(document)
    lines = document.text.split("\n")
    found = Observed(formats=[NAME])
    is_ok = True
    for number, line in enumerate(lines, 1):
        if len(line) < _LINE_LENGTH_MIN:
            continue
        group = _GROUP.match(line[:400])
        if group is not None:
            found.ranks = max(found.ranks or 0, int(group[1].split()[-1]))
            is_ok = is_ok and group[3] == "OK"
        for finding in _text_findings(document, lines, number):
            found.findings.append(finding)
            is_ok = False
    found.findings += _late(document, lines)
    if is_ok and not found.findings:
        found.facts["RAS"] = "reports all communicators as OK"
    return found


def _text_findings(document: Document, lines: list[str], number: int) -> list[Finding]:
    line = lines[number - 1]
    if match := _DEAD.search(line):
        found = ("dead_rank", f"{match[1]} processes do not answer", 0.9)
    elif match := _MISSING.search(line):
        below = _ranks_below(lines, number)
        found = ("dead_rank", f"{match[1]} ranks of a communicator did not report{below}", 0.9)
    elif match := _ERRORS.search(line):
        found = ("network_error", f"{match[1].lower()} errors on {match[2]} ranks", 0.6)
    elif _STATUS.search(line):
        below = _ranks_below(lines, number)
        found = ("late_rank", f"ranks of a communicator are in different states{below}", 0.7)
    else:
        return []
    cause, sentence, confidence = found
    return [Finding(cause, sentence, (document.evidence(number, line),), confidence)]


def _ranks_below(lines: list[str], number: int) -> str:
    """The ranks that are listed below a line, as the end of a sentence."""
    ranks = []
    for line in lines[number : number + 16]:
        if not line.strip():
            break
        if match := _RANK.match(line):
            ranks.append(match[1])
    return f": rank {', '.join(ranks)}" if ranks else ""


def _late(document: Document, lines: list[str]) -> list[Finding]:
    """Ranks that launched fewer operations than most ranks of their communicator."""
    findings: list[Finding] = []
    collective: str = ""
    launched: list[_Launched] = []
    for number, line in enumerate([*lines, ""], 1):
        if "different" in line and (match := _COUNTS.search(line)):
            collective, launched = match[1], []
        elif collective and not line.strip():
            findings += _behind(collective, launched)
            collective = ""
        elif collective and (match := _LAUNCHED.match(line)):
            ranks = int(match["ranks"] or 1)
            who = f"{ranks} ranks" if match["ranks"] else f"rank {match['rank']}"
            evidence = document.evidence(number, line)
            launched.append(_Launched(who, ranks, int(match["done"] or 0), evidence))
        elif launched and (match := _RANK.match(line)):
            launched[-1].names.append(match[1])
    return findings[:64]


def _behind(collective: str, launched: list[_Launched]) -> list[Finding]:
    """A finding about ranks that launched fewer operations than the other ranks.

    Counts are not taken at one moment. So they may differ by one, and most ranks must agree before
    the remaining ranks are late.
    """
    most = max((each.done for each in launched), default=0)
    late = [each for each in launched if each.done < most]
    if not late or 2 * sum(each.ranks for each in late) > sum(each.ranks for each in launched):
        return []
    shown = ", ".join(f"{each.shown()} ({each.done})" for each in late[:8])
    sentence = f"{shown} launched fewer {collective} than the other ranks ({most})"
    is_fault = most - min(each.done for each in late) > 1
    evidence = tuple(each.evidence for each in late[:3])
    return [Finding("late_rank", sentence, evidence, 0.9 if is_fault else 0.3, is_fault)]


def _read_json(document: Document) -> Observed:
    try:
        data = json.loads(document.text)
    except (ValueError, RecursionError):
        raise ConfigError("is not valid JSON", file=document.file, line=1) from None
    communicators = data.get("communicators") if isinstance(data, dict) else None
    if not isinstance(communicators, list):
        raise ConfigError("has no list 'communicators'", file=document.file, line=1)
    found = Observed(formats=[NAME])
    for number, each in enumerate(communicators, 1):
        if not isinstance(each, dict):
            raise ConfigError(f"communicator {number} is not an object", file=document.file, line=1)
        found.ranks = max(found.ranks or 0, _integer(each.get("size")))
        found.findings += _of_communicator(document, number, each)
    if not found.findings:
        found.facts["RAS"] = "reports all communicators as OK"
    return found


def _of_communicator(document: Document, number: int, data: dict[str, Any]) -> list[Finding]:
    findings = []
    missing = _objects(data.get("missing_ranks"))
    if missing:
        names = ", ".join(
            f"{_integer(each.get('rank'))} on {str(each.get('host'))[:60]}" for each in missing[:8]
        )
        evidence = document.evidence(number, f"missing_ranks: {names}")
        sentence = f"{len(missing)} ranks did not report: rank {names}"
        findings.append(Finding("dead_rank", sentence, (evidence,)))
    counts: dict[str, dict[int, int]] = {}
    for rank in _objects(data.get("ranks")):
        own = rank.get("collective_counts")
        for name, count in own.items() if isinstance(own, dict) else ():
            counts.setdefault(str(name)[:24], {})[_integer(rank.get("rank"))] = _integer(count)
        status = rank.get("status")
        if isinstance(status, dict) and _integer(status.get("async_error")) not in (0, 7):
            text = f"rank {_integer(rank.get('rank'))}: async_error {status.get('async_error')!r}"
            evidence = document.evidence(number, text)
            findings.append(Finding("network_error", text[:100], (evidence,), 0.6))
    for name, by_rank in counts.items():
        launched = [
            _Launched(
                f"rank {rank}", 1, done,
                document.evidence(number, f"rank {rank}: collective_counts of {name}: {done}"),
            )
            for rank, done in sorted(by_rank.items())
        ]  # fmt: skip
        findings += _behind(name, launched)
    return findings[:64]


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if abs(value) < 1 << 62 else 0
