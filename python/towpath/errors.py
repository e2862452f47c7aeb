# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The errors that users see. Each is one sentence: what is wrong, where, what is allowed.

All derive from `TowpathError`. A mistake in what was asked is also a ValueError, a failure of a run
also a RuntimeError, so that programs that know nothing of Towpath catch them as such.
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
        file: the file that is wrong, or None.
        line: its line, from 1, or None.
        field: the field or option that is wrong, or None.
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
    """A kernel's source that does not compile; its text is what the compiler says."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.args = (text,)


class DescriptionError(TowpathError, ValueError):
    """A description that the core refuses; `specs/` makes a ConfigError of it.

    Attributes:
        field: the path of the field, such as "router.hop_cycles"; "" where it is not one field's.
        problem: the sentence without the field.
    """

    def __init__(self, sentence: str, *, field: str = "", problem: str = "") -> None:
        super().__init__(sentence)
        self.field = field
        self.problem = problem


class TransportError(TowpathError, RuntimeError):
    """A wait between ranks that will not end.

    Attributes:
        kind: "peer_died": the process is gone, and every later call raises the same;
            "timeout": the deadline passed, and the peer is slow, stopped or in another program;
            "disagreement": ranks asked for different things, and nothing was started.
        peer: the rank that is the culprit, or None where there is no single one.
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
    """A simulation in which no event is left that could end a wait.

    Ranks of a schedule, kernels on a chip and packets on its network raise the same error.

    Attributes:
        cycle: who waits for whom: each waits for the next, and the last for the first. Empty where
            it is not known who should have acted; the text then names all that wait.
    """

    def __init__(self, sentence: str, cycle: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.cycle = list(cycle)


class HazardError(TowpathError, RuntimeError):
    """A mistake in kernels that would spoil some runs, found in every run.

    Attributes:
        hazard: its name, such as "source_overwritten"; docs/kernels.md lists all.
        culprit: the name of the kernel that made it; "" for a GPU's, which the text names.
        chip: the number of its chip in the cluster.
        core: the place (x, y) of its core on the grid of NoC 0.
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
    """A run that failed in a way that has no type of its own.

    A kernel that ends without a barrier it needs or goes on at the limit of cycles, a mailbox whose
    name is taken, a library that is not installed: the text says which, and what to do.
    """


class SweepError(TowpathError, RuntimeError):
    """A point of a sweep that could not be measured; its text names the point."""


class RankError(TowpathError, RuntimeError):
    """A rank of a live run that failed.

    Attributes:
        rank: the culprit.
        reason: what happened to it, "failed (KeyError: 'x')" or "was killed by SIGKILL".
        others: what each of the other ranks said, one sentence by rank.
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
    """The first character that would steer a terminal or turn the direction of text, if any.

    >>> control_character("two\\nlines"), control_character("a\\x1b[2J")
    (None, '\\x1b')
    """
    found = _CONTROL.search(text)
    return found[0] if found else None


def quoted(value: object) -> str:
    """The value as a short piece of one line, whatever it holds.

    >>> quoted("two\\nlines")
    "'two\\\\nlines'"
    """
    text = ascii(value)
    if len(text) > _QUOTE_LENGTH_MAX:
        return text[: _QUOTE_LENGTH_MAX - 3] + "..."
    return text
