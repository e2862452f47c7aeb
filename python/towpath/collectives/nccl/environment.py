# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Variables that restrict NCCL's choice: NCCL_ALGO, NCCL_PROTO and numbers of channels.

NCCL_ALGO and NCCL_PROTO are lists in the syntax of src/graph/tuning.cc: "ring,tree", "^ll128",
"allreduce:tree;broadcast:ring". Only the first entry may omit the collective.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from towpath.collectives.nccl.communicator import (
    ALGORITHM_WORDS,
    ALGORITHMS,
    CHANNELS_MAX,
    COLLECTIVE_WORDS,
    PROTOCOLS,
)
from towpath.errors import ConfigError, quoted

VARIABLES = (
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MAX_CTAS",
    "NCCL_NVLS_ENABLE",
    "NCCL_CROSS_NIC",
    "RCCL_MSCCL_ENABLE",
)
# What each number may be, and what it is when it is not set.
_NUMBERS = {
    "NCCL_MIN_NCHANNELS": (0, CHANNELS_MAX, 0),
    "NCCL_MAX_NCHANNELS": (1, CHANNELS_MAX, CHANNELS_MAX),
    "NCCL_MIN_CTAS": (1, CHANNELS_MAX, 1),
    "NCCL_MAX_CTAS": (1, CHANNELS_MAX, CHANNELS_MAX),
    "NCCL_NVLS_ENABLE": (0, 2, 2),
    "NCCL_CROSS_NIC": (0, 2, 2),
    "RCCL_MSCCL_ENABLE": (0, 1, 1),
}


@dataclass(frozen=True)
class Environment:
    """The user's settings; by default none, which gives NCCL's own choice.

    Raises:
        ConfigError: a value is not valid in NCCL, or a variable is not supported here.
    """

    variables: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, variables: Mapping[str, str] | None) -> Environment:
        """The environment with these variables; each variable is checked.

        Raises:
            ConfigError: a value is not valid in NCCL, or a variable is not supported here.
        """
        made = cls(tuple(sorted((variables or {}).items())))
        for name, _ in made.variables:
            if name not in VARIABLES:
                allowed = ", ".join(VARIABLES)
                raise ConfigError(f"{quoted(name)} is not supported; choose one of {allowed}")
            if name in _NUMBERS:
                made.number(name)
        made.algorithms("all_reduce")
        made.protocols("all_reduce")
        return made

    def text(self, name: str) -> str | None:
        """The value as given; None if the variable is not set."""
        return dict(self.variables).get(name)

    def number(self, name: str) -> int:
        """The value of a numeric variable.

        Raises:
            ConfigError: the value is not a number, or is out of bounds.
        """
        least, most, default = _NUMBERS[name]
        text = self.text(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise ConfigError(
                f"{name} is {quoted(text)}; it must be a number from {least} to {most}"
            )
        if not least <= int(text) <= most:
            raise ConfigError(f"{name} is {int(text)}; it must be {least} to {most}")
        return int(text)

    @property
    def channels_min(self) -> int:
        """Minimum number of channels of rings and trees."""
        return max(self.number("NCCL_MIN_NCHANNELS"), self.number("NCCL_MIN_CTAS"))

    @property
    def channels_max(self) -> int:
        """Maximum number of channels of rings and trees."""
        return min(self.number("NCCL_MAX_NCHANNELS"), self.number("NCCL_MAX_CTAS"))

    def algorithms(self, collective: str) -> frozenset[str] | None:
        """The algorithms that NCCL_ALGO allows; None if it is not set.

        Raises:
            ConfigError: the value is not such a list.
        """
        text = self.text("NCCL_ALGO")
        words = {ALGORITHM_WORDS[name].lower(): name for name in ALGORITHMS}
        return None if text is None else _listed("NCCL_ALGO", text, words, collective)

    def protocols(self, collective: str) -> frozenset[str] | None:
        """The protocols that NCCL_PROTO allows; None if it is not set. LL128 then depends on the
        paths.

        Raises:
            ConfigError: the value is not such a list.
        """
        text = self.text("NCCL_PROTO")
        words = {word.lower(): word for word in PROTOCOLS}
        return None if text is None else _listed("NCCL_PROTO", text, words, collective)


def _listed(
    variable: str, text: str, words: dict[str, str], collective: str
) -> frozenset[str] | None:
    """The entries that a list allows for a collective; None if no entry applies to it."""
    left: frozenset[str] | None = None
    collectives = {word.lower(): name for name, word in COLLECTIVE_WORDS.items()}
    for number, entry in enumerate(text.split(";")):
        prefix, colon, elements = entry.rpartition(":")
        if colon and prefix.lower() not in collectives:
            allowed = ", ".join(COLLECTIVE_WORDS.values())
            raise ConfigError(
                f"{variable} names the collective {quoted(prefix)}; choose one of {allowed}"
            )
        if not colon and number > 0:
            raise ConfigError(f"{variable} needs a collective before {quoted(entry)}")
        is_negated = elements.startswith("^")
        named = set()
        for element in elements.removeprefix("^").split(","):
            if element.lower() not in words:
                allowed = ", ".join(words)
                raise ConfigError(f"{variable} has {quoted(element)}; choose one of {allowed}")
            named.add(words[element.lower()])
        if not colon or collectives[prefix.lower()] == collective:
            left = frozenset(set(words.values()) - named if is_negated else named)
    return left
