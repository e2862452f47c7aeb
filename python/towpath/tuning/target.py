# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Where `towpath tune COLLECTIVE` times its candidates, and which make sense there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from towpath.collectives import fabric, live
from towpath.collectives.gpus import channels_to_fill, gpus_used, hosts_of
from towpath.errors import ConfigError, quoted
from towpath.specs import catalogue
from towpath.tuning.collective import Options, Simulator

PROTOCOLS = ("Simple", "LL", "LL128")
_LIVE_CHANNELS = (1, 2, 4)


@dataclass(frozen=True)
class Asked:
    """The options of the command that say where and what; None is what the place suggests."""

    machine: str | None = None
    live: int | None = None
    hosts: int | None = None
    ranks: int | None = None
    ranks_per_host: int | None = None
    complete_from: str | None = None
    channels: tuple[int, ...] | None = None
    protocols: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Where:
    """A place.

    Attributes:
        name: short, for a folder.
        text: for people.
        options: what candidates are made of.
        simulator: None for processes of this host.
        is_gpus: whether NCCL could run there.
    """

    name: str
    text: str
    options: Options
    simulator: Simulator | None = None
    is_gpus: bool = False

    @property
    def kind(self) -> str:
        return "live" if self.simulator is None else "simulated"


def where_from(asked: Asked) -> Where:
    """What the options name.

    Raises:
        ConfigError: there is no such place, or an option is not for it.
    """
    if (asked.machine is None) == (asked.live is None):
        raise ConfigError("say where: either --machine NAME simulates or --live RANKS runs here")
    if asked.machine is None:
        return _live(asked)
    kind = catalogue.kind_of(asked.machine)
    if kind == "chip_cluster":
        return _chips(asked, asked.machine)
    return _mailboxes(asked, asked.machine) if kind == "mailbox_cluster" else _gpus(
        asked, asked.machine
    )  # fmt: skip


def _refuse(asked: Asked, names: tuple[str, ...], place: str) -> None:
    for name in names:
        if getattr(asked, name) is not None:
            raise ConfigError(
                f"--{name.replace('_', '-')} is for a machine of GPUs, not for {place}"
            )


def _live(asked: Asked) -> Where:
    _refuse(asked, ("hosts", "ranks", "ranks_per_host", "complete_from"), "processes of this host")
    ranks = asked.live or 0
    live.check_ranks(ranks)
    options = Options(ranks, asked.channels or _LIVE_CHANNELS, asked.protocols or ("Simple",))
    return Where(f"live-{ranks}", f"{ranks} processes of this host", options)


def _chips(asked: Asked, machine: str) -> Where:
    _refuse(asked, ("hosts", "ranks", "ranks_per_host", "complete_from"), "chips")
    simulator = Simulator(machine)
    cluster = simulator.spec.build()
    fabric.check_linked(machine, cluster)
    try:
        ring, mesh = (fabric.layout_of(cluster, on_grid) for on_grid in (False, True))
    except ValueError as error:
        raise ConfigError(f"--machine is {quoted(machine)}: {error}") from None
    options = Options(
        len(ring.places), asked.channels or powers_to(2 * fabric.planes(cluster)),
        asked.protocols or ("Simple",), (False, True),
        grid=fabric.grid_of(mesh.shape) if fabric.is_grid(mesh.shape) else {},
    )  # fmt: skip
    name = simulator.spec.name
    return Where(name, f"{name}, {len(ring.places)} chips", options, simulator)


def _mailboxes(asked: Asked, machine: str) -> Where:
    _refuse(asked, ("hosts", "ranks_per_host", "complete_from"), "a cluster with mailboxes")
    simulator = Simulator(machine, (None, asked.ranks, None))
    name, nodes = simulator.spec.name, simulator.spec.nodes.value
    options = Options(nodes, asked.channels or (1,), asked.protocols or ("Simple",))
    return Where(name, f"{name}, {nodes} nodes", options, simulator)


def _gpus(asked: Asked, machine: str) -> Where:
    simulator = Simulator(machine, (asked.hosts, asked.ranks, asked.complete_from))
    spec = simulator.spec
    gpus = gpus_used(spec, asked.ranks_per_host)
    options = Options(
        len(gpus), asked.channels or powers_to(channels_to_fill(spec)),
        asked.protocols or PROTOCOLS, hosts=hosts_of(spec, gpus),
    )  # fmt: skip
    text = f"{spec.name}, {len(gpus)} of {spec.ranks} GPUs on {spec.host_count} hosts"
    return Where(spec.name, text, options, replace(simulator, places=tuple(gpus)), is_gpus=True)


def powers_to(most: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, and the last one itself.

    >>> powers_to(24)
    (1, 2, 4, 8, 16, 24)
    """
    return tuple(sorted({*(1 << power for power in range(most.bit_length())), most}))
