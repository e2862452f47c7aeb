# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as commands name them: of the kind that a command is about, or one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.cli.options import errors_name_options
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath import Chip, ChipCluster, Host, Machine
    from towpath.api.cluster import Cluster

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
    found: Cluster = _of_kind(name_or_file, Cluster, kinds, **sizes)
    return found


def any_machine(name_or_file: str, **sizes: Any) -> Machine:
    """A machine of any kind, likewise."""
    from towpath import Machine

    found: Machine = _of_kind(name_or_file, Machine, tuple(_WORDS), **sizes)
    return found


def chip_cluster(name_or_file: str) -> ChipCluster:
    """A cluster of chips, likewise."""
    from towpath import ChipCluster

    found: ChipCluster = _of_kind(name_or_file, ChipCluster, ("chip_cluster",))
    return found


def chip(name_or_file: str) -> Chip:
    """A chip, likewise."""
    from towpath import Chip

    found: Chip = _of_kind(name_or_file, Chip, ("chip",))
    return found


def host(name_or_file: str) -> Host:
    """A host, likewise."""
    from towpath import Host

    found: Host = _of_kind(name_or_file, Host, ("host",))
    return found


def _of_kind(name_or_file: str, kind: type[Machine], words: tuple[str, ...], **sizes: Any) -> Any:
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
