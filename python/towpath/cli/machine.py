# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines of commands: each of the kind that the command needs, or one error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from towpath.cli.options import errors_name_options
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath import Chip, ChipCluster, GpuCluster, Host, Machine
    from towpath.api.cluster import Cluster


def cluster(name_or_file: str, **sizes: Any) -> Cluster:
    """A machine that runs collectives.

    Args:
        name_or_file: the given name or file.
        sizes: the given options of `towpath.load`.

    Raises:
        ConfigError: there is no such machine, or it is of another kind.
    """
    from towpath.api.cluster import Cluster

    found: Cluster = _load(name_or_file, Cluster, **sizes)
    return found


def any_machine(name_or_file: str, **sizes: Any) -> Machine:
    """A machine of any kind. Raises ConfigError."""
    from towpath import Machine

    found: Machine = _load(name_or_file, Machine, **sizes)
    return found


def gpu_cluster(name_or_file: str, **sizes: Any) -> GpuCluster:
    """A machine with GPUs. Raises ConfigError."""
    from towpath import GpuCluster

    found: GpuCluster = _load(name_or_file, GpuCluster, **sizes)
    return found


def one_setting(settings: list[str] | None) -> tuple[str, ...]:
    """The settings of a machine, each with one value.

    Raises:
        ConfigError: one has several values.
    """
    if not settings:
        return ()
    from towpath.specs.override import combinations

    found = combinations(settings)
    if len(found) > 1:
        raise ConfigError("--set has several values; only `towpath run` accepts this")
    return found[0]


def chip_cluster(name_or_file: str) -> ChipCluster:
    """A cluster of chips. Raises ConfigError."""
    from towpath import ChipCluster

    found: ChipCluster = _load(name_or_file, ChipCluster)
    return found


def chip(name_or_file: str) -> Chip:
    """A chip. Raises ConfigError."""
    from towpath import Chip

    found: Chip = _load(name_or_file, Chip)
    return found


def host(name_or_file: str) -> Host:
    """A host. Raises ConfigError."""
    from towpath import Host

    found: Host = _load(name_or_file, Host)
    return found


def _load(name_or_file: str, wanted: type[Any], **sizes: Any) -> Any:
    import towpath
    from towpath.api.machine import classes
    from towpath.names import unknown
    from towpath.specs import catalogue, shipped
    from towpath.specs.kinds import KINDS

    kinds = [kind for kind, found in classes().items() if issubclass(found, wanted)]
    known = [name for kind in kinds for name in shipped.names(kind)]
    name, _ = catalogue.named(name_or_file)
    if name not in shipped.kinds() and not Path(name).is_file():
        raise unknown("there is no machine or file", name_or_file, known)
    with errors_name_options():
        machine = towpath.load(name_or_file, **sizes)
    if isinstance(machine, wanted):
        return machine
    allowed = " or ".join(f"a {KINDS[kind].words}" for kind in kinds)
    raise ConfigError(
        f"is a {KINDS[machine.kind].words}; this command is for {allowed}: {', '.join(known)}",
        file=name_or_file,
    )
