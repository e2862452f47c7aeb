# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Errors for users. Each is one sentence: the problem, its place, and the valid values.

All derive from `TowpathError`. A mistake in a request is also a ValueError, and a failure of a run
is also a RuntimeError, so programs without knowledge of Towpath can catch them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_QUOTE_LENGTH_MAX = 60


class TowpathError(Exception):
    """Base class of all errors that Towpath defines."""


class ConfigError(TowpathError, ValueError):
    """A description, file or option that cannot be used.

    Its text is one line.

    Attributes:
        problem: the sentence without the place.
        file: the file with the error, or None.
        line: line of the error, from 1, or None.
        field: the field or option with the error, or None.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        where = file or ""
        if line is not None:
            where += f":{line}"
        sentence = ": ".join(part for part in (where, field, problem) if part)
        super().__init__(" ".join(sentence.split()))
        self.problem = problem
        self.file = file
        self.line = line
        self.field = field


class CompilationError(ConfigError):
    """A kernel's source does not compile; the text is the compiler's message."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.args = (text,)


class DescriptionError(TowpathError, ValueError):
    """A description that the core rejects; `specs/` converts it to a ConfigError.

    Attributes:
        field: path of the field, such as "router.hop_cycles"; "" if the error is not in a single
            field.
        problem: the sentence without the field.
    """

    def __init__(self, sentence: str, *, field: str = "", problem: str = "") -> None:
        super().__init__(sentence)
        self.field = field
        self.problem = problem


class TransportError(TowpathError, RuntimeError):
    """A wait between ranks that will not end.

    Attributes:
        kind: "peer_died": the process is gone, and every later call raises the same error;
            "timeout": the deadline passed, and the peer is slow, stopped or in another program;
            "disagreement": ranks made different calls, and no data was moved.
        peer: the responsible rank, or None if there is no single one.
    """

    def __init__(
        self,
        sentence: str,
        *,
        kind: Literal["peer_died", "timeout", "disagreement"] = "timeout",
        peer: int | None = None,
    ) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.peer = peer


class DeadlockError(TowpathError, RuntimeError):
    """A simulation has no event left that could end a wait.

    Schedules, kernels on a chip and packets on its network raise the same error.

    Attributes:
        cycle: the cycle of waits: each element waits for the next, and the last for the first.
            Empty if no cycle is the cause; the text then lists all waits.
    """

    def __init__(self, sentence: str, cycle: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.cycle = list(cycle)


class HazardError(TowpathError, RuntimeError):
    """A mistake in kernels that would corrupt some runs, found in every run.

    Attributes:
        hazard: its name, such as "source_overwritten"; docs/kernels.md lists all.
        culprit: name of the kernel with the mistake; "" for GPUs, where the text names the kernel.
        chip: the number of its chip in the cluster.
        core: position (x, y) of its core on the grid of NoC 0.
    """

    def __init__(
        self,
        sentence: str,
        *,
        hazard: str,
        culprit: str = "",
        chip: int = 0,
        core: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(sentence)
        self.hazard = hazard
        self.culprit = culprit
        self.chip = chip
        self.core = core


class RunError(TowpathError, RuntimeError):
    """A run that failed for a reason without its own type.

    Examples are a kernel that ends without a necessary barrier or runs beyond the limit of cycles,
    a mailbox name in use, and a library that is not installed. The text states the reason and the
    solution.
    """


class SweepError(TowpathError, RuntimeError):
    """A point of a sweep that could not be measured; its text names the point."""


class RankError(TowpathError, RuntimeError):
    """A rank of a live run that failed.

    Attributes:
        rank: the responsible rank.
        reason: the event, "failed (KeyError: 'x')" or "was killed by SIGKILL".
        others: the report of each other rank, one sentence by rank.
    """

    def __init__(self, sentence: str, rank: int, reason: str, others: dict[int, str]) -> None:
        super().__init__(sentence)
        self.rank = rank
        self.reason = reason
        self.others = others


@dataclass
class Interruption:
    """The message printed on Ctrl-C; a command that can be resumed sets it before it starts."""

    sentence: str = "interrupted"


def control_character(text: str) -> str | None:
    """The first character that would control a terminal or change the direction of text, if any.

    >>> control_character("two\\nlines"), control_character("a\\x1b[2J")
    (None, '\\x1b')
    """
    found = _CONTROL.search(text)
    return found[0] if found else None


def quoted(value: object) -> str:
    """The value as a short text of one line, whatever it contains.

    >>> quoted("two\\nlines")
    "'two\\\\nlines'"
    """
    text = ascii(value)
    if len(text) > _QUOTE_LENGTH_MAX:
        return text[: _QUOTE_LENGTH_MAX - 3] + "..."
    return text
