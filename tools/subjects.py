#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that subjects of commits are "area: imperative summary", without a period.

The first word of the summary must be in styles/verbs.txt; add a verb that is missing. Only the
latest commits are checked, merges and older commits are not.

Usage: tools/subjects.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMMITS = 20
# Earlier subjects do not follow the rule.
FIRST_DAY = "2026-11-29T08:00"
LENGTH_MAX = 100
SUBJECT = re.compile(r"(?P<area>[^:]+): (?P<verb>[a-z-]+)\b")


def problem_of(subject: str, verbs: set[str]) -> str:
    """What is wrong with a subject; empty for a correct one."""
    match = SUBJECT.match(subject)
    if match is None:
        return "must be 'area: imperative summary', the summary in lower case"
    if match["verb"] not in verbs:
        return f"must begin with a verb; if {match['verb']!r} is one, add it to styles/verbs.txt"
    if subject.endswith("."):
        return "must not end in a period"
    if len(subject) > LENGTH_MAX:
        return f"has {len(subject)} characters; at most {LENGTH_MAX} are allowed"
    return ""


def recent_subjects(root: Path) -> list[tuple[str, str]]:
    """(commit, subject) of the latest commits; none outside of a git repository."""
    command = ["git", "log", "--no-merges", f"-{COMMITS}", "--format=%h %aI %s"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    rows = [line.split(" ", 2) for line in done.stdout.splitlines() if line.count(" ") >= 2]
    return [(commit, subject) for commit, date, subject in rows if date >= FIRST_DAY]


def main() -> int:
    verbs = set((ROOT / "styles" / "verbs.txt").read_text().split())
    problems = [
        f"commit {commit} ({subject}): the subject {problem}"
        for commit, subject in recent_subjects(ROOT)
        if (problem := problem_of(subject, verbs))
    ]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
