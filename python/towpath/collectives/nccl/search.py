# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""NCCL's search for channels through a node: how many, how fast, and in which order of GPUs.

Follows src/graph/search.cc (NVIDIA/nccl, commit 5067397c): at falling speeds, with looser and
looser rules, it walks GPUs depth first and takes each hop's rate from the links; what it has after
its budget of tries is the answer. The same budgets are kept, so that the answer is the same.
Functions that call one another in C++ yield one another here: rings of 72 GPUs are deep.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

from towpath.collectives.nccl.communicator import Channel, Generation, Graph, Path, Pattern
from towpath.collectives.nccl.topology import Link, Node, Topology, Way

# GB/s per channel that are tried, in one node and between nodes.
_SPEEDS = {
    "old": (40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0),
    "hopper": (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0),
    "blackwell": (
        90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0,
    ),
}  # fmt: skip
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
_BUDGET = 1 << 14
_BUDGET_SAME_CHANNELS = 1 << 8
_BUDGET_PCI_ORDER = 1 << 10
_BUDGET_OF_ALL = 1 << 19
_TREES = (Pattern.BALANCED_TREE, Pattern.SPLIT_TREE, Pattern.TREE)
_NVLS_HEADS_MAX = 32  # NCCL_MAX_NVLS_ARITY, src/include/device.h
_SOME_PART_OF_A_SPEED = 0.49

_Steps = Iterator["_Steps"]


@dataclass
class _Draft:
    """A graph while it is searched for."""

    pattern: Pattern
    least: int
    most: int
    intra: float = 0.0
    inter: float = 0.0
    intra_path: Path = Path.LOC
    inter_path: Path = Path.PIX
    cross_nic: int = 0
    same: bool = True
    latency: float = 0.0
    hops: int = 0
    orders: list[list[int]] = field(default_factory=list)
    nets: list[list[int]] = field(default_factory=list)
    # Complete channels; the last order may be one that is still walked.
    count: int = 0

    def copy(self) -> _Draft:
        made = dataclasses.replace(self)
        made.orders = [list(order) for order in self.orders[: self.count]]
        made.nets = [list(nets) for nets in self.nets[: self.count]]
        return made


@dataclass
class _Budget:
    """Tries that are left; -1 says that the answer is perfect."""

    left: int


