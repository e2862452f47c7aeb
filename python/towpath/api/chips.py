# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A chip with its networks, and chips that Ethernet joins."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from towpath import _core
from towpath.api.chip_kernels import RunsKernels
from towpath.api.cluster import Cluster
from towpath.api.machine import Machine
from towpath.collectives import fabric
from towpath.collectives.places import ChipPlace
from towpath.errors import ConfigError
from towpath.names import unknown
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs import catalogue
from towpath.specs.sizes import Sizes, sizes_of
from towpath.tuning.collective import Options, powers_to

if TYPE_CHECKING:
    from towpath.api.noc_study import NocStudy
    from towpath.api.request import Request
    from towpath.collectives.link_faults import LinkFault
    from towpath.collectives.result import LinkLoad
    from towpath.specs.chip_cluster_spec import ChipClusterSpec
    from towpath.specs.chip_spec import ChipSpec
    from towpath.studies.page import Plot
    from towpath.studies.progress import Progress
    from towpath.studies.replay import Replay
    from towpath.studies.static_routes import StaticRoutes
    from towpath.tuning.ethernet import EthernetTuning


class LinkPing(NamedTuple):
    """One ping over a link, as recorded by the profilers of both Ethernet cores, in nanoseconds.

    Attributes:
        send_and_receive_ns: time at the sender, from the first send to the answer.
        send_ns: time of the sender's send call.
        wait_ns: time of the sender's wait for the answer.
        wait_and_answer_ns: time at the receiver, from its wait to the end of its answer.
    """

    send_and_receive_ns: float
    send_ns: float
    wait_ns: float
    wait_and_answer_ns: float


