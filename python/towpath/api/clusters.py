# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Clusters of GPUs, and of nodes with mailboxes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from towpath import _core
from towpath.api.cluster import Cluster, protocols_of
from towpath.api.run import Request, check_ranks
from towpath.collectives.gpus import channels_to_fill, channels_worth_it, gpus_used, hosts_of
from towpath.collectives.places import GpuPlace, MailboxPlace
from towpath.schedules.schedule_source import ScheduleSource
from towpath.tuning.collective import Options
from towpath.tuning.target import TuneRequest, powers_to

if TYPE_CHECKING:
    from towpath.collectives.link_faults import LinkFault
    from towpath.collectives.result import LinkLoad
    from towpath.specs.machine_spec import MachineSpec
    from towpath.specs.mailbox_cluster_spec import MailboxClusterSpec

Sized = tuple["int | None", "int | None", "str | None"]


class GpuCluster(Cluster):
    """Servers with GPUs, such as dgx-h100: NVLink, PCIe, network adapters and switches.

    >>> load("dgx-h100", hosts=4).ranks
    32
    """

    kind = "gpu_cluster"
    spec: MachineSpec

    def __init__(
        self,
        spec: MachineSpec,
        name_or_file: str,
        sized: Sized = (None, None, None),
        ranks_per_host: int | None = None,
    ) -> None:
        """Wraps a checked description; users call `load`."""
        super().__init__(spec)
        self._name_or_file = name_or_file
        self._sized = sized
        self._ranks_per_host = ranks_per_host
        self._gpus = gpus_used(spec, ranks_per_host)

    @property
    def ranks(self) -> int:
        """GPUs that ranks run on."""
        return len(self._gpus)

    @property
    def hosts(self) -> int:
        """Servers."""
        return self.spec.host_count

    def show(self) -> str:
        """The machine as text: devices, links, costs, each figure with its source.

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

    def __repr__(self) -> str:
        return f"GpuCluster({self.name!r}, {self.ranks} GPUs on {self.hosts} hosts)"

    @cached_property
    def _machine(self) -> _core.Machine:
        return self.spec.build()

    def source_for(self, request: Request, sizes_bytes: tuple[int, ...]) -> ScheduleSource:
        """Rings that fill the fastest link, on the rails of several hosts."""
        worth_it = channels_worth_it(self.ranks, max(sizes_bytes))
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
            protocols_of(request), hosts=hosts_of(self.spec, self._gpus),
        )  # fmt: skip

    def place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None, faults: tuple[LinkFault, ...]
    ) -> GpuPlace:
        """The first GPUs, in the order of ranks."""
        ranks = schedule.rank_count
        check_ranks(self.name, ranks, schedule.name, self.ranks, "GPUs in use; load it larger")
        return GpuPlace(self._machine, tuple(self._gpus[:ranks]))

    def where(self, ranks: int) -> str:
        """The machine and its ranks in words."""
        spec = self.spec
        return f"{spec.name}, {ranks} of {spec.ranks} GPUs on {spec.host_count} hosts"

    def draw_loads(self, links: list[LinkLoad]) -> str | None:
        """The machine with the load of each link."""
        from towpath.pages.show import draw_svg

        return draw_svg(self.spec, load={n: link.busy_fraction for n, link in enumerate(links)})

    def _tune_request(
        self, channels: tuple[int, ...] | None, protocols: tuple[str, ...] | None
    ) -> TuneRequest:
        hosts, ranks, complete_from = self._sized
        return TuneRequest(
            self._name_or_file, None, hosts, ranks, self._ranks_per_host, complete_from, channels,
            protocols,
        )  # fmt: skip


class MailboxCluster(Cluster):
    """Nodes on a ring that send each other small messages, such as carvnet."""

    kind = "mailbox_cluster"
    spec: MailboxClusterSpec
    _simulated_bytes_max = 64 << 10

    def __init__(
        self, spec: MailboxClusterSpec, name_or_file: str, ranks: int | None = None
    ) -> None:
        """Wraps a checked description; users call `load`."""
        super().__init__(spec)
        self._name_or_file = name_or_file
        self._ranks_asked = ranks

    @property
    def ranks(self) -> int:
        """Nodes, one rank each."""
        return self.spec.nodes.value

    def show(self) -> str:
        """The cluster as text: nodes, software, ring, each figure with its source.

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

    @cached_property
    def _cluster(self) -> _core.MailboxCluster:
        return self.spec.core()

    def source_for(self, request: Request, sizes_bytes: tuple[int, ...]) -> ScheduleSource:
        """One channel: all messages of a node leave through one packetizer."""
        return ScheduleSource(
            None, request.collective, request.algorithm, self.ranks, request.channels or 1,
            request.protocol, request.root,
        )  # fmt: skip

    def options_for(self, request: Request) -> Options:
        """One channel, and the protocol Simple: the others cost the same here."""
        return Options(self.ranks, (request.channels or 1,), protocols_of(request, ("Simple",)))

    def place_for(
        self, schedule: _core.Schedule, source: ScheduleSource | None, faults: tuple[LinkFault, ...]
    ) -> MailboxPlace:
        """Rank r on node r."""
        check_ranks(
            self.name, schedule.rank_count, schedule.name, self.ranks, "nodes; load it with ranks="
        )
        return MailboxPlace(self._cluster)

    def where(self, ranks: int) -> str:
        """The cluster and its ranks in words."""
        return f"{self.name}, {ranks} of {self.ranks} nodes"

    def draw_loads(self, links: list[LinkLoad]) -> str | None:
        """Nothing: loads of the ring are not kept."""
        return None

    def _tune_request(
        self, channels: tuple[int, ...] | None, protocols: tuple[str, ...] | None
    ) -> TuneRequest:
        return TuneRequest(
            self._name_or_file, ranks=self._ranks_asked, channels=channels, protocols=protocols
        )
