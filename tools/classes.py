#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The limits of a C++ class over all its files: lines and methods. Prints one line per breach.

The lines of a class are those of its body, of the bodies of its nested types and of its member
functions, wherever they are defined. Its methods are the member functions that its body declares,
without those of nested types.

Usage: tools/classes.py [--largest N] [ROOT]
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tidy import source_files

LINES_MAX = 600
METHODS_MAX = 40
# Classes whose methods are those of a vendor's or a standard's document.
GIVEN_INTERFACES: dict[str, str] = {
    "src/towpath/tenstorrent/core/DataMovementCore": "the calls of TT-Metalium's dataflow_api.h",
    "src/towpath/tenstorrent/core/EthernetCore": "the calls of TT-Metalium's Ethernet interface",
}
# Classes over a limit, each with the reason. Entries may only be removed.
ALLOWED: dict[str, str] = {
    "src/towpath/ethernet/Port": "52 methods in 464 lines: sender and receiver are one class",
}

HEAD = re.compile(
    r"^(?P<indent> *)(?:template <[^;{]*> ?)?(?:class|struct)(?: alignas\([^)]*\))? "
    r"(?P<name>[A-Z]\w*(?:::[A-Z]\w*)*)(?: final)?(?: ?:[^:;{][^;{]*)? ?\{"
)
DEFINITION = re.compile(
    r"^[A-Za-z_~\[].*?\b(?P<class>[A-Z]\w*(?:::[A-Z]\w*)*)::~?(?:\w+|operator\S+)\("
)
METHOD = re.compile(
    r"^(?:(?:virtual|static|explicit|inline|constexpr|friend|template <[^>]*>|\[\[\w+\]\]) )*"
    r"(?:[\w:<>,*&~ \[\]()]+[ *&])?(?P<name>~?[A-Za-z_]\w*|operator\S+)\("
)
NOT_METHODS = {"if", "for", "while", "switch", "return", "static_assert", "sizeof", "alignas"}


@dataclass
class Measured:
    """A class: its lines and methods over all files of its folder."""

    lines: int = 0
    methods: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)


def block_end(lines: list[str], start: int, indent: str) -> int:
    """The line on which what opens at `start` closes, by the indentation of its brace."""
    closes = re.compile(rf"^{indent}\}}")
    for number in range(start, len(lines)):
        if number > start and closes.match(lines[number]):
            return number
        if number == start and lines[start].rstrip().endswith(("}", "};")):
            return number
    return len(lines) - 1


def declared(body: list[str], indent: str) -> Iterator[str]:
    """The names of the member functions that a class's body declares; overloads count apart."""
    for line in body:
        if not line.startswith(indent) or line[len(indent) : len(indent) + 1] in (" ", "}", ""):
            continue
        text = line[len(indent) :]
        match = METHOD.match(text)
        if match and match["name"] not in NOT_METHODS and " = " not in text.split("(")[0]:
            yield text.split("{")[0].strip()


def measure(path: str, text: str, classes: dict[str, Measured]) -> None:
    """Adds what a file has of each class."""
    lines = text.splitlines()
    folder = str(Path(path).parent)
    number = 0
    while number < len(lines):
        line = lines[number]
        joined = " ".join(part.strip() for part in lines[number : number + 3])
        head = HEAD.match(line)
        if head:
            end = block_end(lines, number, head["indent"])
            add_class(classes, folder, head, lines[number : end + 1], path)
            number = end + 1
            continue
        definition = DEFINITION.match(re.split(r"[;{]", joined)[0])
        if definition and not line.startswith((" ", "}", "//", "#", "using ", "class ", "struct ")):
            end = block_end(lines, number, "")
            found = classes[f"{folder}/{definition['class'].split('::')[0]}"]
            found.lines += end - number + 1
            found.files.add(path)
            number = end + 1
            continue
        number += 1


def add_class(
    classes: dict[str, Measured], folder: str, head: re.Match[str], body: list[str], path: str
) -> None:
    names = head["name"].split("::")
    found = classes[f"{folder}/{names[0]}"]
    found.lines += len(body)
    found.files.add(path)
    if len(names) == 1:
        found.methods |= set(declared(body[1:], head["indent"] + "  "))


def measured(root: Path) -> dict[str, Measured]:
    classes: dict[str, Measured] = defaultdict(Measured)
    for path in source_files(root):
        if (
            path.startswith("src/towpath/")
            and path.endswith((".cpp", ".hpp"))
            and (root / path).is_file()
        ):
            measure(path, (root / path).read_text(), classes)
    return classes


def check(root: Path) -> list[str]:
    """The breaches, and entries of the allow-list that are no longer needed."""
    problems = []
    over = set()
    for name, found in sorted(measured(root).items()):
        excess = []
        if found.lines > LINES_MAX:
            excess.append(f"{found.lines} lines; at most {LINES_MAX}")
        if len(found.methods) > METHODS_MAX and name not in GIVEN_INTERFACES:
            excess.append(f"{len(found.methods)} methods; at most {METHODS_MAX}")
        if excess:
            over.add(name)
            if name not in ALLOWED:
                problems.append(f"{name} has {' and '.join(excess)} ({len(found.files)} files)")
    unneeded = set(ALLOWED) - over
    return problems + [
        f"tools/classes.py: {name} no longer needs its entry" for name in sorted(unneeded)
    ]


def main(arguments: list[str]) -> int:
    root = Path(__file__).parent.parent
    if arguments[:1] == ["--largest"]:
        largest = sorted(measured(root).items(), key=lambda item: -item[1].lines)
        for name, found in largest[: int(arguments[1])]:
            size = f"{found.lines:5} lines {len(found.methods):3} methods"
            print(f"{size} {len(found.files)} files  {name}")
        return 0
    found = check(Path(arguments[0]) if arguments else root)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
