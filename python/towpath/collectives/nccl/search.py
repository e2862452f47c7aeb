# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's search for channels through a node: their number, rate, and order of GPUs.

Follows ncclTopoCompute of src/graph/search.cc (NVIDIA/nccl, commit 5067397c). It searches at
decreasing speeds and with increasingly relaxed rules (walk.py). It then doubles the channels and
tries higher speeds again. The budgets are the same as in NCCL, so the result is the same.
"""

from __future__ import annotations

from towpath.collectives.nccl.communicator import Channel, Generation, Graph, Path, Pattern
from towpath.collectives.nccl.topology import Node, Topology
from towpath.collectives.nccl.walk import Draft, Walk, pcie_rate, preferred_nets

# GB/s per channel that are tried, in one node and between nodes.
_SPEEDS = {
    "old": (40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0),
    "hopper": (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0),
    "blackwell": (90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0),
}
_SPEEDS_BETWEEN = {
    "old": (
        48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4,
        1.2, 0.24, 0.12,
    ),
    "hopper": (
        48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2,
        0.24, 0.12,
    ),
    "blackwell": (
        96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0,
        3.0, 2.4, 1.2, 0.24, 0.12,
    ),
}  # fmt: skip
_BUDGET_OF_ALL = 1 << 19
_NVLS_HEADS_MAX = 32  # NCCL_MAX_NVLS_ARITY, src/include/device.h
# A lower speed is tried as long as it is more than this part of the one that was found.
_PART_OF_A_SPEED = 0.49
_DUPLICATED_FROM_GB_PER_S = 25.0
_DUPLICATED_MANY_FROM_GB_PER_S = 50.0  # Hopper and later, more than 4 channels
_CROSSING = (Pattern.RING, Pattern.BALANCED_TREE, Pattern.SPLIT_TREE)


def find_graph(
    topology: Topology,
    pattern: Pattern,
    generation: Generation,
    channels: tuple[int, int],
    cross_nic: int = 2,
) -> Graph | None:
    """The channels that NCCL finds for a pattern; None if it finds none.

    Args:
        topology: a node, whose links are unchanged on return.
        pattern: shape of the channels.
        generation: generation of the GPUs.
        channels: minimum and maximum number of channels.
        cross_nic: 0 if a ring must leave by the adapter by which it enters, 1 if it may leave by
            another one, 2 to use this if it helps (NCCL_CROSS_NIC).
    """
    is_new = generation in ("hopper", "blackwell")
    if pattern == Pattern.NVLS and not (topology.switches and is_new):
        return None
    if len(topology.gpus) == 1 and not topology.is_joined:
        return None
    can_cross = len(topology.nets) > 1 and pattern in _CROSSING
    search = _Search(topology, Draft(pattern, *channels), generation, cross_nic * can_cross)
    found = search.run()
    if found.count == 0:
        return None
    return Graph(
        pattern=found.pattern,
        channel_count=found.count,
        intra_gb_per_s=found.intra,
        inter_gb_per_s=found.inter,
        intra_path=found.intra_path,
        inter_path=found.inter_path,
        latency_us=found.latency,
        cross_nic=found.cross_nic,
        same_channels=found.same,
        channels=tuple(
            Channel(tuple(order), tuple(nets))
            for order, nets in zip(found.orders, found.nets, strict=True)
        ),
    )


class _Search:
    """The passes over one pattern. They improve `_best`."""

    def __init__(
        self, topology: Topology, draft: Draft, generation: Generation, cross_nic: int
    ) -> None:
        self._topology = topology
        self._best = draft
        self._is_new = generation in ("hopper", "blackwell")
        self._cross_nic = cross_nic
        speeds = _SPEEDS_BETWEEN if topology.is_joined else _SPEEDS
        self._speeds = speeds[generation if self._is_new else "old"]
        self._speed = 0
        self._pattern = draft.pattern
        gpus = topology.gpus
        others = topology.nets if topology.is_joined else gpus
        ways = [gpu.way(other) for gpu in gpus for other in others]
        self._fastest = max((way.rate_gb_per_s for way in ways if way.links), default=0.0)
        self._total = max((_total(gpu) for gpu in gpus), default=0.0)

    def run(self) -> Draft:
        self._set_path_bounds()
        self._set_channel_bounds()
        total, best, gpus = self._total, self._best, len(self._topology.gpus)
        if gpus > 1 and best.pattern != Pattern.RING:
            total *= gpus / (gpus - 1)  # only rings go back to where they began
        while self._speed < len(self._speeds) - 1 and (
            self._speeds[self._speed] > self._fastest
            or self._speeds[self._speed] * best.least > total
        ):
            self._speed += 1
        self._pattern = best.pattern
        self._first_pass()
        self._second_pass()
        if self._best.count == 0 and self._best.pattern != Pattern.NVLS:
            self._take_simple_order()
        return self._best

    def _set_path_bounds(self) -> None:
        topology, best = self._topology, self._best
        gpus = topology.gpus
        paths = [one.way(other).path for one in gpus for other in gpus if one is not other]
        self._intra_least = min(paths, default=Path.LOC)
        self._intra_most = max(paths, default=Path.SYS)
        self._inter_least, self._inter_most = Path.PIX, Path.SYS
        if topology.is_joined:
            reach = [gpu.way(net).path for gpu in gpus for net in topology.nets]
            self._inter_least = min(reach, default=Path.SYS)
            self._inter_most = max(reach, default=Path.SYS)
            self._intra_most = self._inter_most
        if not self._is_new:
            self._inter_most = Path.SYS
        best.intra_path, best.inter_path = self._intra_least, self._inter_least

    def _set_channel_bounds(self) -> None:
        topology, best = self._topology, self._best
        best.cross_nic = 1 if self._cross_nic == 1 else 0
        best.same = best.pattern != Pattern.NVLS
        if best.pattern == Pattern.NVLS:
            best.most = min(_NVLS_HEADS_MAX, len(topology.gpus))
            if not topology.is_joined:
                best.least = best.most
        if len(topology.gpus) == 1 and best.pattern != Pattern.RING:
            best.pattern = Pattern.TREE
        if best.pattern == Pattern.RING and self._is_split() and best.most >= 2:
            best.least = max(best.least, 2)

    def _is_split(self) -> bool:
        """True if there are two groups of GPUs, each joined by NVLink, with no NVLink between
        them.
        """
        gpus = self._topology.gpus
        domain = list(range(len(gpus)))
        for one, gpu in enumerate(gpus):
            for other in range(one + 1, len(gpus)):
                if gpu.way(gpus[other]).path == Path.NVL:
                    domain[other] = domain[one]
        return sum(domain.count(number) > 1 for number in range(len(gpus))) == 2

    # -- the first pass: looser and looser rules, then lower speeds

    def _first_pass(self) -> None:
        budget = _BUDGET_OF_ALL
        now = self._best.copy()
        now.intra = now.inter = self._speeds[self._speed]
        while True:
            budget -= now.budget
            # What cannot be better is not searched: NCCL spends its budget and finds nothing.
            left = self._walk(now) if self._may_be_better(now) else 0
            if left == -1 or self._best.count * self._best.inter >= self._total:
                return
            if self._try_other_channels(now):
                continue
            budget += left
            if budget < 0 and self._best.count:
                return
            if not (
                self._try_simpler_tree(now)
                or self._try_farther_inside(now)
                or self._try_farther_between(now)
                or self._try_other_adapters(now)
                or self._try_slower(now)
            ):
                return

    def _walk(self, rules: Draft) -> int:
        walk = Walk(self._topology, rules, self._best)
        left = walk.run()
        self._best = walk.best
        return left

    def _try_other_channels(self, now: Draft) -> bool:
        """Tries channels that differ from each other, except through the sockets of AMD's CPUs."""
        if now.same and not (self._topology.cpu == "amd" and now.intra_path == Path.SYS):
            now.same = False
            return True
        now.same = self._best.pattern != Pattern.NVLS
        return False

    def _try_simpler_tree(self, now: Draft) -> bool:
        if self._is_new and now.pattern == Pattern.BALANCED_TREE:
            now.pattern = Pattern.TREE
            return True
        now.pattern = self._pattern
        return False

    def _try_farther_inside(self, now: Draft) -> bool:
        most = now.inter_path if self._topology.is_joined else self._intra_most
        best = self._best
        if now.intra_path < most and (best.count == 0 or now.intra_path < best.intra_path):
            now.intra_path = Path(now.intra_path + 1)
            return True
        now.intra_path = self._intra_least
        return False

    def _try_farther_between(self, now: Draft) -> bool:
        best = self._best
        is_worth_it = (
            best.count == 0 or now.inter_path < best.inter_path or now.inter_path < Path.PXN
        )
        if self._topology.is_joined and now.inter_path < self._inter_most and is_worth_it:
            now.inter_path = Path(now.inter_path + 1)
            return True
        now.inter_path = self._inter_least
        return False

    def _try_other_adapters(self, now: Draft) -> bool:
        """Tries rings and balanced trees that leave by another adapter than they enter."""
        crosses = now.pattern in (Pattern.RING, Pattern.BALANCED_TREE)
        if self._cross_nic == 2 and now.cross_nic == 0 and crosses:
            now.cross_nic = 2
            return True
        now.cross_nic = 1 if self._cross_nic == 1 else 0
        return False

    def _try_slower(self, now: Draft) -> bool:
        best, following = self._best, self._speed + 1
        if following == len(self._speeds):
            return False
        if best.count and self._speeds[following] / best.inter <= _PART_OF_A_SPEED:
            return False
        self._speed = following
        now.intra = now.inter = self._speeds[following]
        return True

    def _may_be_better(self, now: Draft) -> bool:
        """True if a search can improve the result, by the rate that leaves the GPUs and by the
        adapters through which channels can pass.
        """
        if now.pattern == Pattern.NVLS:
            return True
        best, gpus = self._best, self._topology.gpus
        hops = self._hops_per_channel(now)
        count = int(min(now.most, self._channels_of_gpus(now, hops)) + 1e-6)
        if self._topology.is_joined:
            count = min(count, self._channels_of_nets(now))
        if count < max(now.least, 1):
            return False
        if count * now.intra != best.count * best.intra or now.pattern != best.pattern:
            return count * now.intra > best.count * best.intra
        lengths = [len(one.way(other).links) for one in gpus for other in gpus if one is not other]
        return best.hops > count * hops * min(lengths, default=1)

    def _hops_per_channel(self, now: Draft) -> int:
        closes = now.pattern == Pattern.RING and not self._topology.is_joined
        return len(self._topology.gpus) - (0 if closes else 1)

    def _channels_of_gpus(self, now: Draft, hops: int) -> float:
        """Maximum number of channels that fit on the links of the GPUs."""
        kinds = ("nvl",) if now.intra_path <= Path.NVB else ("nvl", "pci")
        out = [
            sum(link.rate_gb_per_s for link in gpu.links if link.kind in kinds)
            for gpu in self._topology.gpus
        ]
        if hops == 0:
            return now.most
        if hops == len(out):
            return min(out) / now.intra
        return sum(out) / (hops * now.intra)

    def _channels_of_nets(self, now: Draft) -> int:
        """Maximum number of channels that can enter and leave the node."""
        topology, rate = self._topology, max(int(now.inter), 1)
        returns = now.pattern == Pattern.RING and now.cross_nic == 0 and len(topology.gpus) > 1
        count = 0
        for net, left in zip(topology.nets, topology.net_left, strict=True):
            gpus = topology.gpus
            enters = {gpu.index for gpu in gpus if net.way(gpu).path <= now.inter_path}
            leaves = {gpu.index for gpu in gpus if gpu.way(net).path <= now.inter_path}
            is_passed = bool(enters) and (
                not returns or (bool(leaves) and len(enters | leaves) > 1)
            )
            count += int(left // rate) if is_passed else 0
        return count

    # -- the second pass: channels twice, each of half the rate; then higher speeds again

    def _second_pass(self) -> None:
        self._duplicate()
        best = self._best
        if best.count == 0:
            return
        now = best.copy()
        self._speed = 0
        while self._speeds[self._speed] > best.inter and self._speed < len(self._speeds) - 1:
            self._speed += 1
        now.intra = now.inter = self._speeds[self._speed]
        now.least = best.count
        left = -1
        while left != 0 and self._speed > 0 and self._is_raised(now):
            left = self._walk(now)

    def _is_raised(self, now: Draft) -> bool:
        """Raises the speed of rings, the speed of NVLS between nodes, or the speed of trees inside
        nodes; False if that is not useful.
        """
        best = self._best
        faster = self._speeds[self._speed - 1]
        if best.pattern == Pattern.RING:
            now.intra = now.inter = faster
        elif best.pattern == Pattern.NVLS:
            if now.inter != best.inter or now.inter >= now.intra * 2:
                return False
            now.least = now.most = best.count
            now.inter = faster
        else:
            if now.intra != best.intra or now.intra >= now.inter * 2:
                return False
            now.intra = faster
        self._speed -= 1
        return True

    def _duplicate(self) -> None:
        best = self._best
        if best.count == 0 or best.pattern == Pattern.NVLS:
            return
        if best.intra < _DUPLICATED_FROM_GB_PER_S:
            return
        if self._is_new and best.intra < _DUPLICATED_MANY_FROM_GB_PER_S and best.count > 4:
            return
        count = min(best.count * 2, best.most)
        best.orders += [list(order) for order in best.orders[: count - best.count]]
        best.nets += [list(nets) for nets in best.nets[: count - best.count]]
        times = -(-count // best.count)
        best.intra /= times
        best.inter /= times
        best.count = count

    def _take_simple_order(self) -> None:
        """NCCL's fallback if it finds no channels: the order of ranks, at a rate of nearly 0."""
        best, topology = self._best, self._topology
        best.orders = [list(range(len(topology.gpus)))]
        best.intra, best.intra_path, best.count = 0.1, Path.SYS, 1
        ends = [preferred_nets(topology, None, gpu)[:1] for gpu in (0, len(topology.gpus) - 1)]
        if all(ends):
            best.nets = [[ends[0][0], ends[1][0]]]
            best.inter, best.inter_path = 0.1, Path.SYS
        else:
            best.nets = [[]]
            best.inter, best.inter_path = 0.0, Path.DIS


def _total(gpu: Node) -> float:
    """GB/s of a GPU's NVLinks, or of its PCIe link if that is faster."""
    nvlinks = sum(link.rate_gb_per_s for link in gpu.links if link.kind == "nvl")
    return max(nvlinks, pcie_rate(gpu))
