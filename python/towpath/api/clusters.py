# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Clusters of GPUs, and of nodes with mailboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from towpath.api.cluster import Cluster

if TYPE_CHECKING:
    from towpath.collectives.result import LinkLoad
    from towpath.specs.machine_spec import MachineSpec
    from towpath.specs.mailbox_cluster_spec import MailboxClusterSpec


class GpuCluster(Cluster):
    """Servers with GPUs, such as dgx-h100: NVLink, PCIe, network adapters and switches.

    >>> from towpath import load
    >>> load("dgx-h100", hosts=4).ranks
    32
    """

    kind = "gpu_cluster"
    spec: MachineSpec

    @property
    def hosts(self) -> int:
        """Servers."""
        return self.spec.host_count

    @property
    def ranks_per_host(self) -> int:
        """Ranks that share a server."""
        return self.ranks // self.hosts

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

    def _draw_loads(self, links: list[LinkLoad]) -> str | None:
        from towpath.pages.show import draw_svg

        return draw_svg(self.spec, load={n: link.busy_fraction for n, link in enumerate(links)})

    def __repr__(self) -> str:
        hosts = "1 host" if self.hosts == 1 else f"{self.hosts} hosts"
        return f"GpuCluster({self.name!r}, {self.ranks} GPUs on {hosts})"


class MailboxCluster(Cluster):
    """Nodes on a ring that send each other small messages, such as carvnet."""

    kind = "mailbox_cluster"
    spec: MailboxClusterSpec

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
