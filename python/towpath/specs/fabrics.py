# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Networks that join the adapters of several hosts: rails, leaves and spines, fat tree, dragonfly.

If there are several shortest paths between switches, a hash of the pair of GPUs and of `hash_seed`
selects one of them, as in switches that do not consider load (ECMP). Pairs may collide.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field

from towpath.specs.layout import NETWORK, Adapter, Placing
from towpath.specs.spec_model import Frozen, Name, Ratio, wrong

SWITCH_PORTS_MAX = 1024
SPINES_MAX = 4096
HASH_SEED_MAX = (1 << 32) - 1

Ports = Annotated[int, Field(strict=True, ge=1, le=SWITCH_PORTS_MAX)]
AdaptersOfHosts = Sequence[Sequence[Adapter]]


class SwitchedFabric(Frozen):
    """Common part of all fabrics: the link from an adapter to its first switch."""

    link_type: Name
    hash_seed: Annotated[int, Field(strict=True, ge=0, le=HASH_SEED_MAX)] = 0

    @property
    def is_nonblocking(self) -> bool:
        """True if the switches carry the full rate of all adapters at once."""
        return True

    @abstractmethod
    def count(self, adapters: int, hosts: int) -> tuple[int, int]:
        """Maximum number of devices and wires, not counting adapters.

        Args:
            adapters: number of adapters of each host.
            hosts: the number of hosts.

        Raises:
            PydanticCustomError: the fabric has no room for them.
        """

    @abstractmethod
    def place(self, adapters_of_hosts: AdaptersOfHosts, layout: Placing) -> None:
        """Adds switches and wires to the adapters of all hosts."""

    def used_link_types(self) -> Iterator[tuple[str, str]]:
        """Each field with the name of a link type, and that name."""
        yield "fabric.link_type", self.link_type

    def _attach(self, adapters: Sequence[Adapter], switch: int, layout: Placing) -> None:
        for adapter in adapters:
            layout.join(adapter.device, switch, adapter.link_type or self.link_type)


class Spine(Frozen):
    """A switch that joins the leaves, each by one uplink per host over `oversubscription`."""

    link_type: Name
    oversubscription: Ratio


class RailFabric(SwitchedFabric):
    """The n-th adapters of all hosts form rail n and meet at one leaf switch."""

    shape: Literal["rails"]
    spine: Spine | None = None

    @property
    def is_nonblocking(self) -> bool:
        """True if the spine, if any, carries the full rate of all adapters."""
        return self.spine is None or self.spine.oversubscription.value <= 1

    def count(self, adapters: int, hosts: int) -> tuple[int, int]:
        """Maximum number of devices and wires; see SwitchedFabric."""
        return adapters + 1, adapters * (hosts + 1)

    def place(self, adapters_of_hosts: AdaptersOfHosts, layout: Placing) -> None:
        """Adds switches and wires; see SwitchedFabric."""
        rails = max(map(len, adapters_of_hosts))
        leaves = [layout.add(f"leaf{rail}", "network_switch", NETWORK) for rail in range(rails)]
        for rail, leaf in enumerate(leaves):
            self._attach(
                [host[rail] for host in adapters_of_hosts if rail < len(host)], leaf, layout
            )
        if self.spine is not None and len(leaves) > 1:
            uplinks = len(adapters_of_hosts) / self.spine.oversubscription.value
            spine = layout.add("spine", "network_switch", NETWORK)
            for leaf in leaves:
                layout.join(leaf, spine, self.spine.link_type, uplinks)

    def used_link_types(self) -> Iterator[tuple[str, str]]:
        """Fields with the names of link types; see SwitchedFabric."""
        yield from super().used_link_types()
        if self.spine is not None:
            yield "fabric.spine.link_type", self.spine.link_type


