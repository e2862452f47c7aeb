# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Machines on whose ranks collectives run: which schedules make sense there, where ranks are.

A new kind of machine is a class here, and a name in SITES.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from towpath import _core
from towpath.collectives import fabric
from towpath.collectives.gpus import (
    channels_to_fill,
    channels_worth_it,
    gpus_used,
    hosts_of,
    reaches_of,
)
from towpath.collectives.places import ChipPlace, GpuPlace, MailboxPlace, Place
from towpath.errors import ConfigError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import PROTOCOLS
from towpath.specs import catalogue
from towpath.specs.kinds import KINDS, check_options

if TYPE_CHECKING:
    from towpath.collectives.link_faults import LinkFault

Numbers = tuple[int, ...] | None
Words = tuple[str, ...] | None


@dataclass(frozen=True)
class Options:
    """What candidates are made of besides the collective's algorithms.

    Attributes:
        ranks: how many take part.
        channels: numbers of channels to try.
        protocols: Simple, LL, LL128.
        both_ways: whether every other ring may go round the other way.
        hosts: over which the ranks are spread.
        grid: the columns and rings of a mesh or torus of chips, as ScheduleSource has them; none:
            there is no grid.
        reaches: how ranks reach each other.
    """

    ranks: int
    channels: tuple[int, ...]
    protocols: tuple[str, ...] = ("Simple",)
    both_ways: tuple[bool, ...] = (False,)
    hosts: int = 1
    grid: dict[str, Any] = field(default_factory=dict)
    reaches: tuple[_core.Reach, ...] = (_core.Reach.fifo,)


class Wanted(Protocol):
    """What a schedule is to do."""

    @property
    def collective(self) -> str:
        """Its name."""
        ...

    @property
    def algorithm(self) -> str | None:
        """Its name; None: the collective's first."""
        ...

    @property
    def protocol(self) -> str:
        """Simple, LL or LL128."""
        ...

    @property
    def channels(self) -> int | None:
        """How many; None: what the machine needs."""
        ...

    @property
    def root(self) -> int:
        """The root rank of broadcast and reduce."""
        ...

    @property
    def sizes_bytes(self) -> tuple[int, ...]:
        """The sizes that it is for."""
        ...


# How networks on chips are simulated.
NETWORKS = ("flits", "packets")


class Site(ABC):
    """A machine on whose ranks collectives run.

    Attributes:
        spec: the description.
        simulated_bytes_max: the largest size at which candidates are simulated; None: any.
        has_link_faults: whether links may fail.
        has_networks_on_chip: whether there are such, which may be simulated packet by packet.
        has_nccl: whether NCCL could run there.
        protocols: protocols that differ on it.
    """

    spec: Any
    simulated_bytes_max: ClassVar[int | None] = 64 << 10
    has_link_faults: ClassVar[bool] = False
    has_networks_on_chip: ClassVar[bool] = False
    has_nccl: ClassVar[bool] = False
    protocols: ClassVar[tuple[str, ...]] = ("Simple",)

    @property
    @abstractmethod
    def ranks(self) -> int:
        """How many ranks there is room for."""

    def check_network(self, network: str) -> None:
        """Refuses what is no model of networks on chips, or is asked for where there are none.

        Args:
            network: one of `NETWORKS`.

        Raises:
            ConfigError: it is refused.
        """
        if network not in NETWORKS:
            raise ConfigError(
                f"network is '{network}'; allowed are {' and '.join(NETWORKS)}", field="network"
            )
        if network != "flits" and not self.has_networks_on_chip:
            raise ConfigError(
                f"networks on chips may be simulated packet by packet, such as those of t3000; "
                f"'{self.spec.name}' has none",
                field="network",
            )

    @abstractmethod
    def source_for(self, wanted: Wanted) -> ScheduleSource:
        """The schedule of a named algorithm as this machine takes it."""

    @abstractmethod
    def options_for(
        self, channels: Numbers, protocols: Words, collective: str | None = None
    ) -> Options:
        """What candidates are made of; None leaves a choice to the machine."""

    @abstractmethod
    def place_for(
        self,
        schedule: _core.Schedule,
        source: ScheduleSource | None,
        faults: tuple[LinkFault, ...] = (),
    ) -> Place:
        """Where the ranks of a schedule run.

        Raises:
            ConfigError: there are fewer places than ranks.
        """

    @abstractmethod
    def where(self, ranks: int) -> str:
        """The machine and its ranks in words."""


