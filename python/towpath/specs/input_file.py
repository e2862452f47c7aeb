# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads untrusted files with limits on every dimension.

Sizes, depths and counts have limits, and any mistake raises a ConfigError that names the file and
the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import NamedTuple

import yaml

from towpath.errors import ConfigError, control_character, quoted

SIZE_MAX_BYTES = 4 * 1024 * 1024
_DEPTH_MAX = 32
_NODES_MAX = 200_000
_NUMBER_LENGTH_MAX = 40  # longer ones are text; no quantity needs more digits

_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}

FieldPath = tuple[str | int, ...]


class YamlDocument(NamedTuple):
    """Plain data, and the line of each field."""

    data: object
    lines: dict[FieldPath, int]


def read_text(path: str | FilePath, size_max_bytes: int = SIZE_MAX_BYTES) -> str:
    """Reads the text of a file.

    Raises:
        ConfigError: the file cannot be read, is larger than `size_max_bytes`, or is not UTF-8.
    """
    file = str(path)
    try:
        with open(path, "rb") as stream:
            content = stream.read(size_max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot be read: {reason}", file=file) from None
    if len(content) > size_max_bytes:
        line = content.count(b"\n") + 1
        problem = f"is beyond the {size_max_bytes} bytes that are read"
        raise ConfigError(problem, file=file, line=line)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise ConfigError(
            f"holds the byte 0x{byte:02x}, which is not UTF-8 text", file=file, line=line
        ) from None


def parse_yaml(text: str, file: str) -> YamlDocument:
    """Parses the one document in `text`, without aliases, tags or repeated fields.

    Words stay text: only true, false, null and numbers have other types.

    >>> parse_yaml("a: {b: [1, no, 2e3]}", "example").data
    {'a': {'b': [1, 'no', 2000.0]}}

    Raises:
        ConfigError: the text is not such a document.
    """
    try:
        return _YamlReader(text, file).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "something unexpected"
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"is not valid YAML: {problem}", file=file, line=line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(
            "is not valid YAML: it contains a character that YAML does not allow",
            file=file,
            line=line,
        ) from None


class _YamlReader:
    """Builds plain data from PyYAML's events, which arrive one by one, so every limit takes effect
    early.
    """

    def __init__(self, text: str, file: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=loader)
        self._file = file
        self._lines: dict[FieldPath, int] = {}
        self._nodes = 0

    def document(self) -> YamlDocument:
        event = self._next()
        while isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise ConfigError("is empty; it must be a YAML document", file=self._file, line=1)
        data = self._value(event, (), 0)
        end = self._next()
        while not isinstance(end, yaml.StreamEndEvent):
            if isinstance(end, yaml.DocumentStartEvent):
                raise self._error(end, "starts a second document; a file must have one")
            end = self._next()
        return YamlDocument(data, self._lines)

    def _next(self) -> yaml.Event:
        return next(self._events)

    def _error(self, event: yaml.Event, problem: str) -> ConfigError:
        return ConfigError(problem, file=self._file, line=_line_of(event))

    def _value(self, event: yaml.Event, path: FieldPath, depth: int) -> object:
        self._nodes += 1
        if self._nodes > _NODES_MAX:
            raise self._error(event, f"has too many values; it must have at most {_NODES_MAX}")
        if depth > _DEPTH_MAX:
            raise self._error(
                event, f"is nested too deeply; it must have at most {_DEPTH_MAX} levels"
            )
        if isinstance(event, yaml.AliasEvent):
            raise self._error(event, f"uses the alias {quoted(event.anchor)}; write the value out")
        assert isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent))  # no other is left
        if event.tag not in (None, "!"):
            raise self._error(event, f"uses the tag {quoted(event.tag)}; tags are not supported")
        self._lines.setdefault(path, _line_of(event))
        if isinstance(event, yaml.ScalarEvent):
            self._check_text(event)
            return _scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._mapping(path, depth)

    def _check_text(self, event: yaml.ScalarEvent) -> None:
        control = control_character(event.value)
        if control is not None:
            raise self._error(event, f"contains the character {ascii(control)}, which is not text")

    def _sequence(self, path: FieldPath, depth: int) -> list[object]:
        values: list[object] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            values.append(self._value(event, (*path, len(values)), depth + 1))
        return values

    def _mapping(self, path: FieldPath, depth: int) -> dict[str, object]:
        values: dict[str, object] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._error(event, "has a field whose name is not a word")
            self._check_text(event)
            name = event.value
            if name in values:
                raise self._error(event, f"has the field {quoted(name)} twice")
            own_path = (*path, name)
            self._lines[own_path] = _line_of(event)
            values[name] = self._value(self._next(), own_path, depth + 1)
        return values


def _line_of(event: yaml.Event) -> int:
    """The line on which an event begins, from 1."""
    assert event.start_mark is not None  # only events that a program makes by itself have none
    return event.start_mark.line + 1


def _scalar(event: yaml.ScalarEvent) -> object:
    text = event.value
    if event.style is not None and event.style != "":
        return text
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _NUMBER_LENGTH_MAX:
        if _INTEGER.match(text):
            return int(text)
        if _FLOAT.match(text):
            return float(text)
    return text
