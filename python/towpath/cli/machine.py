# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as commands name them: of the kind that a command is about, or one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from towpath.cli.options import errors_name_options
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath import Chip, ChipCluster, Host, Machine
    from towpath.api.cluster import Cluster

Kind = TypeVar("Kind", bound="Machine")
_WORDS = {
    "gpu_cluster": "cluster of GPUs",
    "chip_cluster": "cluster of chips",
    "mailbox_cluster": "cluster with mailboxes",
    "chip": "chip",
    "host": "host",
}


def cluster(name_or_file: str, **sizes: Any) -> Cluster:
    """A machine on which collectives run.

    Args:
        name_or_file: as typed.
        sizes: options of `towpath.load` that were given.

    Raises:
        ConfigError: there is no such machine, or it is of another kind.
    """
    from towpath.api.cluster import Cluster

    kinds = ("gpu_cluster", "chip_cluster", "mailbox_cluster")
    return _of_kind(name_or_file, Cluster, kinds, **sizes)


def any_machine(name_or_file: str, **sizes: Any) -> Machine:
    """A machine of any kind, likewise."""
    from towpath import Machine

    return _of_kind(name_or_file, Machine, tuple(_WORDS), **sizes)


def chip_cluster(name_or_file: str) -> ChipCluster:
    """A cluster of chips, likewise."""
    from towpath import ChipCluster

    return _of_kind(name_or_file, ChipCluster, ("chip_cluster",))


def chip(name_or_file: str) -> Chip:
    """A chip, likewise."""
    from towpath import Chip

    return _of_kind(name_or_file, Chip, ("chip",))


def host(name_or_file: str) -> Host:
    """A host, likewise."""
    from towpath import Host

    return _of_kind(name_or_file, Host, ("host",))


def _of_kind(name_or_file: str, kind: type[Kind], words: tuple[str, ...], **sizes: Any) -> Kind:
    import towpath
    from towpath.names import unknown
    from towpath.specs import shipped

    def known() -> list[str]:
        return [machine.name for machine in towpath.machines() if machine.kind in words]

    if name_or_file not in shipped.kinds() and not Path(name_or_file).is_file():
        raise unknown("there is no machine or file", name_or_file, known())
    with errors_name_options():
        machine = towpath.load(name_or_file, **sizes)
    if isinstance(machine, kind):
        return machine
    wanted = " or ".join(f"a {_WORDS[word]}" for word in words)
    raise ConfigError(
        f"is a {_WORDS[machine.kind]}; this command is for {wanted}: {', '.join(known())}",
        file=name_or_file,
    )
