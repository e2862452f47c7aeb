# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The errors that users see. Each is one sentence: what is wrong, where, what is allowed."""

from __future__ import annotations

from dataclasses import dataclass

_QUOTE_LENGTH_MAX = 60


class ConfigError(ValueError):
    """A description, file or option that cannot be used.

    Its text is one line. `file`, `line` and `field` say where, as far as that is known.
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


class DeadlockError(RuntimeError):
    """Kernels, or the traffic on a chip, wait for ever; its text names who waits for what."""


class SweepError(RuntimeError):
    """A point of a sweep that could not be measured; its text names the point."""


class RankError(RuntimeError):
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
    """What the user is told on ctrl-C; a command that can be resumed says so here beforehand."""

    sentence: str = "interrupted"


def quoted(value: object) -> str:
    """The value as a short piece of one line, whatever it holds.

    >>> quoted("two\\nlines")
    "'two\\\\nlines'"
    """
    text = ascii(value)
    if len(text) > _QUOTE_LENGTH_MAX:
        return text[: _QUOTE_LENGTH_MAX - 3] + "..."
    return text
