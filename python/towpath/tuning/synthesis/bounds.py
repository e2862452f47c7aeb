# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Lower bound on the time of a collective, for any schedule, if every byte crosses the links.

An all-reduce between k groups of ranks needs k - 1 messages per element to combine their data, and
k - 1 more to distribute the result, all of which leave a group. So 2 (k-1) S bytes cross the links
out of the groups. Similar bounds hold for the other collectives. Switches that combine or copy data
are not covered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from towpath.tuning.synthesis.network import Network

_GROUPS_TO_MERGE_MAX = 12  # more would take too many maximum flows

Groups = list[frozenset[int]]


@dataclass(frozen=True)
class Bound:
    """A lower bound on the time of any schedule.

    Attributes:
        bandwidth_us: time that the links need for the bytes.
        latency_us: time of a message between the two most distant ranks.
        launch_us: time of every call before its first step.
        reason: the groups of ranks that determine the bandwidth, as text.
    """

    bandwidth_us: float
    latency_us: float
    launch_us: float
    reason: str

    @property
    def time_us(self) -> float:
        """The whole bound."""
        return self.launch_us + max(self.bandwidth_us, self.latency_us)


def bound_of(
    network: Network, collective: str, size_bytes: int, *, launch_us: float = 0.0
) -> Bound:
    """The bound of a collective.

    Args:
        network: the links.
        collective: all_reduce, all_gather or reduce_scatter.
        size_bytes: size of the whole array.
        launch_us: time of every call before its first step.
    """
    if network.ranks == 1:
        return Bound(0.0, 0.0, launch_us, "a single rank has nothing to send")
    cuts = _Cuts(network)
    if collective == "all_reduce":
        bandwidth, reason = _partitions(network, cuts, lambda groups: 2 * (len(groups) - 1))
    else:
        bandwidth, reason = _parts(network, cuts, collective)
    return Bound(
        bandwidth * size_bytes / 1e3, float(network.latency_ns.max()) / 1e3, launch_us, reason
    )


class _Cuts:
    """Maximum flows out of and into groups. Each is computed once."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._out: dict[frozenset[int], float] = {}
        self._into: dict[frozenset[int], float] = {}

    def out(self, group: frozenset[int]) -> float:
        if group not in self._out:
            self._out[group] = self._network.out_gb_per_s(group)
        return self._out[group]

    def into(self, group: frozenset[int]) -> float:
        if group not in self._into:
            self._into[group] = self._network.in_gb_per_s(group)
        return self._into[group]


def _partitions(
    network: Network, cuts: _Cuts, messages: Callable[[Groups], int]
) -> tuple[float, str]:
    """The partition that takes longest, in nanoseconds per byte, and its sentence."""

    def time(groups: Groups) -> float:
        return messages(groups) / _rate(groups, cuts)

    best = max(_tried(network, time), key=time)
    return time(best), _sentence(network, best, cuts)


def _rate(groups: Groups, cuts: _Cuts) -> float:
    return min(sum(map(cuts.out, groups)), sum(map(cuts.into, groups)))


def _tried(network: Network, time: Callable[[Groups], float]) -> list[Groups]:
    """Partitions into ranks, into hosts, into one of these and the rest, and into merged groups."""
    all_ranks = frozenset(range(network.ranks))
    by_rank = [frozenset({rank}) for rank in all_ranks]
    by_host = [
        frozenset(rank for rank in all_ranks if network.hosts[rank] == host)
        for host in sorted(set(network.hosts))
    ]
    tried = []
    for groups in (by_rank, by_host):
        if len(groups) == 1:
            continue
        tried.append(groups)
        tried += [[group, all_ranks - group] for group in groups if len(groups) > 2]
        if len(groups) <= _GROUPS_TO_MERGE_MAX:
            tried += _merged(groups, time)
    return tried


def _merged(groups: Groups, time: Callable[[Groups], float]) -> list[Groups]:
    """Partitions that result from repeatedly joining two groups, such that the remaining bound is
    largest.
    """
    found = []
    while len(groups) > 2:
        pairs = combinations(groups, 2)
        groups = max(
            ([*(group for group in groups if group not in pair), pair[0] | pair[1]]
             for pair in pairs),
            key=time,
        )  # fmt: skip
        found.append(groups)
    return found


def _parts(network: Network, cuts: _Cuts, collective: str) -> tuple[float, str]:
    """All-gather brings the data of other ranks to a group; reduce-scatter takes the data of other
    ranks from it.
    """
    partitions = _tried(network, lambda groups: (len(groups) - 1) / _rate(groups, cuts))
    groups = {group for groups in partitions for group in groups}

    def time(group: frozenset[int]) -> float:
        share = 1 - len(group) / network.ranks
        return share / (cuts.into(group) if collective == "all_gather" else cuts.out(group))

    best = max(sorted(groups, key=sorted), key=time)
    way = "into" if collective == "all_gather" else "out of"
    rate = cuts.into(best) if collective == "all_gather" else cuts.out(best)
    return time(best), f"{rate:.4g} GB/s lead {way} {_words(network, best)}"


def _sentence(network: Network, groups: Groups, cuts: _Cuts) -> str:
    rate = _rate(groups, cuts)
    if len(groups) == network.ranks:
        return f"{rate:.4g} GB/s lead out of the {network.ranks} ranks together"
    if len(groups) == 2:
        smaller = min(groups, key=len)
        return f"{rate / 2:.4g} GB/s join {_words(network, smaller)} to the other ranks"
    parts = ", ".join(_words(network, group) for group in sorted(groups, key=min))
    return f"{rate:.4g} GB/s lead out of {len(groups)} groups together: {parts}"


def _words(network: Network, group: frozenset[int]) -> str:
    hosts = {network.hosts[rank] for rank in group}
    whole = [rank for rank in range(network.ranks) if network.hosts[rank] in hosts]
    if len(hosts) == 1 and len(whole) == len(group) < network.ranks and len(group) > 1:
        return f"host {min(hosts)}"
    ranks = sorted(group)
    if len(ranks) > 8:
        return f"{len(ranks)} ranks from {ranks[0]} to {ranks[-1]}"
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))
