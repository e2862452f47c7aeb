# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""One of NCCL's searches for channels, at one speed and with one set of rules.

Follows ncclTopoSearchRec and its callees in src/graph/search.cc (NVIDIA/nccl, commit 5067397c): it
visits GPUs depth first and subtracts each hop's rate from the links. Functions that call one
another in C++ yield one another here, because the recursion for rings of 72 GPUs exceeds Python's
stack.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from towpath.collectives.nccl.communicator import Path, Pattern
from towpath.collectives.nccl.topology import Link, Node, Topology

_BUDGET = 1 << 14
_BUDGET_SAME_CHANNELS = 1 << 8
_BUDGET_PCI_ORDER = 1 << 10
_INSIDE = ("gpu", "nvs")
_TREES = (Pattern.BALANCED_TREE, Pattern.SPLIT_TREE, Pattern.TREE)

_Steps = Iterator["_Steps"]
_Forced = Literal["", "pci", "replay"]


@dataclass
class Draft:
    """A graph during the search, with the rules of the search.

    `least` and `most` are numbers of channels, and `intra` and `inter` are GB/s per channel.
    `intra_path` and `inter_path` are the farthest paths allowed. The first `count` entries of
    `orders` and `nets` are complete channels; one more may be incomplete.
    """

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
    count: int = 0

    @property
    def budget(self) -> int:
        """Number of visits of GPUs that a search may make, including repetitions."""
        return _BUDGET_SAME_CHANNELS if self.same else _BUDGET

    def copy(self) -> Draft:
        """A copy with separate lists, which contain only complete channels."""
        made = dataclasses.replace(self)
        made.orders = [list(order) for order in self.orders[: self.count]]
        made.nets = [list(nets) for nets in self.nets[: self.count]]
        return made


@dataclass
class _Budget:
    """Remaining visits; -1 means that the result is perfect."""

    left: int


class _Course(NamedTuple):
    """The course of a channel: the step at which it returns to the network or to its first GPU, -1
    for never, and the order that it must follow.
    """

    budget: _Budget
    back_to_net: int
    back_to_first: int
    forced: _Forced = ""


