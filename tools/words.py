#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The language of C++ comments: phrases that native engineers avoid, counted per folder.

Prints one line per folder and phrase above its limit; exits 1 if there is one.

Usage: tools/words.py [--count | --list PHRASE] [ROOT]
With --count it prints the rates of all folders instead; with --list the lines that have a phrase.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tidy import source_files


@dataclass(frozen=True)
class Phrase:
    """A turn of phrase and its limit.

    Attributes:
        name: What a breach calls it.
        pattern: What matches it in the text of comments.
        limit: Occurrences per 1,000 words of comment: twice the highest rate of five C++ projects
            (Abseil, DuckDB, SimGrid, gem5, MSCCL++), for semicolons their highest rate.
        instead: What to write.
    """

    name: str
    pattern: re.Pattern[str]
    limit: float
    instead: str


def phrase(name: str, pattern: str, limit: float, instead: str) -> Phrase:
    return Phrase(name, re.compile(pattern), limit, instead)


PHRASES = (
    phrase("what", r"(?i)\bwhat\b", 1.0, "a noun: its output, its state"),
    phrase("where", r"(?i)\bwhere\b", 2.8, "'if' for a condition"),
    phrase("own", r"(?i)\bown\b(?!s|ed|er)", 1.1, "its, or the noun alone"),
    phrase("nothing", r"(?i)\b(nothing|nobody)\b", 2.0, "no <noun>"),
    phrase(
        "tell",
        r"(?i)\b(tells?|told|hears?|heard|knows?|known|learns?|learnt)\b",
        1.2,
        "notify, see, is given",
    ),
    phrase("those of", r"(?i)\b(those|that) (of|that|which)\b", 0.9, "name the noun"),
    phrase("goes on", r"(?i)\b(goes|go|going|went) on\b", 0.2, "continues"),
    phrase("so many", r"(?i)\b(so|as) (many|much|far)\b", 0.3, "give the number"),
    phrase("beside", r"(?i)\bbesides?\b", 0.2, "next to, in addition to"),
    phrase("Of", r"(?:^|[.:] )Of\b", 0.1, "begin with the subject"),
    phrase("semicolon", r";", 7.0, "two sentences"),
)
# Folders that are over a limit today, by phrase. Entries may only be removed.
ALLOWED: dict[str, set[str]] = {}

COMMENT = re.compile(r"//+(.*)")
CODE_LINE = re.compile(r"[;{}]\s*$|^\s*#include|^\s{3,}\S.*[=(]")
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")


@dataclass
class Room:
    """The comments of a folder: words, and occurrences of each phrase."""

    words: int = 0
    counts: Counter[str] = field(default_factory=Counter)


def comment_of(line: str) -> str:
    """The text of a line's comment; empty for code, and for code that a comment shows."""
    match = COMMENT.search(line)
    if match is None or "SPDX" in line or '"' in line[: match.start()]:
        return ""
    text = match[1]
    return "" if CODE_LINE.search(text) and not re.match(r"\s?[A-Z]", text) else text.strip()


def comments(root: Path) -> list[tuple[str, int, str]]:
    """(path, line, text) of every line with a comment in the library."""
    found = []
    for path in source_files(root):
        if not path.startswith("src/towpath/") or not path.endswith((".cpp", ".hpp")):
            continue
        if not (root / path).is_file():
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            text = comment_of(line)
            if text:
                found.append((path, number, text))
    return found


def rooms_of(root: Path) -> dict[str, Room]:
    rooms: dict[str, Room] = {}
    for path, _, text in comments(root):
        room = rooms.setdefault(str(Path(path).parent.relative_to("src/towpath")), Room())
        room.words += len(WORD.findall(text))
        for each in PHRASES:
            room.counts[each.name] += len(each.pattern.findall(text))
    return rooms


def most(limit: float, words: int) -> int:
    """Occurrences that a folder may have: a small one may have one."""
    return max(1, math.ceil(limit * words / 1000))


def check(root: Path) -> list[str]:
    """The breaches in all folders, and entries of the allow-list that are no longer needed."""
    problems = []
    over = set()
    for name, room in sorted(rooms_of(root).items()):
        for each in PHRASES:
            if room.counts[each.name] <= most(each.limit, room.words):
                continue
            over.add((name, each.name))
            if each.name not in ALLOWED.get(name, set()):
                problems.append(
                    f"src/towpath/{name}: '{each.name}' {room.counts[each.name]} times in "
                    f"{room.words} words of comment; at most {most(each.limit, room.words)}; "
                    f"write {each.instead}"
                )
    problems += [
        f"tools/words.py: src/towpath/{name} no longer needs its entry for '{entry}'"
        for name, entries in ALLOWED.items()
        for entry in sorted(entries)
        if (name, entry) not in over
    ]
    return problems


def table(root: Path) -> list[str]:
    """Occurrences per 1,000 words, a row per folder."""
    rows = ["words  " + "  ".join(f"{each.name:>9}" for each in PHRASES) + "  folder"]
    for name, room in sorted(rooms_of(root).items()):
        rates = (1000 * room.counts[each.name] / max(room.words, 1) for each in PHRASES)
        rows.append(f"{room.words:5}  " + "  ".join(f"{rate:9.1f}" for rate in rates) + f"  {name}")
    return rows


def main(arguments: list[str]) -> int:
    root = Path(__file__).parent.parent
    if arguments[:1] == ["--count"]:
        print("\n".join(table(root)))
        return 0
    if arguments[:1] == ["--list"]:
        (wanted,) = (each for each in PHRASES if each.name == arguments[1])
        print(
            *(f"{p}:{n}: {t}" for p, n, t in comments(root) if wanted.pattern.search(t)), sep="\n"
        )
        return 0
    found = check(Path(arguments[0]) if arguments else root)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
