# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Unchecked JSON: every access to a value checks its type."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NoReturn

from towpath.errors import quoted
from towpath.schedules.msccl_xml import ScheduleFormatError

SIZE_MAX_BYTES = 16 * 1024 * 1024


def parsed(path: str | os.PathLike[str], file: str) -> Any:
    try:
        with open(path, "rb") as stream:
            content = stream.read(SIZE_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScheduleFormatError(f"cannot be read: {reason}", file=file, line=1) from None
    if len(content) > SIZE_MAX_BYTES:
        problem = f"is too large; at most {SIZE_MAX_BYTES} bytes are read"
        raise ScheduleFormatError(problem, file=file, line=1)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = dict(pairs)
        if len(names) != len(pairs):
            twice = next(name for name, _ in pairs if sum(n == name for n, _ in pairs) > 1)
            problem = f"has the name {quoted(twice)} twice in one object"
            raise ScheduleFormatError(problem, file=file)
        return names

    def refuse(constant: str) -> NoReturn:
        raise ScheduleFormatError(f"contains {constant}, which is not a JSON number", file=file)

    try:
        text = content.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except ScheduleFormatError:
        raise
    except UnicodeDecodeError:
        raise ScheduleFormatError("is not UTF-8 text", file=file, line=1) from None
    except json.JSONDecodeError as error:
        problem = f"is not valid JSON: {error.msg}"
        raise ScheduleFormatError(problem, file=file, line=error.lineno) from None
    except RecursionError:
        raise ScheduleFormatError("nests too deeply", file=file, line=1) from None
    except ValueError:  # digits without end
        raise ScheduleFormatError("contains a number that is too long", file=file, line=1) from None


class Node:
    """A value of the file and its place; every access to it checks its type."""

    def __init__(self, value: Any, file: str, place: str = "") -> None:
        self.value = value
        self.file = file
        self.place = place

    def fail(self, problem: str) -> NoReturn:
        raise ScheduleFormatError(problem, file=self.file, field=self.place or None)

    def names(self, required: str, optional: str = "") -> None:
        """Checks that it is an object with these names."""
        if not isinstance(self.value, dict):
            self.fail(f"is {shown(self.value)}; it must be an object")
        allowed = {*required.split(), *optional.split()}
        for name in self.value:
            if name not in allowed:
                self.fail(
                    f"has the name {quoted(name)}; choose one of {', '.join(sorted(allowed))}"
                )
        for name in required.split():
            if name not in self.value:
                self.fail(f"has no {quoted(name)}")

    def has(self, name: str) -> bool:
        return name in self.value

    def at(self, name: str) -> Node:
        where = f"{self.place}.{name}" if self.place else name
        return Node(self.value[name], self.file, where)

    def items(self, name: str, most: int) -> list[Node]:
        """The entries of a list; empty if the list is missing."""
        if name not in self.value:
            return []
        node = self.at(name)
        if not isinstance(node.value, list):
            node.fail(f"is {shown(node.value)}; it must be a list")
        if len(node.value) > most:
            node.fail(f"has {len(node.value)} entries; it must have at most {most}")
        return [Node(each, self.file, f"{node.place}[{i}]") for i, each in enumerate(node.value)]

    def integer(self, low: int, high: int) -> int:
        if type(self.value) is not int or not low <= self.value <= high:
            self.fail(f"is {shown(self.value)}; it must be {low} to {high}")
        return int(self.value)

    def number(self, name: str, low: int, high: int, default: int | None = None) -> int:
        if default is not None and name not in self.value:
            return default
        return self.at(name).integer(low, high)

    def numbers(self, name: str, high: int, most: int) -> list[int]:
        return [each.integer(0, high) for each in self.items(name, most)]

    def flag(self, name: str, default: bool | None = None) -> bool:
        if default is not None and name not in self.value:
            return default
        node = self.at(name)
        if not isinstance(node.value, bool):
            node.fail(f"is {shown(node.value)}; it must be true or false")
        return node.value

    def word(self, name: str, words: Mapping[str, Any]) -> Any:
        node = self.at(name)
        if not isinstance(node.value, str) or node.value not in words:
            node.fail(f"is {shown(node.value)}; choose one of {', '.join(words)}")
        return words[node.value]


def shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return quoted(value if isinstance(value, str) else str(json.dumps(value)))
