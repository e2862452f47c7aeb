# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines for programs: listed, loaded, shown, and run."""

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
        name: the name for `load`.
        kind: "gpu_cluster", "chip_cluster", "mailbox_cluster", "chip" or "host".
        description: one line of text.
    """

    name: str
    kind: str
    description: str

    def __repr__(self) -> str:
        return f"MachineInfo({self.name!r}, {self.kind})"


class Machine(ABC):
    """A described machine. `load` returns one; its class determines the available operations.

    Attributes:
        kind: "gpu_cluster", "chip_cluster", "mailbox_cluster", "chip" or "host".
        spec: the description: every value with its source. Its fields follow the file format of
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
        """Opens a name or a file of this kind; `options` are the options of `load`."""
        return cls(catalogue.load_any(name_or_file))

    @property
    def name(self) -> str:
        """Name of the machine, such as "dgx-h100"."""
        return self.spec.name

    @property
    def description(self) -> str:
        """Description in one line."""
        return self.spec.description

    @abstractmethod
    def show(self) -> str:
        """The machine as text.

        Returns:
            Lines with every value and its source.
        """

    def draw(self) -> str:
        """The machine as a drawing.

        Returns:
            The text of an SVG file.

        Raises:
            ConfigError: this kind of machine cannot be drawn.
        """
        raise ConfigError(f"'{self.name}' is a {self.kind}, which cannot be drawn")

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
        name_or_file: a name that `machines` lists, "NAME:HOSTS", or the path of a file: Towpath's
            YAML, an NCCL topology XML, the output of `nvidia-smi topo -m`, or one of Tenstorrent's
            SoC and cluster descriptors. The content determines the format.
        hosts: number of hosts, for GPUs.
        ranks: total number of GPUs or mailbox nodes.
        ranks_per_host: number of GPUs to use in each host.
        complete_from: shipped machine that supplies the values missing in topology files of GPUs.
        settings: changed values for a cluster of GPUs: "link_types.nvlink.rate_gb_per_s=400".
        without: failed devices of a cluster of GPUs: "host0/nic3"; "nic3" means this adapter in
            every host.
        harvest_mask: for a chip, a mask of its disabled rows or columns.

    Returns:
        A GpuCluster, ChipCluster, MailboxCluster, Chip or Host.

    Raises:
        ConfigError: there is no such machine, its description contains an error, or an option does
        not apply to its kind.

    >>> load("t3000")
    ChipCluster('t3000', 8 chips)
    """
    name, in_name = catalogue.named(os.fspath(name_or_file))
    if in_name and hosts is not None:
        raise ConfigError(
            f"'{name_or_file}' and hosts={hosts} both give the number of hosts; give one of them",
            field="hosts",
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
    """The machine of a name or a file, opened with the given options of `load`."""
    kind = catalogue.kind_of(name_or_file)
    machine = classes()[kind]._open(name_or_file, **options)
    machine._opened_as = (name_or_file, options)
    return machine


def classes() -> dict[str, type[Machine]]:
    """Registry with the class of each kind of machine. Classes are imported at their first use."""
    from towpath.api.chips import Chip, ChipCluster
    from towpath.api.clusters import GpuCluster, MailboxCluster
    from towpath.api.host import Host

    return {each.kind: each for each in (GpuCluster, ChipCluster, MailboxCluster, Chip, Host)}
