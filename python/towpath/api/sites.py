# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What each kind of machine makes of a request: its schedule, where ranks run, what is drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from towpath import _core
from towpath.collectives import fabric
from towpath.collectives.gpus import channels_to_fill, channels_worth_it, gpus_used, hosts_of
from towpath.collectives.places import ChipPlace, GpuPlace, MailboxPlace, Place
from towpath.errors import ConfigError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import PROTOCOLS
from towpath.tuning.collective import Options
from towpath.tuning.target import TuneRequest, powers_to

if TYPE_CHECKING:
    from towpath.api.request import Request
    from towpath.collectives.link_faults import LinkFault
    from towpath.collectives.result import LinkLoad
    from towpath.specs.chip_cluster_spec import ChipClusterSpec
    from towpath.specs.machine_spec import MachineSpec
    from towpath.specs.mailbox_cluster_spec import MailboxClusterSpec

Numbers = tuple[int, ...] | None
Words = tuple[str, ...] | None


class Site(Protocol):
    """What the runner needs to know about a kind of machine.

    Attributes:
        spec: the description.
        simulated_bytes_max: the largest size at which candidates are simulated; None: any.
        has_link_faults: whether links may fail.
        protocols: protocols that differ on it.
    """

    spec: Any
    simulated_bytes_max: int | None
    has_link_faults: bool
    protocols: tuple[str, ...]

    @property
    def ranks(self) -> int:
        """How many ranks there is room for."""
        ...

    def source_for(self, request: Request) -> ScheduleSource:
        """The schedule of the request's algorithm as this machine takes it."""
        ...

    def options_for(self, request: Request) -> Options:
        """What candidates are made of."""
        ...

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
        ...

    def where(self, ranks: int) -> str:
        """The machine and its ranks in words."""
        ...

    def draw_loads(self, links: list[LinkLoad]) -> str | None:
        """The machine as an SVG drawing with the load of each link; None: there is none."""
        ...

    def tune_request(self, channels: Numbers, protocols: Words) -> TuneRequest:
        """The machine for a search on several processes, which read its description themselves."""
        ...


