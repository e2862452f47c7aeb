# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The links of a machine between its ranks, and the flows that they permit."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from towpath import _core

RANKS_MAX = 64


@dataclass(frozen=True)
class Network:
    """The machine's links, and the route between any two ranks.

    Attributes:
        devices: the device of each rank.
        hosts: the number of each rank's host.
        forwards: for each device of the machine, True if it forwards traffic of other devices.
        links: (from, to) of each link, as device numbers.
        rates_gb_per_s: rate of each link, shape (links,).
        latencies_ns: latency of each link, shape (links,).
        routes: routes[a][b] is the list of links from rank a to rank b.
    """

    devices: tuple[int, ...]
    hosts: tuple[int, ...]
    forwards: tuple[bool, ...]
    links: tuple[tuple[int, int], ...]
    rates_gb_per_s: np.ndarray
    latencies_ns: np.ndarray
    routes: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.devices)

    @cached_property
    def incidence(self) -> np.ndarray:
        """Links that each pair of ranks uses, shape (ranks, ranks, links), 0 or 1."""
        used = np.zeros((self.ranks, self.ranks, len(self.links)))
        for a, of_rank in enumerate(self.routes):
            for b, route in enumerate(of_rank):
                used[a, b, list(route)] = 1
        return used

    @cached_property
    def latency_ns(self) -> np.ndarray:
        """Latency of the route of each pair of ranks, shape (ranks, ranks)."""
        return self.incidence @ self.latencies_ns

    def out_gb_per_s(self, group: Collection[int]) -> float:
        """Maximum flow from a group of ranks to all others, over any routes."""
        inside = {self.devices[rank] for rank in group}
        outside = set(self.devices) - inside
        return _max_flow(self, inside, outside)

    def in_gb_per_s(self, group: Collection[int]) -> float:
        """Maximum flow from all other ranks to a group, over any routes."""
        inside = {self.devices[rank] for rank in group}
        outside = set(self.devices) - inside
        return _max_flow(self, outside, inside)


def network_of(machine: _core.Machine, places: Collection[int]) -> Network:
    """The network between some GPUs of a machine.

    Args:
        machine: the machine.
        places: the GPU of each rank, as numbered in the machine.
    """
    gpus = [
        number for number, device in enumerate(machine.devices)
        if device.kind == _core.DeviceKind.gpu
    ]  # fmt: skip
    return Network(
        devices=tuple(gpus[place] for place in places),
        hosts=tuple(machine.devices[gpus[place]].host for place in places),
        forwards=tuple(device.forwards for device in machine.devices),
        links=tuple((link.from_device, link.to_device) for link in machine.links),
        rates_gb_per_s=np.array([link.rate_gb_per_s for link in machine.links]),
        latencies_ns=np.array([link.latency_ns for link in machine.links]),
        routes=tuple(
            tuple(tuple(machine.route(a, b)) if a != b else () for b in places) for a in places
        ),
    )


def _max_flow(network: Network, sources: set[int], sinks: set[int]) -> float:
    """Maximum flow by shortest augmenting paths from any source to any sink (Edmonds and Karp)."""
    residual: dict[int, dict[int, float]] = {}
    for (a, b), rate in zip(network.links, network.rates_gb_per_s, strict=True):
        residual.setdefault(a, {}).setdefault(b, 0.0)
        residual.setdefault(b, {}).setdefault(a, 0.0)
        residual[a][b] += float(rate)
    flow = 0.0
    while True:
        before: dict[int, int] = dict.fromkeys(sources, -1)
        queue = deque(sources)
        end = None
        while queue and end is None:
            device = queue.popleft()
            if device not in sources and not network.forwards[device]:
                continue
            for following, free in residual.get(device, {}).items():
                if free > 1e-9 and following not in before:
                    before[following] = device
                    queue.append(following)
                    if following in sinks:
                        end = following
                        break
        if end is None:
            return flow
        path = [end]
        while before[path[-1]] != -1:
            path.append(before[path[-1]])
        hops = list(zip(path[1:], path, strict=False))
        amount = min(residual[a][b] for a, b in hops)
        for a, b in hops:
            residual[a][b] -= amount
            residual[b][a] += amount
        flow += amount