class Walk:
    """A search. It improves `best`, which has the result after `run`."""

    def __init__(self, topology: Topology, rules: Draft, best: Draft) -> None:
        self.best = best
        self._topology = topology
        self._now = rules.copy()
        self._now.orders, self._now.nets, self._now.count = [], [], 0
        self._used: list[set[int]] = []
        self._nets_by_path: dict[tuple[Path, int | None], list[int]] = {}
        self._gpus_by_net: dict[int, list[int]] = {}
        self._parts_by_rate: dict[tuple[Node, Node, float], list[tuple[Link, int]]] = {}

    def run(self) -> int:
        """Searches, and restores the links. Returns the remaining budget."""
        budget = _Budget(self._now.budget)
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
            back = {Pattern.RING: gpus - 1, Pattern.SPLIT_TREE: 1}.get(now.pattern, 0)
            yield self._from_nets(_Course(budget, back, -1))
        else:
            back = gpus - 1 if now.pattern == Pattern.RING else -1
            yield self._from_gpus(_Course(budget, -1, back))
        now.orders.pop()
        now.nets.pop()
        self._used.pop()

    def _from_gpus(self, course: _Course) -> _Steps:
        now = self._now
        if now.pattern == Pattern.NVLS:
            yield self._try_gpu(course, None, now.count, 0)
            return
        if now.count == 0:
            yield self._try_gpu(course._replace(forced="pci"), None, 0, 0)
        else:
            first = now.orders[now.count - 1][0]
            yield self._try_gpu(course._replace(forced="replay"), None, first, 0)
        if not now.same or now.count == 0:
            for gpu in range(len(self._topology.gpus)):
                yield self._try_gpu(course, None, gpu, 0)

    def _from_nets(self, course: _Course) -> _Steps:
        now, topology = self._now, self._topology
        rate = int(now.inter)  # NCCL keeps it as an integer here
        nets = preferred_nets(topology, now.inter_path, None, self._nets_by_path)
        for number in range(len(nets)):
            index = nets[(now.count + number) % len(nets)]
            if topology.net_left[index] < rate or not self._may_enter_by(index):
                continue
            now.nets[now.count] = [index]
            topology.net_left[index] -= rate
            if now.pattern != Pattern.NVLS:
                yield self._from_net(course, index)
                topology.net_left[index] += rate
                continue
            is_found = self._is_new_head(index, len(nets))
            if is_found:
                head = topology.nearest_gpu[index]
                assert head is not None
                yield self._try_gpu(course, topology.nets[index], head, 0)
            topology.net_left[index] += rate
            if is_found:
                return

    def _may_enter_by(self, index: int) -> bool:
        """True if the second ring of a pair enters where the first one leaves."""
        now = self._now
        if now.pattern != Pattern.RING or now.cross_nic != 2 or now.count % 2 == 0:
            return True
        return now.nets[now.count - 1][1:] == [index]

    def _is_new_head(self, net: int, nets: int) -> bool:
        now, head = self._now, self._topology.nearest_gpu[net]
        if now.count >= nets or head is None:
            return False
        return all(order[0] != head for order in now.orders[: now.count])

    def _from_net(self, course: _Course, index: int) -> _Steps:
        now, topology = self._now, self._topology
        net = topology.nets[index]
        if now.count > 0 and now.same:
            first = now.orders[now.count - 1][0]
            yield self._try_gpu(course._replace(forced="replay"), net, first, 0)
            return
        if now.count == 0 and not topology.switches:
            short = _Budget(_BUDGET_PCI_ORDER)
            yield self._try_gpu(course._replace(budget=short, forced="pci"), net, 0, 0)
            if short.left == -1:
                course.budget.left = -1
        nearest = topology.nearest_gpu[index]
        if nearest is not None:
            yield self._try_gpu(course, net, nearest, 0)
        if index not in self._gpus_by_net:
            self._gpus_by_net[index] = topology.nearest(net, topology.gpus)
        for gpu in self._gpus_by_net[index]:
            if gpu != nearest:
                yield self._try_gpu(course, net, gpu, 0)

    def _try_gpu(self, course: _Course, start: Node | None, gpu: int, step: int) -> _Steps:
        target = self._topology.gpus[gpu]
        if start is not None and not self._take(start, target, 1):
            return
        used = self._used[self._now.count]
        used ^= {gpu}
        yield self._at_gpu(course, gpu, step)
        used ^= {gpu}
        if start is not None:
            self._take(start, target, -1)

    def _at_gpu(self, course: _Course, gpu: int, step: int) -> _Steps:
        if course.budget.left <= 0:
            return
        course.budget.left -= 1
        now, gpus = self._now, self._topology.gpus
        if step == len(gpus):
            yield self._channel_done(course.budget)
            return
        order = now.orders[now.count]
        del order[step:]
        order.append(gpu)
        if step == course.back_to_net:
            yield self._back_to_net(course, gpu, step)
        elif now.pattern == Pattern.NVLS:
            yield self._try_switch(course, gpu)
        elif step < len(gpus) - 1:
            for following in self._following(course, gpu, step):
                yield self._try_gpu(course, gpus[gpu], following, step + 1)
        elif step == course.back_to_first:
            if self._take(gpus[gpu], gpus[order[0]], 1):
                yield self._at_gpu(course._replace(back_to_first=-1), order[0], step + 1)
                self._take(gpus[gpu], gpus[order[0]], -1)
        else:
            yield self._at_gpu(course, gpu, len(gpus))

    def _channel_done(self, budget: _Budget) -> _Steps:
        now = self._now
        now.count += 1
        if self._is_better():
            self.best = now.copy()
            if now.count == now.most:
                budget.left = -1
        if now.count < now.most:
            yield self._next_channel(budget)
        now.count -= 1

    def _is_better(self) -> bool:
        now, best = self._now, self.best
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

    def _back_to_net(self, course: _Course, gpu: int, step: int) -> _Steps:
        now, topology = self._now, self._topology
        nets = now.nets[now.count]
        is_balanced = now.pattern == Pattern.BALANCED_TREE
        following = course._replace(back_to_net=1 if is_balanced and step == 0 else -1)
        whole = now.inter
        part = whole / 2 if is_balanced else whole  # the first two GPUs have half of it each
        for index in preferred_nets(topology, now.inter_path, gpu, self._nets_by_path):
            if not self._may_leave_by(index, step):
                continue
            now.inter = part
            is_taken = self._take(topology.gpus[gpu], topology.nets[index], 1)
            now.inter = whole
            if not is_taken:
                continue
            del nets[1:]
            nets.append(index)
            yield self._at_gpu(following, gpu, step)
            now.inter = part
            self._take(topology.gpus[gpu], topology.nets[index], -1)
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

    def _try_switch(self, course: _Course, head: int) -> _Steps:
        """Tries every GPU's part through the switch and back, and the head's part twice."""
        gpus, switch = self._topology.gpus, self._topology.switches[0]
        hops = [(switch, gpu) for gpu in gpus] + [(gpu, switch) for gpu in gpus]
        taken: list[tuple[Node, Node, int]] = []
        for start, target in hops:
            times = 2 if gpus[head] in (start, target) else 1
            if not self._take(start, target, times):
                break
            taken.append((start, target, times))
        else:
            others = [gpu for gpu in range(len(gpus)) if gpu != head]
            self._now.orders[self._now.count] += others
            yield self._at_gpu(course._replace(back_to_net=-1), head, len(gpus))
        for start, target, times in reversed(taken):
            self._take(start, target, -times)

    def _take(self, start: Node, target: Node, times: int) -> bool:
        """Takes a channel's rate from every link of a path, or gives it back if `times` is
        negative. Returns True if the rate was available.
        """
        now = self._now
        is_inside = start.kind in _INSIDE and target.kind in _INSIDE
        rate = now.intra if is_inside else now.inter
        farthest = now.intra_path if is_inside else now.inter_path
        if times > 0 and not self._is_near(start, target, farthest):
            return False
        parts = self._parts(start, target, rate * times)
        for number, (link, part) in enumerate(parts):
            if link.left_mb_per_s < part:
                for back, given in parts[:number]:
                    back.left_mb_per_s = round(back.left_mb_per_s + given)
                return False
            link.left_mb_per_s = round(link.left_mb_per_s - part)
        now.hops += len(parts) if times > 0 else -len(parts)
        return True

    def _is_near(self, start: Node, target: Node, farthest: Path) -> bool:
        if start.way(target).path > farthest:
            return False
        return self._now.pattern not in _TREES or target.way(start).path <= farthest

    def _parts(self, start: Node, target: Node, rate: float) -> list[tuple[Link, int]]:
        """The links of a path, and the MB/s that a channel of a rate takes from each."""
        known = self._parts_by_rate.get((start, target, rate))
        if known is not None:
            return known
        way = start.way(target)
        pcie = rate
        if way.path == Path.PHB and start.kind == "gpu" and self._topology.cpu == "intel":
            pcie = rate * 6 / 5  # INTEL_P2P_OVERHEAD, src/graph/topo.h
        parts = [(link, round((pcie if link.kind == "pci" else rate) * 1e3)) for link in way.links]
        self._parts_by_rate[start, target, rate] = parts
        return parts

    def _following(self, course: _Course, gpu: int, step: int) -> list[int]:
        """The GPUs to visit next, the most promising first."""
        now, gpus = self._now, self._topology.gpus
        if course.forced == "pci":
            return [step + 1]
        if course.forced == "replay":
            return [now.orders[now.count - 1][step + 1]]
        used = self._used[now.count]
        if self._topology.switches:
            return [other for other in self._neighbours(gpu) if other not in used]
        others = [(gpu + number) % len(gpus) for number in range(1, len(gpus))]
        unused = [
            other for other in others if other not in used and gpus[gpu].way(gpus[other]).links
        ]
        if course.back_to_net == -1:
            return self._ranked(gpu, unused, "")
        return self._ranked(gpu, unused, "net" if course.back_to_net == step + 1 else "far")

    def _neighbours(self, gpu: int) -> list[int]:
        """The GPUs to try next to a switch: only the next GPU and the previous one, because
        switches are best at a few pairs.
        """
        gpus = self._topology.gpus
        before, after = (gpu - 1) % len(gpus), (gpu + 1) % len(gpus)
        if self._now.pattern == Pattern.RING:
            first = [before, after]
        elif self._now.pattern in (Pattern.SPLIT_TREE, Pattern.BALANCED_TREE):
            first = [after, before]
        else:
            first = [after]
        return [other for other in dict.fromkeys(first) if gpus[gpu].way(gpus[other]).links]

    def _ranked(self, gpu: int, unused: list[int], by: Literal["", "net", "far"]) -> list[int]:
        """Orders GPUs by the rate from the adapter if that counts, then by the rate from this GPU;
        "far" reverses the order if all are equal.
        """
        gpus, now = self._topology.gpus, self._now
        inside = {}
        for other in unused:
            way = gpus[gpu].way(gpus[other])
            inside[other] = (-int(way.rate_gb_per_s), len(way.links))
        between = dict.fromkeys(unused, (0, 0, 0))
        if by:
            net = self._topology.nets[now.nets[now.count][0]]
            for other in unused:
                way = net.way(gpus[other])
                rate = int(way.rate_gb_per_s)
                between[other] = (-rate, -pcie_rate(gpus[other]), len(way.links))
        ranked = sorted(unused, key=lambda other: (*between[other], *inside[other]))  # stable
        if by == "far" and len(set(inside.values())) == 1:
            ranked.reverse()
        return ranked