def find_graph(
    topology: Topology,
    pattern: Pattern,
    generation: Generation,
    channels: tuple[int, int],
    cross_nic: int = 2,
) -> Graph | None:
    """The channels that NCCL finds for a pattern; None if it finds none.

    Args:
        topology: a node, whose links are as they were when this returns.
        pattern: what the channels look like.
        generation: of the GPUs.
        channels: the fewest and the most.
        cross_nic: whether a ring may leave by another adapter than it enters: 0 no, 1 yes, 2 where
            that helps (NCCL_CROSS_NIC).
    """
    found = _Search(topology, pattern, generation, channels, cross_nic).run()
    if found is None or found.count == 0:
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
    def __init__(
        self,
        topology: Topology,
        pattern: Pattern,
        generation: Generation,
        channels: tuple[int, int],
        cross_nic: int,
    ) -> None:
        self._topology = topology
        self._generation = generation
        self._is_new = generation in ("hopper", "blackwell")
        self._best = _Draft(pattern, *channels)
        self._now = self._best
        self._used: list[set[int]] = []
        self._nets_by_path: dict[tuple[Path | None, int | None], list[int]] = {}
        can_cross = len(topology.nets) > 1 and pattern in (
            Pattern.RING, Pattern.BALANCED_TREE, Pattern.SPLIT_TREE,
        )  # fmt: skip
        self._cross_nic = cross_nic if can_cross else 0
        key = generation if self._is_new else "old"
        self._speeds = (_SPEEDS_BETWEEN if topology.is_joined else _SPEEDS)[key]
        self._speed = 0
        others = topology.nets if topology.is_joined else topology.gpus
        self._fastest = max(
            (gpu.way(other).rate_gb_per_s for gpu in topology.gpus for other in others
             if gpu.way(other).links),
            default=0.0,
        )  # fmt: skip
        self._total = max((_total(gpu) for gpu in topology.gpus), default=0.0)

    # -- the two passes --------------------------------------------------------------------------

    def run(self) -> _Draft | None:
        topology, best = self._topology, self._best
        if best.pattern == Pattern.NVLS and not (topology.switches and self._is_new):
            return None
        if len(topology.gpus) == 1 and not topology.is_joined:
            return None
        self._set_bounds()
        total = self._total
        gpus = len(topology.gpus)
        if gpus > 1 and best.pattern != Pattern.RING:
            total *= gpus / (gpus - 1)  # only rings go back to where they began
        while self._speed < len(self._speeds) - 1 and (
            self._speeds[self._speed] > self._fastest
            or self._speeds[self._speed] * best.least > total
        ):
            self._speed += 1
        self._first_pass()
        self._second_pass()
        if self._best.count == 0 and best.pattern != Pattern.NVLS:
            return self._simple_order()
        return self._best

    def _set_bounds(self) -> None:
        topology, best = self._topology, self._best
        gpus, nets = topology.gpus, topology.nets
        paths = [one.way(other).path for one in gpus for other in gpus if one is not other]
        self._intra_least, self._intra_most = Path.LOC, Path.SYS
        self._inter_least, self._inter_most = Path.PIX, Path.SYS
        if paths:
            self._intra_least, self._intra_most = min(paths), max(paths)
        if topology.is_joined:
            reach = [gpu.way(net).path for gpu in gpus for net in nets]
            self._inter_least = min(reach, default=Path.SYS)
            self._inter_most = max(reach, default=Path.SYS)
            self._intra_most = self._inter_most
        if not self._is_new:
            self._inter_most = Path.SYS
        best.intra_path, best.inter_path = self._intra_least, self._inter_least
        best.cross_nic = 1 if self._cross_nic == 1 else 0
        best.same = best.pattern != Pattern.NVLS
        if best.pattern == Pattern.NVLS:
            best.most = min(_NVLS_HEADS_MAX, len(gpus))
            if not topology.is_joined:
                best.least = best.most
        if len(gpus) == 1 and best.pattern != Pattern.RING:
            best.pattern = Pattern.TREE
        if best.pattern == Pattern.RING and self._is_split() and best.most >= 2:
            best.least = max(best.least, 2)

    def _is_split(self) -> bool:
        """Two groups of GPUs, each joined by NVLink, and none between them."""
        gpus = self._topology.gpus
        domain = list(range(len(gpus)))
        for one, gpu in enumerate(gpus):
            for other in range(one + 1, len(gpus)):
                if gpu.way(gpus[other]).path == Path.NVL:
                    domain[other] = domain[one]
        return sum(domain.count(number) > 1 for number in range(len(gpus))) == 2

    def _first_pass(self) -> None:
        """Looser and looser rules, then lower speeds."""
        best_of_all = _BUDGET_OF_ALL
        now = self._at_speed(self._best.copy())
        pattern, same = self._best.pattern, self._best.same
        intra_least, inter_least = self._intra_least, self._inter_least
        while True:
            # What cannot be better is not searched: NCCL spends its budget there, and finds nothing.
            left = self._search(now) if self._may_be_better(now) else 0
            best_of_all -= _budget_of(now)
            if left == -1 or self._best.count * self._best.inter >= self._total:
                return
            best = self._best
            if now.same and not (self._topology.cpu == "amd" and now.intra_path == Path.SYS):
                now.same = False
                continue
            now.same = same
            best_of_all += left
            if best_of_all < 0 and best.count:
                return
            if self._is_new and now.pattern == Pattern.BALANCED_TREE:
                now.pattern = Pattern.TREE
                continue
            now.pattern = pattern
            most = now.inter_path if self._topology.is_joined else self._intra_most
            if now.intra_path < most and (best.count == 0 or now.intra_path < best.intra_path):
                now.intra_path = Path(now.intra_path + 1)
                continue
            now.intra_path = intra_least
            if (
                self._topology.is_joined
                and now.inter_path < self._inter_most
                and (
                    best.count == 0 or now.inter_path < best.inter_path or now.inter_path < Path.PXN
                )
            ):
                now.inter_path = Path(now.inter_path + 1)
                continue
            now.inter_path = inter_least
            crosses = pattern in (Pattern.RING, Pattern.BALANCED_TREE)
            if self._cross_nic == 2 and now.cross_nic == 0 and crosses:
                now.cross_nic = 2
                continue
            now.cross_nic = 1 if self._cross_nic == 1 else 0
            following = self._speed + 1
            if following < len(self._speeds) and (
                best.count == 0 or self._speeds[following] / best.inter > _SOME_PART_OF_A_SPEED
            ):
                self._speed = following
                self._at_speed(now)
                continue
            return

    def _may_be_better(self, now: _Draft) -> bool:
        """Whether a search can find more than there is: by the rate that leaves each GPU, and by
        the adapters through which channels can pass."""
        if now.pattern == Pattern.NVLS:
            return True
        gpus, best = len(self._topology.gpus), self._best
        kinds = ("nvl",) if now.intra_path <= Path.NVB else ("nvl", "pci")
        out = [
            sum(link.rate_gb_per_s for link in gpu.links if link.kind in kinds)
            for gpu in self._topology.gpus
        ]
        closes = now.pattern == Pattern.RING and not self._topology.is_joined
        hops = gpus if closes else gpus - 1
        most: float = min(now.most, sum(out) / (hops * now.intra) if hops else now.most)
        if closes:
            most = min(most, min(out) / now.intra)
        if self._topology.is_joined:
            most = min(most, self._channels_of_nets(now))
        count = int(most + 1e-6)
        if count < max(now.least, 1):
            return False
        if count * now.intra != best.count * best.intra or now.pattern != best.pattern:
            return count * now.intra > best.count * best.intra
        shortest = min(
            (len(one.way(other).links) for one in self._topology.gpus
             for other in self._topology.gpus if one is not other),
            default=1,
        )  # fmt: skip
        return best.hops > count * hops * shortest

    def _channels_of_nets(self, now: _Draft) -> int:
        """At most so many channels can enter and leave the node."""
        topology, rate = self._topology, max(int(now.inter), 1)
        count = 0
        for net, left in zip(topology.nets, topology.net_left, strict=True):
            enters = {
                number
                for number, gpu in enumerate(topology.gpus)
                if net.way(gpu).path <= now.inter_path
            }
            leaves = {
                number
                for number, gpu in enumerate(topology.gpus)
                if gpu.way(net).path <= now.inter_path
            }
            if now.pattern == Pattern.RING and len(topology.gpus) > 1 and now.cross_nic == 0:
                can = len(enters | leaves) > 1 and bool(enters) and bool(leaves)
            else:
                can = bool(enters)
            count += int(left // rate) if can else 0
        return count

    def _second_pass(self) -> None:
        """The channels twice, each of half the rate; then higher speeds again."""
        self._duplicate()
        best = self._best
        now = best.copy()
        self._speed = 0
        while self._speeds[self._speed] > best.inter and self._speed < len(self._speeds) - 1:
            self._speed += 1
        now.intra = now.inter = self._speeds[self._speed]
        now.least = best.count
        left = -1
        while left != 0 and self._speed > 0 and best.count > 0:
            best = self._best
            if best.pattern == Pattern.RING:
                self._speed -= 1
                now.intra = now.inter = self._speeds[self._speed]
            elif best.pattern == Pattern.NVLS:
                if not (now.inter == best.inter and now.inter < now.intra * 2):
                    return
                now.least = now.most = best.count
                self._speed -= 1
                now.inter = self._speeds[self._speed]
            elif now.intra == best.intra and now.intra < now.inter * 2:
                self._speed -= 1
                now.intra = self._speeds[self._speed]
            else:
                return
            left = self._search(now)

    def _duplicate(self) -> None:
        best = self._best
        if best.count == 0 or best.pattern == Pattern.NVLS or best.intra < 25.0:
            return
        if self._is_new and best.intra < 50.0 and best.count > 4:
            return
        count = min(best.count * 2, best.most)
        best.orders += [list(order) for order in best.orders[: count - best.count]]
        best.nets += [list(nets) for nets in best.nets[: count - best.count]]
        times = -(-count // best.count)
        best.intra /= times
        best.inter /= times
        best.count = count

    def _at_speed(self, draft: _Draft) -> _Draft:
        draft.intra = draft.inter = self._speeds[self._speed]
        return draft

    def _simple_order(self) -> _Draft:
        """What NCCL does where it finds nothing: the order of ranks, at a rate of nearly 0."""
        best = self._best
        best.orders = [list(range(len(self._topology.gpus)))]
        best.intra, best.intra_path, best.count = 0.1, Path.SYS, 1
        best.nets = [[]]
        nets = [self._nets(None, gpu)[:1] for gpu in (0, len(self._topology.gpus) - 1)]
        if all(nets):
            best.nets = [[nets[0][0], nets[1][0]]]
            best.inter, best.inter_path = 0.1, Path.SYS
        else:
            best.inter, best.inter_path = 0.0, Path.DIS
        return best

    # -- one search --------------------------------------------------------------------------------

    def _search(self, draft: _Draft) -> int:
        """Looks for channels under the rules of a draft. Returns the budget that is left."""
        budget = _Budget(_budget_of(draft))
        self._now = draft.copy()
        self._now.orders, self._now.nets, self._now.count = [], [], 0
        self._now.hops = draft.hops
        self._used = []
        stack: list[_Steps] = [self._next_channel(budget)]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
            else:
                stack.append(following)
        return budget.left

    def _next_channel(self, budget: _Budget) -> _Steps:
        now, gpus = self._now, len(self._topology.gpus)
        self._used.append(set())
        now.orders.append([])
        now.nets.append([])
        if self._topology.is_joined:
            if now.pattern == Pattern.RING:
                back_to_net = gpus - 1
            else:
                back_to_net = 1 if now.pattern == Pattern.SPLIT_TREE else 0
            yield self._from_nets(budget, back_to_net)
        else:
            back_to_first = gpus - 1 if now.pattern == Pattern.RING else -1
            yield self._from_gpus(budget, back_to_first)
        now.orders.pop()
        now.nets.pop()
        self._used.pop()

    def _from_gpus(self, budget: _Budget, back: int) -> _Steps:
        now = self._now
        if now.pattern == Pattern.NVLS:
            yield self._try_gpu(budget, None, now.count, 0, (-1, back), "")
            return
        if now.count == 0:
            yield self._try_gpu(budget, None, 0, 0, (-1, back), "pci")
        else:
            first = now.orders[now.count - 1][0]
            yield self._try_gpu(budget, None, first, 0, (-1, back), "replay")
        if not now.same or now.count == 0:
            for gpu in range(len(self._topology.gpus)):
                yield self._try_gpu(budget, None, gpu, 0, (-1, back), "")

    def _from_nets(self, budget: _Budget, back: int) -> _Steps:
        now, topology = self._now, self._topology
        rate = int(now.inter)  # NCCL keeps it as an integer here
        nets = self._nets(now.inter_path, None)
        for number in range(len(nets)):
            index = nets[(now.count + number) % len(nets)]
            if topology.net_left[index] < rate:
                continue
            crosses = now.pattern == Pattern.RING and now.cross_nic == 2
            if crosses and now.count % 2 == 1 and now.nets[now.count - 1][1:] != [index]:
                continue
            now.nets[now.count] = [index]
            topology.net_left[index] -= rate
            if now.pattern == Pattern.NVLS:
                is_found = self._is_new_head(index, len(nets))
                if is_found:
                    head = topology.nearest_gpu[index]
                    assert head is not None
                    start = topology.nets[index]
                    yield self._try_gpu(budget, start, head, 0, (back, -1), "")
                topology.net_left[index] += rate
                if is_found:
                    return
                continue
            yield self._from_net(budget, index, back)
            topology.net_left[index] += rate

    def _is_new_head(self, net: int, nets: int) -> bool:
        now, head = self._now, self._topology.nearest_gpu[net]
        if now.count >= nets or head is None:
            return False
        return all(order[0] != head for order in now.orders[: now.count])

    def _from_net(self, budget: _Budget, index: int, back: int) -> _Steps:
        now, topology = self._now, self._topology
        net = topology.nets[index]
        if now.count > 0 and now.same:
            first = now.orders[now.count - 1][0]
            yield self._try_gpu(budget, net, first, 0, (back, -1), "replay")
            return
        if now.count == 0 and not topology.switches:
            short = _Budget(_BUDGET_PCI_ORDER)
            yield self._try_gpu(short, net, 0, 0, (back, -1), "pci")
            if short.left == -1:
                budget.left = -1
        nearest = topology.nearest_gpu[index]
        if nearest is not None:
            yield self._try_gpu(budget, net, nearest, 0, (back, -1), "")
        for gpu in topology.nearest(net, topology.gpus):
            if gpu != nearest:
                yield self._try_gpu(budget, net, gpu, 0, (back, -1), "")

    def _try_gpu(
        self,
        budget: _Budget,
        start: Node | None,
        gpu: int,
        step: int,
        backs: tuple[int, int],
        forced: str,
    ) -> _Steps:
        target = self._topology.gpus[gpu]
        if start is not None and not self._take(start, target, 1):
            return
        used = self._used[self._now.count]
        used ^= {gpu}
        yield self._at_gpu(budget, gpu, step, backs, forced)
        used ^= {gpu}
        if start is not None:
            self._take(start, target, -1)

    def _at_gpu(
        self, budget: _Budget, gpu: int, step: int, backs: tuple[int, int], forced: str
    ) -> _Steps:
        if budget.left <= 0:
            return
        budget.left -= 1
        now, gpus = self._now, len(self._topology.gpus)
        if step == gpus:
            yield self._channel_done(budget)
            return
        order = now.orders[now.count]
        del order[step:]
        order.append(gpu)
        back_to_net, back_to_first = backs
        if step == back_to_net:
            yield self._back_to_net(budget, gpu, step, back_to_first, forced)
        elif now.pattern == Pattern.NVLS:
            yield self._try_switch(budget, gpu)
        elif step < gpus - 1:
            for following in self._following(gpu, step, back_to_net, forced):
                start = self._topology.gpus[gpu]
                yield self._try_gpu(budget, start, following, step + 1, backs, forced)
        elif step == back_to_first:
            here, first = self._topology.gpus[gpu], self._topology.gpus[order[0]]
            if self._take(here, first, 1):
                yield self._at_gpu(budget, order[0], step + 1, (back_to_net, -1), forced)
                self._take(here, first, -1)
        else:
            yield self._at_gpu(budget, gpu, gpus, (-1, -1), forced)

    def _channel_done(self, budget: _Budget) -> _Steps:
        now = self._now
        now.count += 1
        if self._is_better():
            self._best = now.copy()
            if now.count == now.most:
                budget.left = -1
        if now.count < now.most:
            yield self._next_channel(budget)
        now.count -= 1

    def _is_better(self) -> bool:
        now, best = self._now, self._best
        if now.count < now.least:
            return False
        if now.pattern == Pattern.NVLS:
            if best.count < now.count <= len(self._topology.gpus):
                return True
            return now.count * now.inter > best.count * best.inter
        if now.count * now.intra != best.count * best.intra:
            return now.count * now.intra > best.count * best.intra
        is_alike = now.pattern == best.pattern and now.cross_nic == best.cross_nic
        return is_alike and now.hops < best.hops

    def _back_to_net(
        self, budget: _Budget, gpu: int, step: int, back_to_first: int, forced: str
    ) -> _Steps:
        now, topology = self._now, self._topology
        if not topology.is_joined:
            return
        nets = now.nets[now.count]
        is_balanced = now.pattern == Pattern.BALANCED_TREE
        for index in self._nets(now.inter_path, gpu):
            if not self._may_leave_by(index, step):
                continue
            here, net = topology.gpus[gpu], topology.nets[index]
            whole = now.inter
            if is_balanced:
                now.inter /= 2  # the first two GPUs have half of it each
            is_taken = self._take(here, net, 1)
            now.inter = whole
            if not is_taken:
                continue
            del nets[1:]
            nets.append(index)
            following = 1 if is_balanced and step == 0 else -1
            yield self._at_gpu(budget, gpu, step, (following, back_to_first), forced)
            if is_balanced:
                now.inter /= 2
            self._take(here, net, -1)
            now.inter = whole

    def _may_leave_by(self, index: int, step: int) -> bool:
        now = self._now
        entered = now.nets[now.count][0]
        if now.pattern == Pattern.TREE and index != entered:
            return False
        if now.pattern == Pattern.RING and now.cross_nic == 2:
            if now.count % 2 == 1 and index != now.nets[now.count - 1][0]:
                return False
        elif now.cross_nic == 0 and index != entered:
            return False
        if now.pattern == Pattern.BALANCED_TREE and step != 0:
            return now.nets[now.count][1:] == [index]
        return True

    def _try_switch(self, budget: _Budget, head: int) -> _Steps:
        """Every GPU's part through the switch and back; the head's twice."""
        gpus, switch = self._topology.gpus, self._topology.switches[0]
        hops = [(switch, gpu) for gpu in gpus] + [(gpu, switch) for gpu in gpus]
        taken: list[tuple[Node, Node, int]] = []
        for one, other in hops:
            times = 2 if gpus[head] in (one, other) else 1
            if not self._take(one, other, times):
                break
            taken.append((one, other, times))
        else:
            self._now.orders[self._now.count] += [gpu for gpu in range(len(gpus)) if gpu != head]
            yield self._at_gpu(budget, head, len(gpus), (-1, -1), "")
        for one, other, times in reversed(taken):
            self._take(one, other, -times)

    def _take(self, start: Node, target: Node, times: int) -> bool:
        """Takes a channel's rate from every link of a path, or gives it back where `times` is
        negative. Returns whether there was enough."""
        now = self._now
        way = start.way(target)
        is_inside = start.kind in ("gpu", "nvs") and target.kind in ("gpu", "nvs")
        rate = now.intra if is_inside else now.inter
        farthest = now.intra_path if is_inside else now.inter_path
        if way.path >= Path.DIS:
            return False
        if times > 0:
            if way.path > farthest:
                return False
            if now.pattern in _TREES and target.way(start).path > farthest:
                return False
        rates = self._rates(start, way, rate * times)
        for number, (link, part) in enumerate(rates):
            if link.left < part:
                for back, given in rates[:number]:
                    back.left = round(back.left + given, 3)
                return False
            link.left = round(link.left - part, 3)
        now.hops += len(way.links) * (1 if times > 0 else -1)
        return True

    def _rates(self, start: Node, way: Way, rate: float) -> list[tuple[Link, float]]:
        pcie = rate
        if way.path == Path.PHB and start.kind == "gpu" and self._topology.cpu == "intel":
            pcie = rate * 6 / 5  # INTEL_P2P_OVERHEAD, src/graph/topo.h
        return [(link, pcie if link.kind == "pci" else rate) for link in way.links]

    def _following(self, gpu: int, step: int, back_to_net: int, forced: str) -> list[int]:
        if forced == "pci":
            return [step + 1]
        now = self._now
        if forced == "replay":
            return [now.orders[now.count - 1][step + 1]]
        count = len(self._topology.gpus)
        if self._topology.switches:
            used = self._used[now.count]
            return [one for one in self._neighbours(gpu) if one not in used]
        unused = [
            one
            for number in range(1, count)
            if (one := (gpu + number) % count) not in self._used[now.count]
            and self._topology.gpus[gpu].way(self._topology.gpus[one]).links
        ]
        sorts_nets = 0 if back_to_net == -1 else 1 if back_to_net == step + 1 else -1
        return self._sorted(gpu, unused, sorts_nets)

    def _neighbours(self, gpu: int) -> list[int]:
        """Switches are best at a few pairs: only the next GPU and the one before are tried."""
        gpus = self._topology.gpus
        before, after = (gpu - 1) % len(gpus), (gpu + 1) % len(gpus)
        if self._now.pattern == Pattern.RING:
            first = [before, after]
        elif self._now.pattern in (Pattern.SPLIT_TREE, Pattern.BALANCED_TREE):
            first = [after, before]
        else:
            first = [after]
        return [one for one in dict.fromkeys(first) if gpus[gpu].way(gpus[one]).links]

    def _sorted(self, gpu: int, unused: list[int], sorts_nets: int) -> list[int]:
        gpus, now = self._topology.gpus, self._now
        inside = {
            one: (-int(gpus[gpu].way(gpus[one]).rate_gb_per_s), len(gpus[gpu].way(gpus[one]).links))
            for one in unused
        }
        between: dict[int, tuple[int, int, int]] = dict.fromkeys(unused, (0, 0, 0))
        if sorts_nets != 0:
            net = self._topology.nets[now.nets[now.count][0]]
            for one in unused:
                way = net.way(gpus[one])
                between[one] = (-int(way.rate_gb_per_s), -_pcie_rate(gpus[one]), len(way.links))
        ranked = sorted(unused, key=lambda one: (*between[one], *inside[one]))  # stable
        if sorts_nets == -1 and len(set(inside.values())) == 1:
            ranked.reverse()
        return ranked

    def _nets(self, farthest: Path | None, gpu: int | None) -> list[int]:
        """Adapters in the order in which they are tried: preferred ones, then others in reach."""
        key = (farthest, gpu)
        if key in self._nets_by_path:
            return self._nets_by_path[key]
        topology = self._topology
        gpus = range(len(topology.gpus)) if gpu is None else [gpu]
        found: dict[int, None] = {}
        for one in gpus:
            found.update(dict.fromkeys(topology.nets_of(one)))
        for path in range(0 if farthest is None else farthest + 1):
            for one in gpus:
                for net in range(len(topology.nets)):
                    if topology.gpus[one].way(topology.nets[net]).path == path:
                        found[net] = None
        self._nets_by_path[key] = list(found)
        return self._nets_by_path[key]


def _budget_of(draft: _Draft) -> int:
    return _BUDGET_SAME_CHANNELS if draft.same else _BUDGET


def _total(gpu: Node) -> float:
    """GB/s of a GPU's NVLinks, or of its PCIe where that is faster."""
    nvlinks = sum(link.rate_gb_per_s for link in gpu.links if link.kind == "nvl")
    return max(nvlinks, _pcie_rate(gpu))


def _pcie_rate(gpu: Node) -> int:
    return int(next((link.rate_gb_per_s for link in gpu.links if link.kind == "pci"), 0))