class GpuSite:
    """See Site: servers with GPUs."""

    simulated_bytes_max: int | None = None
    has_link_faults = False
    protocols: tuple[str, ...] = PROTOCOLS

    def __init__(
        self,
        spec: MachineSpec,
        name_or_file: str,
        sized: tuple[int | None, int | None, str | None],
        ranks_per_host: int | None,
    ) -> None:
        self.spec = spec
        self._name_or_file = name_or_file
        self._sized = sized
        self._ranks_per_host = ranks_per_host
        self._gpus = gpus_used(spec, ranks_per_host)

    @property
    def ranks(self) -> int:
        """See Site."""
        return len(self._gpus)

    @cached_property
    def _machine(self) -> _core.Machine:
        return self.spec.build()

    def source_for(self, request: Request) -> ScheduleSource:
        """Rings that fill the fastest link, on the rails of several hosts."""
        worth_it = channels_worth_it(self.ranks, max(request.sizes_bytes))
        channels = request.channels or min(channels_to_fill(self.spec), worth_it)
        return ScheduleSource(
            None, request.collective, request.algorithm, self.ranks, channels, request.protocol,
            request.root, hosts_of(self.spec, self._gpus),
        )  # fmt: skip

    def options_for(self, request: Request) -> Options:
        """All protocols, and channels up to what fills the fastest link."""
        channels = powers_to(channels_to_fill(self.spec))
        return Options(
            self.ranks, (request.channels,) if request.channels else channels,
            _protocols(self, request), hosts=hosts_of(self.spec, self._gpus),
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
        return f"{spec.name}, {ranks} of {spec.ranks} GPUs on {spec.host_count} hosts"

    def draw_loads(self, links: list[LinkLoad]) -> str | None:
        """The machine with the load of each link."""
        from towpath.pages.show import draw_svg

        return draw_svg(self.spec, load={n: link.busy_fraction for n, link in enumerate(links)})

    def tune_request(self, channels: Numbers, protocols: Words) -> TuneRequest:
        """See Site."""
        hosts, ranks, complete_from = self._sized
        return TuneRequest(
            self._name_or_file, None, hosts, ranks, self._ranks_per_host, complete_from, channels,
            protocols,
        )  # fmt: skip


class MailboxSite:
    """See Site: nodes with mailboxes."""

    simulated_bytes_max: int | None = 64 << 10
    has_link_faults = False
    protocols: tuple[str, ...] = ("Simple",)

    def __init__(self, spec: MailboxClusterSpec, name_or_file: str, ranks: int | None) -> None:
        self.spec = spec
        self._name_or_file = name_or_file
        self._ranks_asked = ranks

    @property
    def ranks(self) -> int:
        """See Site."""
        return self.spec.nodes.value

    @cached_property
    def _cluster(self) -> _core.MailboxCluster:
        return self.spec.build()

    def source_for(self, request: Request) -> ScheduleSource:
        """One channel: all messages of a node leave through one packetizer."""
        return ScheduleSource(
            None, request.collective, request.algorithm, self.ranks, request.channels or 1,
            request.protocol, request.root,
        )  # fmt: skip

    def options_for(self, request: Request) -> Options:
        """One channel, and the protocol Simple: the others cost the same here."""
        return Options(self.ranks, (request.channels or 1,), _protocols(self, request))

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

    def draw_loads(self, links: list[LinkLoad]) -> str | None:
        """Nothing: loads of the ring are not kept."""
        return None

    def tune_request(self, channels: Numbers, protocols: Words) -> TuneRequest:
        """See Site."""
        return TuneRequest(
            self._name_or_file, ranks=self._ranks_asked, channels=channels, protocols=protocols
        )


class ChipSite:
    """See Site: chips that Ethernet joins."""

    simulated_bytes_max: int | None = 64 << 10
    has_link_faults = True
    protocols: tuple[str, ...] = ("Simple",)

    def __init__(self, spec: ChipClusterSpec, name_or_file: str) -> None:
        self.spec = spec
        self.name_or_file = name_or_file

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

    def source_for(self, request: Request) -> ScheduleSource:
        """Rings both ways over all parallel links, or a grid on the whole mesh."""
        on_grid = fabric.is_on_grid(request.algorithm)
        layout = self._layout(on_grid)
        source = ScheduleSource(
            None, request.collective, request.algorithm, len(layout.places),
            request.channels or 2 * self._planes(layout), request.protocol, request.root,
            both_ways=True,
        )  # fmt: skip
        if not on_grid:
            return source
        grid: dict[str, Any] = fabric.grid_of(layout.shape)
        return replace(source, **grid)

    def options_for(self, request: Request) -> Options:
        """Rings one way and both ways, grids where the chips make one."""
        ring, mesh = self._layout(False), self._layout(True)
        channels = powers_to(2 * self._planes(ring))
        return Options(
            len(ring.places), (request.channels,) if request.channels else channels,
            _protocols(self, request), (False, True),
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

    def draw_loads(self, links: list[LinkLoad]) -> str | None:
        """The cluster with the load of each direction of each link."""
        from towpath.pages.show_chip_cluster import draw_chip_cluster_svg

        load = {number: link.busy_fraction for number, link in enumerate(links)}
        return draw_chip_cluster_svg(self.spec, load=load)

    def tune_request(self, channels: Numbers, protocols: Words) -> TuneRequest:
        """See Site."""
        return TuneRequest(self.name_or_file, channels=channels, protocols=protocols)


def _protocols(site: Site, request: Request) -> tuple[str, ...]:
    """The protocols that candidates of a request may have."""
    return site.protocols if request.protocol == "auto" else (request.protocol,)


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
