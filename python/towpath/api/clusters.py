# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Clusters of GPUs, and clusters of nodes with mailboxes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.api.cluster import Cluster
from towpath.api.many_hosts import (
    HOSTS_OF_TREES,
    extrapolated_us,
    hosts_of_trees,
    is_tree,
    sources_of,
)
from towpath.collectives.element_types import type_bytes, type_named
from towpath.collectives.gpus import (
    channels_to_fill,
    channels_worth_it,
    gpus_used,
    hosts_of,
    reaches_of,
)
from towpath.collectives.places import GpuPlace, MailboxPlace
from towpath.collectives.result import RunRow, measure
from towpath.errors import ConfigError
from towpath.operators.job import EXTRAPOLATION_ERROR_PCT
from towpath.schedules.schedule_source import ScheduleSource
from towpath.schedules.words import PROTOCOLS, collective_named
from towpath.specs import catalogue
from towpath.specs.sizes import Size, size_of, sizes_of
from towpath.studies.progress import Progress, silent
from towpath.tuning.collective import RANKS_MANY, Options, powers_to, schedule_of
from towpath.tuning.shipped_choices import shipped_choices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from towpath.api.request import Request
    from towpath.api.result import RunResult
    from towpath.api.schedule import Schedule
    from towpath.api.synthesis import Synthesis
    from towpath.collectives.link_faults import LinkFault
    from towpath.collectives.nccl.choice import Choice
    from towpath.collectives.nccl.explanation import Explanation
    from towpath.collectives.nccl.imitation import Imitation, Library
    from towpath.collectives.result import LinkLoad
    from towpath.specs.machine_spec import MachineSpec
    from towpath.specs.mailbox_cluster_spec import MailboxClusterSpec
    from towpath.specs.sizes import Sizes
    from towpath.studies.exchange import ExchangeStudy
    from towpath.studies.penny import PennyStudy

_LAUNCHES = {
    "processes": "by one process per GPU",
    "threads": "by one process with a thread per GPU",
    "one-process": "by one thread for all GPUs of a host",
    "graph": "as a node of a CUDA graph",
}
_CHANNELS_MAX = 32  # of the listed algorithms that a written schedule is compared with


