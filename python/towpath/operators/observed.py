# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The data that readers take from files of operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from towpath.operators.finding import Evidence, Finding, printable

FILE_BYTES_MAX = 512 << 20


@dataclass(frozen=True)
class Document:
    """A file of an operator.

    Attributes:
        file: its name.
        data: its bytes.
        text: the bytes as text. Undecodable bytes are replaced.
    """

    file: str
    data: bytes
    text: str

    @classmethod
    def of(cls, file: str, data: bytes) -> Document:
        """A document from its bytes."""
        return cls(file, data, data.decode("utf-8", "replace"))

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines with their numbers, from 1."""
        return enumerate(self.text.split("\n"), 1)

    def lines_with(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
        """The lines in which a pattern without line ends matches, with their numbers, from 1.

        The time of the remaining lines is only the time of one search through the text.
        """
        number, start, end = 1, 0, 0
        while match := pattern.search(self.text, end):
            begin = max(self.text.rfind("\n", start, match.start()) + 1, start)
            end = self.text.find("\n", match.start())
            end = len(self.text) if end < 0 else end
            number += self.text.count("\n", start, begin)
            start = begin
            yield number, self.text[begin:end]

    def evidence(self, line: int, text: str) -> Evidence:
        """A line of this file as evidence."""
        return Evidence.of(self.file, line, text)


@dataclass(frozen=True)
class Timed:
    """A measured time of one collective.

    Attributes:
        collective: its name, such as "all_reduce". Empty if the file does not state it.
        size_bytes: size of the whole array in bytes.
        time_us: time of one call in microseconds.
        busbw_gb_per_s: bus bandwidth in 1e9 bytes per second.
        ranks: number of ranks, or None.
        evidence: its line.
    """

    collective: str
    size_bytes: int
    time_us: float
    busbw_gb_per_s: float
    ranks: int | None
    evidence: Evidence


@dataclass
class Observed:
    """The content of files.

    Attributes:
        formats: names of the formats in it.
        times: measured times.
        findings: findings that follow from this file.
        facts: names and values for the reader of the answer.
        ranks: number of ranks, or None.
        hosts: names of the hosts.
        gpu: product name of the GPUs, or an empty string.
    """

    formats: list[str] = field(default_factory=list)
    times: list[Timed] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    ranks: int | None = None
    hosts: set[str] = field(default_factory=set)
    gpu: str = ""

    def add(self, other: Observed) -> None:
        """Adds the content of another file or format."""
        self.formats += [each for each in other.formats if each not in self.formats]
        self.times += other.times
        self.findings += other.findings
        self.facts |= other.facts
        self.ranks = self.ranks or other.ranks
        self.hosts |= other.hosts
        self.gpu = self.gpu or other.gpu

    def make_printable(self) -> None:
        """Replaces characters that would control a terminal, in all texts of the files."""
        self.findings = [each.printable() for each in self.findings]
        self.facts = {printable(name): printable(value) for name, value in self.facts.items()}
        self.hosts = set(map(printable, self.hosts))
        self.gpu = printable(self.gpu)


@dataclass(frozen=True)
class Reader:
    """A format.

    Attributes:
        name: the format in the words of its users.
        recognizes: True if a document contains it.
        read: reads all documents that contain it, as files of one job. Raises ConfigError.
    """

    name: str
    recognizes: Callable[[Document], bool]
    read: Callable[[Sequence[Document]], Observed]


def one_by_one(read: Callable[[Document], Observed]) -> Callable[[Sequence[Document]], Observed]:
    """A function that reads documents which have nothing in common."""

    def read_all(documents: Sequence[Document]) -> Observed:
        found = Observed()
        for document in documents:
            found.add(read(document))
        return found

    return read_all