class _TieredFabric(SwitchedFabric):
    """Adapters in the order of hosts, or rail by rail, which fill one switch after the other."""

    switch_link_type: Name
    by_rail: bool = Field(strict=True, default=False)

    def used_link_types(self) -> Iterator[tuple[str, str]]:
        """Fields with the names of link types; see SwitchedFabric."""
        yield from super().used_link_types()
        yield "fabric.switch_link_type", self.switch_link_type

    def _groups(self, adapters_of_hosts: AdaptersOfHosts, most: int) -> list[list[Adapter]]:
        """The adapters at each first switch."""
        queues = [[adapter for host in adapters_of_hosts for adapter in host]]
        if self.by_rail:
            rails = max(map(len, adapters_of_hosts))
            queues = [
                [host[rail] for host in adapters_of_hosts if rail < len(host)]
                for rail in range(rails)
            ]
        return [
            queue[first : first + most] for queue in queues for first in range(0, len(queue), most)
        ]

    def _first_switches(self, adapters: int, hosts: int, most: int) -> int:
        if self.by_rail:
            return adapters * -(-hosts // most)
        return -(-adapters * hosts // most)


class LeafSpineFabric(_TieredFabric):
    """Leaves with several adapters each; the uplinks of a leaf go to the spines in turn.

    The number of uplinks of a leaf is its number of adapters over `oversubscription`; each is a
    separate wire.
    """

    shape: Literal["leaf_spine"]
    adapters_per_leaf: Ports
    spines: Annotated[int, Field(strict=True, ge=1, le=SPINES_MAX)]
    oversubscription: Ratio

    @property
    def is_nonblocking(self) -> bool:
        """True if the leaves have as many uplinks as adapters."""
        return self._uplinks() >= self.adapters_per_leaf

    def _uplinks(self) -> int:
        return max(round(self.adapters_per_leaf / self.oversubscription.value), 1)

    def count(self, adapters: int, hosts: int) -> tuple[int, int]:
        """Maximum number of devices and wires; see SwitchedFabric."""
        leaves = self._first_switches(adapters, hosts, self.adapters_per_leaf)
        return leaves + self.spines, adapters * hosts + leaves * self._uplinks()

    def place(self, adapters_of_hosts: AdaptersOfHosts, layout: Placing) -> None:
        """Adds switches and wires; see SwitchedFabric."""
        leaves = []
        for number, group in enumerate(self._groups(adapters_of_hosts, self.adapters_per_leaf)):
            leaves.append(layout.add(f"leaf{number}", "network_switch", NETWORK))
            self._attach(group, leaves[-1], layout)
        if len(leaves) < 2:
            return
        used = min(self.spines, self._uplinks())
        spines = [layout.add(f"spine{n}", "network_switch", NETWORK) for n in range(used)]
        for leaf in leaves:
            for uplink in range(self._uplinks()):
                layout.join(leaf, spines[uplink % used], self.switch_link_type)


class FatTreeFabric(_TieredFabric):
    """Three tiers of switches with `radix` ports: edges and aggregations in pods, and a core.

    A pod has radix / 2 edges and radix / 2 aggregations. Each edge has radix / 2 adapters. Only
    pods with adapters exist.
    """

    shape: Literal["fat_tree"]
    radix: Annotated[int, Field(strict=True, ge=2, le=128, multiple_of=2)]

    def count(self, adapters: int, hosts: int) -> tuple[int, int]:
        """Maximum number of devices and wires; see SwitchedFabric."""
        half = self.radix // 2
        edges = self._first_switches(adapters, hosts, half)
        pods = -(-edges // half)
        if pods > self.radix:
            most = self.radix * half * half
            problem = f"is {self.radix}, room for {most} adapters; {adapters * hosts} are there"
            raise wrong("fabric.radix", problem)
        return (
            edges + pods * half + half * half,
            adapters * hosts + edges * half + pods * half * half,
        )

    def place(self, adapters_of_hosts: AdaptersOfHosts, layout: Placing) -> None:
        """Adds switches and wires; see SwitchedFabric."""
        half = self.radix // 2
        groups = self._groups(adapters_of_hosts, half)
        aggregations: list[list[int]] = []
        for number, group in enumerate(groups):
            pod, place_in_pod = divmod(number, half)
            edge = layout.add(f"pod{pod}/edge{place_in_pod}", "network_switch", NETWORK)
            self._attach(group, edge, layout)
            if len(groups) == 1:
                return
            if place_in_pod == 0:
                names = [f"pod{pod}/aggregation{n}" for n in range(half)]
                aggregations.append([layout.add(name, "network_switch", NETWORK) for name in names])
            for aggregation in aggregations[pod]:
                layout.join(edge, aggregation, self.switch_link_type)
        if len(aggregations) < 2:
            return
        for number in range(half * half):
            core = layout.add(f"core{number}", "network_switch", NETWORK)
            for of_pod in aggregations:
                layout.join(of_pod[number // half], core, self.switch_link_type)


class DragonflyFabric(_TieredFabric):
    """Groups of routers: all routers of a group are joined, and all pairs of groups are joined.

    Each router has `global_links_per_router` links to other groups. The links of a group are spread
    evenly over the other groups. Messages take a shortest path.
    """

    shape: Literal["dragonfly"]
    adapters_per_router: Ports
    routers_per_group: Ports
    global_links_per_router: Ports
    global_link_type: Name

    @property
    def is_nonblocking(self) -> bool:
        """False: routers of two groups share few links."""
        return False

    def _groups_of(self, routers: int) -> int:
        groups = -(-routers // self.routers_per_group)
        most = self.routers_per_group * self.global_links_per_router + 1
        if groups > most:
            problem = (
                f"is {self.global_links_per_router}, enough for {most} groups, not for {groups}"
            )
            raise wrong("fabric.global_links_per_router", problem)
        return groups

    def count(self, adapters: int, hosts: int) -> tuple[int, int]:
        """Maximum number of devices and wires; see SwitchedFabric."""
        routers = self._first_switches(adapters, hosts, self.adapters_per_router)
        groups = self._groups_of(routers)
        size = self.routers_per_group
        wires = groups * size * (size + self.global_links_per_router)
        return groups * size, adapters * hosts + wires

    def place(self, adapters_of_hosts: AdaptersOfHosts, layout: Placing) -> None:
        """Adds switches and wires; see SwitchedFabric."""
        held = self._groups(adapters_of_hosts, self.adapters_per_router)
        size = self.routers_per_group
        groups: list[list[int]] = []
        for number in range(self._groups_of(len(held))):
            names = [f"group{number}/router{n}" for n in range(size)]
            routers = [layout.add(name, "network_switch", NETWORK) for name in names]
            for a, b in combinations(routers, 2):
                layout.join(a, b, self.switch_link_type)
            for router, adapters in zip(routers, held[number * size :], strict=False):
                self._attach(adapters, router, layout)
            groups.append(routers)
        for one, two in combinations(range(len(groups)), 2):
            for router_a, router_b in self._global_links(one, two, len(groups)):
                layout.join(groups[one][router_a], groups[two][router_b], self.global_link_type)

    def _global_links(self, one: int, two: int, groups: int) -> Iterator[tuple[int, int]]:
        """The routers that join two groups, one in each group."""
        links = self.routers_per_group * self.global_links_per_router
        for turn in range(links // (groups - 1)):
            ports = (turn * (groups - 1) + two - 1, turn * (groups - 1) + one)
            a, b = (port // self.global_links_per_router for port in ports)
            yield a, b

    def used_link_types(self) -> Iterator[tuple[str, str]]:
        """Fields with the names of link types; see SwitchedFabric."""
        yield from super().used_link_types()
        yield "fabric.global_link_type", self.global_link_type


Fabric = Annotated[
    RailFabric | LeafSpineFabric | FatTreeFabric | DragonflyFabric, Field(discriminator="shape")
]