class GpuCluster(Cluster):
    """Servers with GPUs, such as dgx-h100: NVLink, PCIe, network adapters and switches.

    >>> from towpath import load
    >>> load("dgx-h100", hosts=4).ranks
    32
    """

    kind = "gpu_cluster"
    spec: MachineSpec
    simulated_bytes_max = None
    has_nccl = True
    protocols = PROTOCOLS

    def __init__(self, spec: MachineSpec, ranks_per_host: int | None = None) -> None:
        """Wraps a checked description; users call `load`."""
        super().__init__(spec)
        self._used_per_host = ranks_per_host
        self._gpus = gpus_used(spec, ranks_per_host)
        self._imitations: dict[Library, Imitation] = {}
        self._sized: dict[int, GpuCluster] = {}
        self._shipped: dict[str, dict[int, ScheduleSource]] = {}

    @classmethod
    def _open(
        cls, name_or_file: str, *, ranks_per_host: int | None = None, **sizes: Any
    ) -> GpuCluster:
        return cls(catalogue.load(name_or_file, **sizes), ranks_per_host)

    @property
    def ranks(self) -> int:
        """Number of GPUs in use."""
        return len(self._gpus)

    @cached_property
    def _machine(self) -> _core.Machine:
        return self.spec.build()

    def _source_for(self, request: Request) -> ScheduleSource:
        # Rings that fill the fastest link, on the rails of several hosts.
        worth_it = channels_worth_it(self.ranks, max(request.sizes_bytes))
        fill = min(channels_to_fill(self.spec, request.collective), worth_it)
        return ScheduleSource(
            None, request.collective, request.algorithm, self.ranks, request.channels or fill,
            request.protocol, request.root, hosts_of(self.spec, self._gpus),
        )  # fmt: skip

    def _options_for(
        self, channels: tuple[int, ...] | None, protocols: tuple[str, ...] | None,
        collective: str | None = None,
    ) -> Options:  # fmt: skip
        return Options(
            self.ranks, channels or self._channels_for(collective),
            protocols or self.protocols, hosts=hosts_of(self.spec, self._gpus),
            reaches=reaches_of(self.spec, self._gpus),
        )  # fmt: skip

    def _channels_for(self, collective: str | None) -> tuple[int, ...]:
        """The numbers of channels to try. Channels beyond the links add faster, but between many
        ranks each costs time to simulate.
        """
        fill = channels_to_fill(self.spec, collective)
        most = _CHANNELS_MAX if self.ranks <= RANKS_MANY else fill
        return tuple(sorted({*powers_to(most), fill}))

    def _place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None,
        faults: tuple[LinkFault, ...] = (),
    ) -> GpuPlace:  # fmt: skip
        ranks = self._check_ranks(schedule, self.ranks, "GPUs in use; load it larger")
        return GpuPlace(self._machine, tuple(self._gpus[:ranks]))

    def _where(self, ranks: int) -> str:
        hosts = "1 host" if self.hosts == 1 else f"{self.hosts} hosts"
        return f"{self.name}, {ranks} of {self.spec.ranks} GPUs on {hosts}"

    @property
    def hosts(self) -> int:
        """Number of servers."""
        return self.spec.host_count

    @property
    def ranks_per_host(self) -> int:
        """Number of ranks that share a server."""
        return self.ranks // self.hosts

    def show(self) -> str:
        """The machine as text: devices, links and costs, each value with its source.

        Returns:
            The text, in lines.
        """
        from towpath.pages.show import describe

        return describe(self.spec)

    def draw(self) -> str:
        """The machine as a drawing: devices and links.

        Returns:
            The text of an SVG file.
        """
        from towpath.pages.show import draw_svg

        return draw_svg(self.spec)

    def synthesize(
        self,
        collective: str = "all_reduce",
        *,
        size_bytes: Size = "64M",
        dtype: str = "float32",
        seconds: float = 60.0,
        seed: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> Synthesis:
        """Writes a schedule for this machine: trees or rings that divide the load among its links.

        Candidates are timed by simulation. The result is verified, and never slower than the
        fastest listed algorithm. The same seed gives the same schedule, unless the search runs out
        of time.

        Args:
            collective: "all_reduce", "all_gather" or "reduce_scatter".
            size_bytes: the whole array: bytes, or a text such as "64M".
            dtype: the element type.
            seconds: no candidate is started after this time; the time for the listed algorithms is
                additional.
            seed: selects one of several equal choices.
            progress: called with the number of completed candidates and the total number.

        Returns:
            The schedule, its time, the fastest listed algorithm, and a lower bound on the time.

        Raises:
            ConfigError: an option is wrong, or there are more than 64 ranks.
        """
        from towpath.api.synthesis import synthesize
        from towpath.collectives.threads import threads_for
        from towpath.tuning.chooser import Chooser
        from towpath.tuning.synthesis.search import SearchOptions, check_collective

        name = collective_named(collective)
        check_collective(name, self.ranks)
        if not seconds > 0:
            raise ConfigError(f"seconds is {seconds}; it must be above 0", field="seconds")
        size = size_of(size_bytes)
        type_name = type_named(dtype)
        listed = Chooser(
            name, self._options_for(powers_to(_CHANNELS_MAX), None), self._place_for,
            type_name=type_name, threads=threads_for(None),
        )  # fmt: skip
        options = SearchOptions(seconds, seed, progress or (lambda done, total: None))
        return synthesize(
            self, listed.choose(size), name, size, type_name=type_name, options=options
        )

    def _synthesized(
        self, request: Request, size_bytes: int
    ) -> tuple[ScheduleSource | Schedule, str | None]:
        found = self.synthesize(request.collective, size_bytes=size_bytes, dtype=request.dtype)
        return found.schedule, found.sentence()

    def _draw_loads(self, links: list[LinkLoad]) -> str | None:
        from towpath.pages.show import draw_svg

        return draw_svg(self.spec, load={n: link.busy_fraction for n, link in enumerate(links)})

    def bench_exchange(
        self,
        size_bytes: Sizes = "2M:32M:4",
        ring_size_bytes: Sizes = "16K:16M:4",
        *,
        progress: Progress = silent,
    ) -> ExchangeStudy:
        """Simulates kernels of puts with signals: exchanges between two GPUs, and rings of all
        GPUs.

        Args:
            size_bytes: sizes of the buffers that two GPUs exchange: bytes, a text, several of them,
                or a range.
            ring_size_bytes: sizes of the buffers that all GPUs reduce.
            progress: a display of the progress.

        Returns:
            Every combination, and the fastest rings by size.

        Raises:
            ConfigError: the machine does not describe the costs of kernels, or a size is wrong.
        """
        from towpath.api.exchange import bench_exchange

        return bench_exchange(self, sizes_of(size_bytes), sizes_of(ring_size_bytes), progress)

    def bench_penny(
        self,
        kernels: Sequence[str],
        size_bytes: Sizes,
        *,
        block_size: Sizes = "512",
        packet_size: Sizes = "16",
        pes: int = 8,
        rings: int = 1,
        progress: Progress = silent,
    ) -> PennyStudy:
        """Simulates the CUDA kernels of the library (docs/penny.md), thread by thread with checked
        data.

        Args:
            kernels: names: "vectorised_ring", "simple_ring", "one_shot", "two_shot" and others.
            size_bytes: size of the array of each GPU: bytes, a text, several of them, or a range.
            block_size: threads per block, or several values to sweep.
            packet_size: bytes that a thread puts at once, or several values to sweep.
            pes: number of GPUs, counted from the first.
            rings: number of rings of the ring kernels.
            progress: a display of the progress.

        Returns:
            Every combination whose blocks divide the array, with the time of the model.

        Raises:
            ConfigError: the machine does not describe the costs of kernels, or a name or size is
            wrong.
        """
        from towpath.studies import penny

        shapes = (sizes_of(block_size), sizes_of(packet_size))
        sizes_bytes = sizes_of(size_bytes)
        todo = penny.points(kernels, sizes_bytes, shapes, pes, rings)
        return replace(penny.measure(self.spec, todo, progress), sizes_bytes=sizes_bytes)

    @property
    def own_library(self) -> str:
        """The library of these GPUs: "rccl" for AMD's, "nccl" for all others."""
        from towpath.collectives.nccl.facts import is_of_amd

        return "rccl" if is_of_amd(self.spec) else "nccl"

    def explain(
        self,
        collective: str = "all_reduce",
        *,
        size_bytes: int | str,
        library: str | Library | None = None,
    ) -> Explanation:
        """Explains the choice of NCCL or RCCL on this machine.

        Args:
            collective: "all_reduce", "all_gather", "reduce_scatter", "broadcast" or "reduce".
            size_bytes: the whole array: bytes (1 << 20) or a text ("1M").
            library: "nccl", "rccl", or a `Library` with variables and files. None selects
                `own_library`.

        Returns:
            The choice, all candidates with the library's own times, the limit of the time, and the
            assumptions about the machine.

        Raises:
            ConfigError: an option is wrong, or the library does not support this machine.
        """
        from towpath.api.library import explain

        return explain(self, collective, size_bytes, library or self.own_library)

    def expect(
        self,
        collective: str = "all_reduce",
        *,
        size_bytes: Sizes = "8:64M",
        library: str | Library | None = None,
    ) -> RunResult:
        """The table that nccl-tests should print on this machine.

        Args:
            collective: "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast" or
                "reduce".
            size_bytes: the whole array: bytes, a text, several of them, or a range ("8:1G:4").
            library: "nccl", "rccl", or a `Library` with variables and files. None selects
                `own_library`.

        Returns:
            A row per size, as returned by `run` with `library` and without data: the choice, the
            simulated time, and the model's error on similar measured rows, if there are any.

        Raises:
            ConfigError: an option is wrong, or the library does not support this machine.
        """
        asked = library or self.own_library
        return self.run(collective, size_bytes=size_bytes, library=asked, data=False)

    def simulated_us(self, source: ScheduleSource, size_bytes: int) -> float:
        """The simulated time of one call, in microseconds, without data.

        Args:
            source: the schedule.
            size_bytes: size of the whole array.

        Returns:
            The time out of place if the schedule supports it, and otherwise in place.

        Raises:
            ConfigError: the schedule does not fit. DeadlockError: the schedule hangs.
        """
        from towpath.collectives.call import Call
        from towpath.collectives.simulated import time_us

        call = Call(source.schedule())
        return time_us(self._place_for(call.schedule, source), call, size_bytes)

    def imitate(self, library: Library | str) -> Imitation:
        """A library on this machine: its channels and its choices.

        Args:
            library: "nccl", "rccl", or a `Library` with variables and files.

        Returns:
            The same object for the same library.

        Raises:
            ConfigError: the library does not support this machine.
        """
        from towpath.collectives.nccl.imitation import Imitation, Library

        if isinstance(library, str):
            library = Library.of(library)
        if library not in self._imitations:
            self._imitations[library] = Imitation(self.spec, library, self._used_per_host)
        return self._imitations[library]

    def _fastest_listed(
        self, request: Request, size_bytes: int
    ) -> tuple[ScheduleSource, str | None]:
        """The fastest of the listed algorithms for a size, from the shipped choices or a search."""
        is_usual = (
            request.algorithm == request.protocol == "auto" and request.channels is None
            and request.dtype == "float32" and not request.root
        )  # fmt: skip
        if is_usual:
            source = self._shipped_choices(request.collective).get(size_bytes)
            if source is not None:
                return source, None
        return super()._fastest_listed(request, size_bytes)

    def _shipped_choices(self, collective: str) -> dict[int, ScheduleSource]:
        if collective not in self._shipped:
            options = self._options_for(None, None, collective)
            self._shipped[collective] = shipped_choices(self.spec, options, collective)
        return self._shipped[collective]

    def _imitated(
        self, request: Request, size_bytes: int
    ) -> tuple[ScheduleSource | RunRow, str | None]:
        from towpath.collectives.nccl.sends import all_to_all_source

        imitation = self.imitate(request.library or "nccl")
        if request.collective == "all_to_all" and imitation.library.name == "nccl":
            source = all_to_all_source(self.spec, self.ranks, imitation.channels, size_bytes)
            plural = "" if source.channels == 1 else "s"
            return source, (
                f"what NCCL would run: sends and receives in {source.protocol}, "
                f"{source.channels} channel{plural} for each pair of ranks"
            )
        choice = imitation.launch(request.collective, size_bytes)
        if imitation.has_schedule(request.collective, choice) or math.isnan(choice.predicted_us):
            source = imitation.source(request.collective, size_bytes, choice, request.root)
            if not is_tree(source.algorithm) or not self._is_extrapolated(request):
                return source, imitation.sentence(choice)
            return self._extrapolated(request, size_bytes, choice), imitation.sentence(choice)
        # The library's own time: there is no schedule to simulate.
        time_us, name = choice.predicted_us, imitation.algorithm(request.collective, choice)
        row = RunRow(
            size_bytes, size_bytes // type_bytes(request.dtype), name, name, choice.protocol,
            choice.channels, measure(time_us, size_bytes, request.collective, self.ranks, None),
            None, is_simulated=False,
        )  # fmt: skip
        return row, imitation.sentence(choice)

    def _is_extrapolated(self, request: Request) -> bool:
        """True if the times of trees follow from fewer hosts: trees have no equal ranks, and a row
        on 128 hosts takes up to minutes to simulate. Fewer hosts are like all only on a network in
        which no host takes the rate of another one.
        """
        fabric = self.spec.fabric
        return (
            self.hosts > HOSTS_OF_TREES and not request.data and request.fold and not request.root
            and fabric is not None and fabric.is_nonblocking
            and len(self.spec.host_kinds()) == 1 and not self.spec.without
        )  # fmt: skip

    def _extrapolated(self, request: Request, size_bytes: int, choice: Choice) -> RunRow:
        """The row of a tree on many hosts."""
        source_on = sources_of(request.library or "nccl", request.collective, size_bytes, choice)
        most_hosts = hosts_of_trees(size_bytes, self.ranks_per_host)
        time_us = extrapolated_us(self, size_bytes, source_on, most_hosts)
        found = measure(time_us, size_bytes, request.collective, self.ranks, None)
        source = source_on(self.with_hosts(2))
        row = RunRow(
            size_bytes, size_bytes // type_bytes(request.dtype), source.algorithm_name(),
            source.algorithm_name(), choice.protocol, schedule_of(source).channels, found, found,
        )  # fmt: skip
        return row.at_least(self._least_us(request), request.collective, self.ranks)

    def with_hosts(self, hosts: int) -> GpuCluster:
        """This machine with another number of hosts.

        Args:
            hosts: the number of hosts.

        Returns:
            The machine, launched in the same way: the same object for the same number.

        Raises:
            ConfigError: the machine cannot have that many.
        """
        if hosts not in self._sized:
            self._sized[hosts] = GpuCluster(self.spec.sized(hosts=hosts), self._used_per_host)
        return self._sized[hosts]

    def _launched(self, way: str) -> GpuCluster:
        from towpath.collectives.launch import launched

        spec = launched(self.spec, way)
        if spec is self.spec:
            return self
        found = GpuCluster(spec, self._used_per_host)
        found.described = self.spec
        return found

    def _least_us(self, request: Request) -> float:
        from towpath.collectives.launch import least_us

        return least_us(self.spec, request.launch, self.ranks_per_host)

    def _assumed(self, request: Request) -> tuple[str, ...]:
        if request.library is None:
            return ()
        how = _LAUNCHES[request.launch]
        notes = [f"launched {how} (--launch)", *self.imitate(request.library).notes]
        if self._is_extrapolated(request):
            notes.append(
                f"times of trees follow from up to {HOSTS_OF_TREES} hosts, and differ from a "
                f"simulation of all hosts by up to {EXTRAPOLATION_ERROR_PCT:g} % on dgx-h100 "
                "(--no-fold simulates all)"
            )
        return tuple(notes)

    def __repr__(self) -> str:
        hosts = "1 host" if self.hosts == 1 else f"{self.hosts} hosts"
        return f"GpuCluster({self.name!r}, {self.ranks} GPUs on {hosts})"


class MailboxCluster(Cluster):
    """Nodes on a ring that exchange small messages, such as carvnet."""

    kind = "mailbox_cluster"
    spec: MailboxClusterSpec

    @classmethod
    def _open(cls, name_or_file: str, *, ranks: int | None = None, **_: Any) -> MailboxCluster:
        spec = catalogue.load_mailbox_cluster(name_or_file)
        return cls(spec if ranks is None else spec.with_figures(nodes=ranks))

    @property
    def ranks(self) -> int:
        """Number of nodes."""
        return self.spec.nodes.value

    @cached_property
    def _cluster(self) -> _core.MailboxCluster:
        return self.spec.build()

    def _source_for(self, request: Request) -> ScheduleSource:
        # One channel: all messages of a node leave through one packetizer.
        return ScheduleSource(
            None, request.collective, request.algorithm, self.ranks, request.channels or 1,
            request.protocol, request.root,
        )  # fmt: skip

    def _options_for(
        self, channels: tuple[int, ...] | None, protocols: tuple[str, ...] | None,
        collective: str | None = None,
    ) -> Options:  # fmt: skip
        return Options(self.ranks, channels or (1,), protocols or self.protocols)

    def _place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None,
        faults: tuple[LinkFault, ...] = (),
    ) -> MailboxPlace:  # fmt: skip
        self._check_ranks(schedule, self.ranks, "nodes; load it with ranks=")
        return MailboxPlace(self._cluster)

    def _where(self, ranks: int) -> str:
        return f"{self.name}, {ranks} of {self.ranks} nodes"

    def show(self) -> str:
        """The cluster as text: nodes, software and ring, each value with its source.

        Returns:
            The text, in lines.
        """
        from towpath.pages.show_mailbox_cluster import describe_mailbox_cluster

        return describe_mailbox_cluster(self.spec)

    def draw(self) -> str:
        """The cluster as a drawing.

        Returns:
            The text of an SVG file.
        """
        from towpath.pages.show_mailbox_cluster import draw_mailbox_cluster_svg

        return draw_mailbox_cluster_svg(self.spec)

    def __repr__(self) -> str:
        return f"MailboxCluster({self.name!r}, {self.ranks} nodes)"
