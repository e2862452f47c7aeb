# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A chip with its networks, and chips that Ethernet joins."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from towpath import _core
from towpath.api.cluster import Cluster, protocols_of
from towpath.api.machine import Machine
from towpath.api.run import Request, check_ranks
from towpath.collectives import fabric
from towpath.collectives.places import ChipPlace
from towpath.errors import ConfigError
from towpath.schedules.schedule_source import ScheduleSource
from towpath.tuning.collective import Options
from towpath.tuning.target import TuneRequest, powers_to

if TYPE_CHECKING:
    from towpath.collectives.link_faults import LinkFault
    from towpath.collectives.result import LinkLoad
    from towpath.specs.chip_cluster_spec import ChipClusterSpec
    from towpath.specs.chip_spec import ChipSpec


class Chip(Machine):
    """A chip: a grid of tiles on two networks, such as wormhole."""

    kind = "chip"
    spec: ChipSpec

    def show(self) -> str:
        """The chip as text: its tiles, and every figure with its source.

        Returns:
            The text, in lines.
        """
        from towpath.pages.show_chip import describe_chip

        return describe_chip(self.spec)

    def draw(self) -> str:
        """The chip as a drawing: its grid of tiles.

        Returns:
            The text of an SVG file.
        """
        from towpath.pages.show_chip import draw_chip_svg

        return draw_chip_svg(self.spec)

    def __repr__(self) -> str:
        columns, rows = self.spec.worker_grid
        return f"Chip({self.name!r}, {columns} x {rows} workers)"


class ChipCluster(Cluster):
    """Chips that Ethernet joins, such as t3000. Each chip has a rank.

    >>> load("t3000").run("all_gather", size_bytes=4096).wrong
    0
    """

    kind = "chip_cluster"
    spec: ChipClusterSpec
    _simulated_bytes_max = 64 << 10

    def __init__(self, spec: ChipClusterSpec, name_or_file: str) -> None:
        """Wraps a checked description; users call `load`."""
        super().__init__(spec)
        self._name_or_file = name_or_file

    @property
    def ranks(self) -> int:
        """Chips, one rank each."""
        return len(self.spec.chips)

    def show(self) -> str:
        """The cluster as text: its chips, their places and the links between them.

        Returns:
            The text, in lines.
        """
        from towpath.pages.show_chip_cluster import describe_chip_cluster

        return describe_chip_cluster(self.spec)

    def draw(self) -> str:
        """The cluster as a drawing: chips and links.

        Returns:
            The text of an SVG file.
        """
        from towpath.pages.show_chip_cluster import draw_chip_cluster_svg

        return draw_chip_cluster_svg(self.spec)

    def __repr__(self) -> str:
        return f"ChipCluster({self.name!r}, {self.ranks} chips)"

    @cached_property
    def _cluster(self) -> _core.ChipCluster:
        cluster = self.spec.core()
        fabric.check_linked(self.name, cluster)
        return cluster

    def _layout(self, on_grid: bool) -> fabric.Layout:
        try:
            return fabric.layout_of(self._cluster, on_grid)
        except ValueError as error:
            raise ConfigError(str(error), field=f"cluster '{self.name}'") from None

    def _planes(self, layout: fabric.Layout) -> int:
        try:
            return _core.fabric_planes(self._cluster, layout.shape)
        except ValueError as error:
            raise ConfigError(str(error), field=f"cluster '{self.name}'") from None

    def source_for(self, request: Request, sizes_bytes: tuple[int, ...]) -> ScheduleSource:
        """Rings both ways over all parallel links, or a grid on the whole mesh."""
        on_grid = fabric.is_on_grid(request.algorithm)
        layout = self._layout(on_grid)
        source = ScheduleSource(
            None, request.collective, request.algorithm, len(layout.places),
            request.channels or 2 * self._planes(layout), request.protocol, request.root,
            both_ways=True,
        )  # fmt: skip
        return replace(source, **fabric.grid_of(layout.shape)) if on_grid else source

    def options_for(self, request: Request) -> Options:
        """Rings one way and both ways, grids where the chips make one."""
        ring, mesh = self._layout(False), self._layout(True)
        channels = powers_to(2 * self._planes(ring))
        return Options(
            len(ring.places), (request.channels,) if request.channels else channels,
            protocols_of(request, ("Simple",)), (False, True),
            grid=fabric.grid_of(mesh.shape) if fabric.is_grid(mesh.shape) else {},
        )  # fmt: skip

    def place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None, faults: tuple[LinkFault, ...]
    ) -> ChipPlace:
        """Along the ring of the fabric, or row by row on its mesh."""
        on_grid = source is not None and fabric.is_on_grid(source.algorithm)
        layout = self._layout(on_grid)
        ranks = schedule.rank_count
        check_ranks(self.name, ranks, schedule.name, len(layout.places), "chips")
        return ChipPlace(self._cluster, layout.places[:ranks], faults, layout.shape)

    def where(self, ranks: int) -> str:
        """The cluster and its ranks in words."""
        return f"{self.name}, {ranks} of {self.ranks} chips"

    def draw_loads(self, links: list[LinkLoad]) -> str | None:
        """The cluster with the load of each direction of each link."""
        from towpath.pages.show_chip_cluster import draw_chip_cluster_svg

        load = {number: link.busy_fraction for number, link in enumerate(links)}
        return draw_chip_cluster_svg(self.spec, load=load)

    def _check(self, request: Request) -> None:
        """Links may fail here."""

    def _tune_request(
        self, channels: tuple[int, ...] | None, protocols: tuple[str, ...] | None
    ) -> TuneRequest:
        return TuneRequest(self._name_or_file, channels=channels, protocols=protocols)