def preferred_nets(
    topology: Topology,
    farthest: Path | None,
    gpu: int | None,
    known: dict[tuple[Path, int | None], list[int]] | None = None,
) -> list[int]:
    """Adapters in the order in which they are tried: preferred adapters, and then other adapters in
    reach.

    Args:
        topology: a node.
        farthest: class of the farthest other adapters; None: only preferred ones.
        gpu: the GPU; None: all GPUs.
        known: results so far, by (farthest, gpu).
    """
    if farthest is not None and known is not None and (farthest, gpu) in known:
        return known[farthest, gpu]
    gpus = range(len(topology.gpus)) if gpu is None else [gpu]
    found: dict[int, None] = {}
    for one in gpus:
        found.update(dict.fromkeys(topology.nets_of(one)))
    for path in range(0 if farthest is None else farthest + 1):
        for one in gpus:
            for number, net in enumerate(topology.nets):
                if topology.gpus[one].way(net).path == path:
                    found[number] = None
    if farthest is not None and known is not None:
        known[farthest, gpu] = list(found)
    return list(found)


def pcie_rate(gpu: Node) -> int:
    """GB/s of a GPU's PCIe link, as an integer; 0 if it has none."""
    return int(next((link.rate_gb_per_s for link in gpu.links if link.kind == "pci"), 0))