class GpuSite(Site):
    """See Site: servers with GPUs."""

    simulated_bytes_max = None
    has_nccl = True
    protocols = PROTOCOLS

    def __init__(
        self, name_or_file: str, *, ranks_per_host: int | None = None, **sizes: Any
    ) -> None:
        self.spec = catalogue.load(name_or_file, **sizes)
        self.ranks_per_host = ranks_per_host
        self._gpus = gpus_used(self.spec, ranks_per_host)

    @property
    def ranks(self) -> int:
        """See Site."""
        return len(self._gpus)

    @cached_property
    def _machine(self) -> _core.Machine:
        return self.spec.build()

    def source_for(self, wanted: Wanted) -> ScheduleSource:
        """Rings that fill the fastest link, on the rails of several hosts."""
        worth_it = channels_worth_it(self.ranks, max(wanted.sizes_bytes))
        channels = wanted.channels or min(channels_to_fill(self.spec, wanted.collective), worth_it)
        return ScheduleSource(
            None, wanted.collective, wanted.algorithm, self.ranks, channels, wanted.protocol,
            wanted.root, hosts_of(self.spec, self._gpus),
        )  # fmt: skip

    def options_for(
        self, channels: Numbers, protocols: Words, collective: str | None = None
    ) -> Options:
        """All protocols, and channels up to what fills the fastest link."""
        return Options(
            self.ranks, channels or powers_to(channels_to_fill(self.spec, collective)),
            protocols or self.protocols, hosts=hosts_of(self.spec, self._gpus),
            reaches=reaches_of(self.spec, self._gpus),
        )  # fmt: skip

    def place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None,
        faults: tuple[LinkFault, ...] = (),
    ) -> GpuPlace:  # fmt: skip
        """The first GPUs, in the order of ranks."""
        ranks = _check_ranks(self.spec.name, schedule, self.ranks, "GPUs in use; load it larger")
        return GpuPlace(self._machine, tuple(self._gpus[:ranks]))

    def where(self, ranks: int) -> str:
        """The machine and its ranks in words."""
        spec = self.spec
        hosts = "1 host" if spec.host_count == 1 else f"{spec.host_count} hosts"
        return f"{spec.name}, {ranks} of {spec.ranks} GPUs on {hosts}"


class MailboxSite(Site):
    """See Site: nodes with mailboxes."""

    def __init__(self, name_or_file: str, *, ranks: int | None = None) -> None:
        spec = catalogue.load_mailbox_cluster(name_or_file)
        self.spec = spec if ranks is None else spec.with_figures(nodes=ranks)

    @property
    def ranks(self) -> int:
        """See Site."""
        return self.spec.nodes.value

    @cached_property
    def _cluster(self) -> _core.MailboxCluster:
        return self.spec.build()

    def source_for(self, wanted: Wanted) -> ScheduleSource:
        """One channel: all messages of a node leave through one packetizer."""
        return ScheduleSource(
            None, wanted.collective, wanted.algorithm, self.ranks, wanted.channels or 1,
            wanted.protocol, wanted.root,
        )  # fmt: skip

    def options_for(
        self, channels: Numbers, protocols: Words, collective: str | None = None
    ) -> Options:
        """One channel, and the protocol Simple: the others cost the same here."""
        return Options(self.ranks, channels or (1,), protocols or self.protocols)

    def place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None,
        faults: tuple[LinkFault, ...] = (),
    ) -> MailboxPlace:  # fmt: skip
        """Rank r on node r."""
        _check_ranks(self.spec.name, schedule, self.ranks, "nodes; load it with ranks=")
        return MailboxPlace(self._cluster)

    def where(self, ranks: int) -> str:
        """The cluster and its ranks in words."""
        return f"{self.spec.name}, {ranks} of {self.ranks} nodes"


