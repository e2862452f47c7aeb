# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as a program handles them: listed, loaded, shown, and run on."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from towpath.errors import ConfigError
from towpath.specs import catalogue, shipped
from towpath.specs.kinds import KINDS, check_options


@dataclass(frozen=True)
class MachineInfo:
    """A machine that comes with Towpath.

    Attributes:
        name: for `load`.
        kind: "gpu_cluster", "chip_cluster", "mailbox_cluster", "chip" or "host".
        description: one line.
    """

    name: str
    kind: str
    description: str

    def __repr__(self) -> str:
        return f"MachineInfo({self.name!r}, {self.kind})"


class Machine(ABC):
    """A described machine. `load` makes one; its class says what can be done with it.

    Attributes:
        kind: "gpu_cluster", "chip_cluster", "mailbox_cluster", "chip" or "host".
        spec: the description: every figure with its source. Its fields follow the file format of
            docs/machines.md and are not part of the stable interface.
    """

    kind: ClassVar[str]

    def __init__(self, spec: Any) -> None:
        """Wraps a checked description; users call `load`."""
        self.spec = spec
        # The name or file and the options, for other processes, which open it themselves.
        self._opened_as: tuple[str, dict[str, Any]] | None = None

    @classmethod
    def _open(cls, name_or_file: str, **options: Any) -> Machine:
        """What a name or a file of this kind describes; `options` are those of `load`."""
        return cls(catalogue.load_any(name_or_file))

    @property
    def name(self) -> str:
        """Its name, such as "dgx-h100"."""
        return self.spec.name

    @property
    def description(self) -> str:
        """One line about it."""
        return self.spec.description

    @abstractmethod
    def show(self) -> str:
        """The machine as text.

        Returns:
            Lines with every figure and its source.
        """

    def draw(self) -> str:
        """The machine as a drawing.

        Returns:
            The text of an SVG file.

        Raises:
            ConfigError: there is nothing to draw.
        """
        raise ConfigError(f"'{self.name}' is a {self.kind}, of which there is no drawing")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def machines() -> list[MachineInfo]:
    """The machines and chips that come with Towpath.

    Returns:
        One entry per machine, by kind and name.

    Examples:
        >>> [machine.name for machine in machines() if machine.kind == "chip"]
        ['blackhole', 'wormhole']
    """
    return [
        MachineInfo(name, kind, shipped.description(name))
        for kind in KINDS
        for name in shipped.names(kind)
    ]


def load(
    name_or_file: str | os.PathLike[str],
    *,
    hosts: int | None = None,
    ranks: int | None = None,
    ranks_per_host: int | None = None,
    complete_from: str | None = None,
    settings: Iterable[str] = (),
    without: Iterable[str] = (),
    harvest_mask: int | None = None,
) -> Machine:
    """A machine by its name, or from a file of any kind that Towpath reads.

    Args:
        name_or_file: a name that `machines` lists, "NAME:HOSTS", or the path of a file, known by
            its content: our YAML, an NCCL topology XML, the output of `nvidia-smi topo -m`, or one
            of Tenstorrent's SoC and cluster descriptors.
        hosts: another number of hosts, for GPUs.
        ranks: another number of GPUs or mailbox nodes altogether.
        ranks_per_host: use only this many GPUs of each host.
        complete_from: for topology files of GPUs, the shipped machine that supplies what they do
            not say.
        settings: other values for a cluster of GPUs: "link_types.nvlink.rate_gb_per_s=400".
        without: devices of a cluster of GPUs that have failed: "host0/nic3"; "nic3" is that of
            every host.
        harvest_mask: for a chip, which rows or columns it lacks, as bits.

    Returns:
        A GpuCluster, ChipCluster, MailboxCluster, Chip or Host.

    Raises:
        ConfigError: there is no such machine, something in it is wrong, or an option is not for
            its kind.

    >>> load("t3000")
    ChipCluster('t3000', 8 chips)
    """
    name, in_name = catalogue.named(os.fspath(name_or_file))
    if in_name and hosts is not None:
        raise ConfigError(
            f"'{name_or_file}' and hosts={hosts} both say how many hosts", field="hosts"
        )
    options = {
        "hosts": in_name.get("hosts", hosts), "ranks": ranks, "ranks_per_host": ranks_per_host,
        "complete_from": complete_from, "settings": tuple(settings) or None,
        "without": tuple(without) or None, "harvest_mask": harvest_mask,
    }  # fmt: skip
    given = {option: value for option, value in options.items() if value is not None}
    kind = catalogue.kind_of(name)
    check_options(name, kind, given)
    return opened(name, given)


def opened(name_or_file: str, options: dict[str, Any]) -> Machine:
    """The machine of a name or a file, with the options of `load` that were given."""
    kind = catalogue.kind_of(name_or_file)
    machine = classes()[kind]._open(name_or_file, **options)
    machine._opened_as = (name_or_file, options)
    return machine


def classes() -> dict[str, type[Machine]]:
    """The registry: the class of each kind of machine. They are imported at the first use."""
    from towpath.api.chips import Chip, ChipCluster
    from towpath.api.clusters import GpuCluster, MailboxCluster
    from towpath.api.host import Host

    return {each.kind: each for each in (GpuCluster, ChipCluster, MailboxCluster, Chip, Host)}