class Chip(RunsKernels, Machine):
    """A chip: a grid of tiles on two networks, such as wormhole."""

    kind = "chip"
    spec: ChipSpec

    @classmethod
    def _open(cls, name_or_file: str, **options: Any) -> Chip:
        return cls(catalogue.load_chip(name_or_file, **options))

    def _kernel_machine(self) -> _core.Chip:
        return self.spec.build()

    def show(self) -> str:
        """The chip as text: its tiles, and every value with its source.

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

    def study(
        self,
        *,
        size_bytes: Sizes = "32:128K",
        patterns: Sequence[str] | None = None,
        nocs: Sequence[int] = (0, 1),
        vcs: Sequence[int] = (1, 2, 3, 4),
        transactions: int = 256,
        workers: tuple[int, int] | None = None,
        follow_ups: bool = True,
        seed: int = 1,
        file: str | os.PathLike[str] | None = None,
        jobs: int = 0,
        progress: Progress | None = None,
    ) -> NocStudy:
        """Measures the benefit of several virtual channels: bandwidth over size, VC count, NoC and
        pattern.

        Args:
            size_bytes: sizes of a transaction; whole flits, up to 4096 of them.
            patterns: "one_to_one", "one_to_all", "all_to_all", "one_from_one", "one_from_all",
                "all_from_all"; None: all.
            nocs: 0, 1 or both.
            vcs: numbers of virtual channels, each 1 to 4.
            transactions: number of transactions that each master issues to each of its
                destinations.
            workers: (columns, rows) of workers in use; None: all.
            follow_ups: True to run the additional tests: orders of destinations, loopback, flow
                control, throttled traffic, stalled VCs.
            seed: seed of the simulations.
            file: file for the measurements, one line of JSON per point; a later call continues from
                it.
            jobs: processes that simulate; 0: one per core.
            progress: a display for long work; see `towpath.studies.progress`.

        Returns:
            A row per point by part of the study, and the findings.

        Raises:
            ConfigError: a size, pattern, VC count or number of workers is not possible.
        """
        from towpath.api.noc_study import StudyPlan, run_study
        from towpath.studies.progress import silent
        from towpath.studies.sweep import SweepOptions

        plan = StudyPlan(
            tuple(sizes_of(size_bytes)), patterns, tuple(nocs), tuple(vcs), transactions, workers,
            follow_ups, seed,
        )  # fmt: skip
        options = SweepOptions(jobs=jobs, progress=progress or silent)
        return run_study(self.spec, plan, file, options)

    def replay(
        self,
        trace: str | os.PathLike[str],
        *,
        pace: Literal["gaps", "times"] = "gaps",
        seed: int = 1,
        samples_links: bool = False,
    ) -> Replay:
        """Replays the network requests of a traced program on this chip.

        Args:
            trace: a NoC trace, JSON as tt-npe reads it.
            pace: "gaps": each call starts after the previous call plus the software time between
                them; "times": no call starts before its time in the trace.
            seed: seed of the random behavior of the chip.
            samples_links: True to record the load of each link over time.

        Returns:
            Predicted and measured cycles, in total, by core and by request.

        Raises:
            ConfigError: the trace cannot be read or does not fit the chip. DeadlockError: its
            traffic hangs on this chip.
        """
        from towpath.studies.noc_trace import load_noc_trace
        from towpath.studies.replay import PACES, replay

        if pace not in PACES:
            raise unknown("pace is", pace, PACES)
        grid = (self.spec.grid.width, self.spec.grid.height)
        loaded = load_noc_trace(os.fspath(trace), grid)
        return replay(loaded, self.spec, pace=pace, seed=seed, samples_links=samples_links)

    def __repr__(self) -> str:
        columns, rows = self.spec.worker_grid()
        return f"Chip({self.name!r}, {columns} x {rows} workers)"


class ChipCluster(RunsKernels, Cluster):
    """Chips that Ethernet joins, such as t3000. Each chip has a rank.

    >>> from towpath import load
    >>> load("t3000").run("all_gather", size_bytes=4096).wrong
    0
    """

    kind = "chip_cluster"
    spec: ChipClusterSpec
    has_link_faults = True
    has_networks_on_chip = True
    simulated_bytes_max = 4 << 20

    @classmethod
    def _open(cls, name_or_file: str, **options: Any) -> ChipCluster:
        return cls(catalogue.load_chip_cluster(name_or_file))

    @property
    def ranks(self) -> int:
        """Number of chips."""
        return len(self.spec.chips)

    @cached_property
    def _cluster(self) -> _core.ChipCluster:
        cluster = self.spec.build()
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

    def _source_for(self, request: Request) -> ScheduleSource:
        # Rings both ways over all parallel links, or a grid on the whole mesh.
        on_grid = fabric.is_on_grid(request.algorithm)
        layout = self._layout(on_grid)
        source = ScheduleSource(
            None, request.collective, request.algorithm, len(layout.places), request.channels or 1,
            request.protocol, request.root, both_ways=True,
        )  # fmt: skip
        if not request.channels:
            name = source.algorithm_name()
            ways = 1 if fabric.is_pairwise(name) else 2
            channels = 1 if fabric.is_multicast(name) else ways * self._planes(layout)
            source = replace(source, channels=channels)
        grid: dict[str, Any] = fabric.grid_of(layout.shape) if on_grid else {}
        return replace(source, **grid)

    def _options_for(
        self, channels: tuple[int, ...] | None, protocols: tuple[str, ...] | None,
        collective: str | None = None,
    ) -> Options:  # fmt: skip
        # Rings one way and both ways, grids if the chips make one.
        ring, mesh = self._layout(False), self._layout(True)
        return Options(
            len(ring.places), channels or powers_to(2 * self._planes(ring)),
            protocols or self.protocols, (False, True), reaches=fabric.reaches_of(ring.shape),
            grid=fabric.grid_of(mesh.shape) if fabric.is_grid(mesh.shape) else {},
        )  # fmt: skip

    def _place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None,
        faults: tuple[LinkFault, ...] = (),
    ) -> ChipPlace:  # fmt: skip
        # Along the ring of the fabric, or row by row on its mesh.
        layout = self._layout(source is not None and fabric.is_on_grid(source.algorithm))
        ranks = self._check_ranks(schedule, len(layout.places), "chips")
        return ChipPlace(self._cluster, layout.places[:ranks], faults, layout.shape)

    def _where(self, ranks: int) -> str:
        return f"{self.name}, {ranks} of {self.ranks} chips"

    def _kernel_machine(self) -> _core.ChipCluster:
        return self._cluster

    def show(self) -> str:
        """The cluster as text: its chips, their positions and the links between them.

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

    def _draw_loads(self, links: list[LinkLoad]) -> str | None:
        from towpath.pages.show_chip_cluster import draw_chip_cluster_svg

        load = {number: link.busy_fraction for number, link in enumerate(links)}
        return draw_chip_cluster_svg(self.spec, load=load)

    def __repr__(self) -> str:
        return f"ChipCluster({self.name!r}, {self.ranks} chips)"

    def routes(
        self,
        routes: Iterable[Sequence[int]],
        *,
        buffers_per_core: int = 1,
        candidates_max: int = 20_000,
        seed: int = 1,
        packet_bytes: int | None = None,
    ) -> StaticRoutes:
        """Static routes as commands of Ethernet cores, in an order that takes few timesteps.

        Args:
            routes: the chips of each route, from producer to consumer: [[0, 1, 2], [2, 3, 0]].
            buffers_per_core: number of packets that an Ethernet core can store.
            candidates_max: number of orders to try if trying all of them takes too long.
            seed: seed of that search.
            packet_bytes: size of a packet over each route; if given, the lists also run as kernels.

        Returns:
            The commands and timesteps in the given order and in the best one found; with packets
            also the time.

        Raises:
            ConfigError: two consecutive chips are not joined, or a packet does not fit.
        """
        from towpath.studies.static_routes import plan_routes

        return plan_routes(
            self.spec, [list(chips) for chips in routes], buffers_per_core=buffers_per_core,
            candidates_max=candidates_max, seed=seed, packet_bytes=packet_bytes,
        )  # fmt: skip

    def require_links(self) -> None:
        """Checks that kernels may use a link between two chips.

        Raises:
            ConfigError: no link is available to kernels.
        """
        fabric.check_linked(self.name, self.spec.build())

    def study_links(self) -> list[Plot]:
        """Runs the microbenchmarks of links: utilization, bandwidth, pings, and rings if the
        cluster has one.

        Returns:
            One plot's data per microbenchmark: named curves with units.

        Raises:
            ConfigError: no link between chips 0 and 1 is available to kernels.
        """
        from towpath.studies.ethernet_study import figures_of

        self.require_links()
        try:
            return list(figures_of(self.spec))
        except ValueError as error:
            raise ConfigError(str(error), field=f"cluster '{self.name}'") from None

    def tune_links(
        self,
        *,
        file: str | os.PathLike[str] | None = None,
        jobs: int = 0,
        progress: Progress | None = None,
    ) -> EthernetTuning:
        """Finds the best use of a link between chips: packet size, bytes outstanding, sync words,
        channels.

        Args:
            file: file for the measurements, one line of JSON per point; a later call continues from
                it.
            jobs: processes that simulate; 0: one per core.
            progress: a display for long work; see `towpath.studies.progress`.

        Returns:
            An answer per question, chosen by the rule of docs/tune.md.

        Raises:
            ConfigError: no link is available to kernels.
        """
        from towpath.studies.progress import silent
        from towpath.studies.sweep import SweepOptions
        from towpath.tuning.ethernet import tune_ethernet
        from towpath.tuning.link_bench import LinkBench

        options = SweepOptions(jobs=jobs, progress=progress or silent)
        with tempfile.TemporaryDirectory(prefix="towpath-") as folder:
            points = Path(folder, "points.jsonl") if file is None else Path(file)
            return tune_ethernet(
                LinkBench.on(self._opened_as[0] if self._opened_as else self.name), points, options
            )

    def ring_ping(
        self,
        chips: Sequence[int],
        *,
        packet_bytes: int = 16,
        channels: int = 1,
        merged: bool = True,
        samples: int = 100,
        seed: int = 1,
        links: Sequence[int] = (),
    ) -> list[float]:
        """Sends packets around a ring of chips.

        Args:
            chips: the chips in order; the last is joined to the first.
            packet_bytes: payload of a packet.
            channels: number of packets that circulate at the same time.
            merged: True if payload and sync word are one command.
            samples: number of trips.
            seed: seed of the simulation.
            links: one of the parallel links of each hop, from 0; empty: the first unused ones.

        Returns:
            The time of each trip in nanoseconds.

        Raises:
            ValueError: two consecutive chips are not joined, or a link does not exist.
        """
        return _core.ring_ping_ns(
            self._cluster, chips=list(chips), packet_bytes=packet_bytes, channels=channels,
            merged=merged, samples=samples, seed=seed, links=list(links),
        )  # fmt: skip

    def link_ping(
        self,
        link: tuple[int, int] = (0, 1),
        *,
        payload_bytes: int,
        samples: int = 100,
        seed: int = 1,
    ) -> list[LinkPing]:
        """Sends a packet there and back over the first free link between two chips.

        Args:
            link: the two chips.
            payload_bytes: payload of a packet.
            samples: number of pings.
            seed: seed of the simulation.

        Returns:
            The times of each ping in nanoseconds, as recorded by the profilers of both cores.

        Raises:
            ValueError: the chips are not joined, or the payload is too large.
        """
        pings = _core.link_ping(
            self._cluster,
            link=link,
            payload_bytes=payload_bytes,
            samples=samples,
            seed=seed,
        )
        return [
            LinkPing(
                ping.send_and_receive_ns, ping.send_ns, ping.wait_ns, ping.wait_and_answer_ns
            )
            for ping in pings
        ]  # fmt: skip

    def link_bandwidth(
        self,
        link: tuple[int, int] = (0, 1),
        *,
        message_bytes: int,
        slots: int = 16,
        messages: int = 4096,
        seed: int = 1,
    ) -> float:
        """Sends messages one way over a link; a slot is free again after its answer.

        Args:
            link: the two chips, the sender first.
            message_bytes: size of a message.
            slots: maximum number of messages in flight.
            messages: number of messages.
            seed: seed of the simulation.

        Returns:
            Payload over time, in 1e9 bytes per second.

        Raises:
            ValueError: the chips are not joined, or the slots do not fit their memory.
        """
        time_ns = _core.link_test_ns(
            self._cluster, link=link, message_bytes=message_bytes, slots=slots, messages=messages,
            seed=seed,
        )  # fmt: skip
        return messages * message_bytes / time_ns

    def duplex_bandwidth(
        self,
        link: tuple[int, int] = (0, 1),
        *,
        packet_bytes: int,
        channels: int,
        merged: bool = True,
        packets: int = 64,
        seed: int = 1,
    ) -> float:
        """Sends packets over a link in both directions at the same time.

        Args:
            link: the two chips.
            packet_bytes: payload of a packet.
            channels: channels in each direction, 1 to 30.
            merged: True if payload and sync word are one command.
            packets: number of packets over each channel.
            seed: seed of the simulation.

        Returns:
            Payload of both directions together over time, in 1e9 bytes per second.

        Raises:
            ValueError: the chips are not joined, or the channels do not fit their memory.
        """
        return _core.bidirectional_gb_per_s(
            self._cluster, link=link, packet_bytes=packet_bytes, merged=merged, channels=channels,
            packets=packets, seed=seed,
        )  # fmt: skip
