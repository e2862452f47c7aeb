# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The words of schedules: collectives, algorithms, protocols; each in all its spellings."""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache

from towpath import _core
from towpath.errors import ConfigError
from towpath.names import chosen

PROTOCOLS: tuple[str, ...] = _core.PROTOCOLS
ROOTED = ("broadcast", "reduce", "gather", "scatter")
REDUCING = ("all_reduce", "reduce", "reduce_scatter")
CHANNELS_MAX: int = _core.CHANNELS_MAX


@lru_cache
def collective_named(text: str, what: str = "collective") -> str:
    """The collective that a text names: "all_reduce", "AllReduce", "all-reduce".

    Args:
        text: as typed.
        what: the option or field, for the error.

    Raises:
        ConfigError: there is no such collective.
    """
    return chosen(what, text, [member.name for member in _core.Collective], {})


@lru_cache
def protocol_named(text: str, what: str = "protocol") -> str:
    """The protocol that a text names: "Simple", "simple", "ll128".

    Args:
        text: as typed.
        what: the option or field, for the error.

    Raises:
        ConfigError: there is no such protocol.
    """
    return chosen(what, text, PROTOCOLS, {})


def algorithms_within(collective: str, reaches: Container[_core.Reach]) -> list[str]:
    """The algorithms of a collective that run where ranks reach each other in some ways only.

    Args:
        collective: one of `collective_named`.
        reaches: the ways; `Reach.fifo`, sending and receiving, is what every machine has.

    Returns:
        Their names, the collective's default first.
    """
    return [
        each.name
        for each in _core.algorithms()
        if each.collective.name == collective and each.reach in reaches
    ]


@lru_cache
def algorithm_named(text: str, collective: str, what: str = "algorithm") -> str:
    """The algorithm of a collective that a text names: "ring_all_reduce", "ring", "one-shot".

    Args:
        text: as typed.
        collective: one of `collective_named`.
        what: the option or field, for the error.

    Raises:
        ConfigError: the collective has no such algorithm, or no described machine could run it.
    """
    if re.sub(r"[^a-z]", "", text.lower()).startswith("collnet"):
        raise ConfigError(
            "CollNet needs switches that sum what passes between hosts (SHARP), which no machine "
            f"here describes; `towpath algorithms` lists what {collective} has",
            field=what,
        )
    known = _core.algorithm_names(_core.collective_from(collective))
    short = {name.removesuffix(f"_{collective}"): name for name in known}
    return chosen(what, text, known, short)


def check_root(root: int | None, collective: str) -> None:
    """Refuses a root of a collective that has none; rank 0 and None change nothing.

    Raises:
        ConfigError: the root would be ignored.
    """
    if root and collective not in ROOTED:
        raise ConfigError(
            f"{collective} has no root, and root is {root}; {', '.join(ROOTED)} have one",
            field="root",
        )


def check_operation(operation: str, collective: str) -> None:
    """Refuses a reduction of a collective that reduces nothing; a sum, the default, is none.

    Raises:
        ConfigError: the reduction would be ignored.
    """
    if operation != "sum" and collective not in REDUCING:
        raise ConfigError(
            f"{collective} reduces nothing, and op is {operation}; {', '.join(REDUCING)} do",
            field="op",
        )


def check_channels(channels: int | None) -> None:
    """Refuses a number of channels that no schedule has; None: the machine's.

    Raises:
        ConfigError: it is not from 1 to CHANNELS_MAX.
    """
    if channels is not None and not 1 <= channels <= CHANNELS_MAX:
        raise ConfigError(
            f"channels is {channels}; allowed are 1 to {CHANNELS_MAX}, and none for what the "
            "machine needs",
            field="channels",
        )
