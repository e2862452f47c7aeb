# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Names in schedules: collectives, algorithms, protocols; each in all its spellings."""

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
    """The collective that a text selects: "all_reduce", "AllReduce", "all-reduce".

    Args:
        text: the given text.
        what: name of the option or field for the error.

    Raises:
        ConfigError: there is no such collective.
    """
    return chosen(what, text, [member.name for member in _core.Collective], {})


@lru_cache
def protocol_named(text: str, what: str = "protocol") -> str:
    """The protocol that a text selects: "Simple", "simple", "ll128".

    Args:
        text: the given text.
        what: name of the option or field for the error.

    Raises:
        ConfigError: there is no such protocol.
    """
    return chosen(what, text, PROTOCOLS, {})


def algorithms_within(collective: str, reaches: Container[_core.Reach]) -> list[str]:
    """The algorithms of a collective that run with certain forms of access between ranks.

    Args:
        collective: one of `collective_named`.
        reaches: the forms of access; `Reach.fifo`, sending and receiving, is available on every
            machine.

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
    """The algorithm of a collective that a text selects: "ring_all_reduce", "ring", "one-shot".

    Args:
        text: the given text.
        collective: one of `collective_named`.
        what: name of the option or field for the error.

    Raises:
        ConfigError: the collective has no such algorithm, or no described machine could run it.
    """
    if re.sub(r"[^a-z]", "", text.lower()).startswith("collnet"):
        raise ConfigError(
            "CollNet needs switches that sum data between hosts (SHARP), which no machine here "
            f"describes; `towpath algorithms` lists the algorithms of {collective}",
            field=what,
        )
    known = _core.algorithm_names(_core.collective_from(collective))
    short = {name.removesuffix(f"_{collective}"): name for name in known}
    return chosen(what, text, known, short)


def check_root(root: int | None, collective: str) -> None:
    """Rejects a root for a collective without a root; rank 0 and None have no effect.

    Raises:
        ConfigError: the root would be ignored.
    """
    if root and collective not in ROOTED:
        raise ConfigError(
            f"{collective} has no root, but root is {root}; only {', '.join(ROOTED)} have one",
            field="root",
        )


def check_operation(operation: str, collective: str) -> None:
    """Rejects a reduction for a collective without a reduction; a sum, the default, is accepted.

    Raises:
        ConfigError: the reduction would be ignored.
    """
    if operation != "sum" and collective not in REDUCING:
        raise ConfigError(
            f"{collective} has no reduction, but op is {operation}; only {', '.join(REDUCING)} "
            "have one",
            field="op",
        )


def check_channels(channels: int | None) -> None:
    """Rejects a number of channels that no schedule can have; None: the machine's number.

    Raises:
        ConfigError: the number is not from 1 to CHANNELS_MAX.
    """
    if channels is not None and not 1 <= channels <= CHANNELS_MAX:
        raise ConfigError(
            f"channels is {channels}; it must be 1 to {CHANNELS_MAX}, or omitted to use the "
            "machine's number",
            field="channels",
        )