class ChipSite(Site):
    """See Site: chips that Ethernet joins."""

    has_link_faults = True
    has_networks_on_chip = True
    simulated_bytes_max = 4 << 20

    def __init__(self, name_or_file: str) -> None:
        self.spec = catalogue.load_chip_cluster(name_or_file)

    @property
    def ranks(self) -> int:
        """See Site."""
        return len(self.spec.chips)

    @cached_property
    def cluster(self) -> _core.ChipCluster:
        cluster = self.spec.build()
        fabric.check_linked(self.spec.name, cluster)
        return cluster

    def _layout(self, on_grid: bool) -> fabric.Layout:
        try:
            return fabric.layout_of(self.cluster, on_grid)
        except ValueError as error:
            raise ConfigError(str(error), field=f"cluster '{self.spec.name}'") from None

    def _planes(self, layout: fabric.Layout) -> int:
        try:
            return _core.fabric_planes(self.cluster, layout.shape)
        except ValueError as error:
            raise ConfigError(str(error), field=f"cluster '{self.spec.name}'") from None

    def _channels(self, algorithm: str, layout: fabric.Layout) -> int:
        if fabric.is_multicast(algorithm):
            return 1
        return (1 if fabric.is_pairwise(algorithm) else 2) * self._planes(layout)

    def source_for(self, wanted: Wanted) -> ScheduleSource:
        """Rings both ways over all parallel links, or a grid on the whole mesh."""
        on_grid = fabric.is_on_grid(wanted.algorithm)
        layout = self._layout(on_grid)
        source = ScheduleSource(
            None, wanted.collective, wanted.algorithm, len(layout.places),
            wanted.channels or 1, wanted.protocol, wanted.root, both_ways=True,
        )  # fmt: skip
        if not wanted.channels:
            source = replace(source, channels=self._channels(source.algorithm_name(), layout))
        if not on_grid:
            return source
        grid: dict[str, Any] = fabric.grid_of(layout.shape)
        return replace(source, **grid)

    def options_for(
        self, channels: Numbers, protocols: Words, collective: str | None = None
    ) -> Options:
        """Rings one way and both ways, grids where the chips make one."""
        ring, mesh = self._layout(False), self._layout(True)
        return Options(
            len(ring.places), channels or powers_to(2 * self._planes(ring)),
            protocols or self.protocols, (False, True), reaches=fabric.reaches_of(ring.shape),
            grid=fabric.grid_of(mesh.shape) if fabric.is_grid(mesh.shape) else {},
        )  # fmt: skip

    def place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None,
        faults: tuple[LinkFault, ...] = (),
    ) -> ChipPlace:  # fmt: skip
        """Along the ring of the fabric, or row by row on its mesh."""
        on_grid = source is not None and fabric.is_on_grid(source.algorithm)
        layout = self._layout(on_grid)
        ranks = _check_ranks(self.spec.name, schedule, len(layout.places), "chips")
        return ChipPlace(self.cluster, layout.places[:ranks], faults, layout.shape)

    def where(self, ranks: int) -> str:
        """The cluster and its ranks in words."""
        return f"{self.spec.name}, {ranks} of {self.ranks} chips"


def _check_ranks(name: str, schedule: _core.Schedule, places: int, what: str) -> int:
    """The ranks of a schedule, each of which needs a place.

    Raises:
        ConfigError: there are fewer places.
    """
    ranks = schedule.rank_count
    if ranks > places:
        raise ConfigError(
            f"schedule '{schedule.name}' has {ranks} ranks; '{name}' has {places} {what}"
        )
    return ranks


def powers_to(most: int) -> tuple[int, ...]:
    """1, 2, 4 and so on, and the last one itself.

    >>> powers_to(24)
    (1, 2, 4, 8, 16, 24)
    """
    return tuple(sorted({*(1 << power for power in range(most.bit_length())), most}))


# The registry: the class of each kind on which collectives run.
SITES: dict[str, Callable[..., Site]] = {
    "gpu_cluster": GpuSite,
    "chip_cluster": ChipSite,
    "mailbox_cluster": MailboxSite,
}


def open_site(name_or_file: str, **options: Any) -> Site:
    """The machine that a name or a file describes.

    Args:
        name_or_file: as for `towpath.load`.
        options: those of `towpath.load` that are given.

    Raises:
        ConfigError: there is no such machine, no collective runs on it, or an option is not for its
            kind.
    """
    kind = catalogue.kind_of(name_or_file)
    check_options(name_or_file, kind, options)
    if kind not in SITES:
        able = ", ".join(KINDS[each].plural for each in SITES)
        raise ConfigError(
            f"is a {KINDS[kind].words}; collectives run on {able}", file=name_or_file, line=1
        )
    return SITES[kind](name_or_file, **options)
