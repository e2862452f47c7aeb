# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Places of ranks in a simulated call: GPUs, chips that Ethernet joins, nodes with mailboxes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from towpath import _core
from towpath.collectives.result import LinkFailure, LinkLoad
from towpath.collectives.threads import threads_for
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import Self

    from towpath.collectives.link_faults import LinkFault

_STEPS_MAX = 10_000_000_000  # half an hour, where nothing but time is kept
_NO_FOLD = "only GPUs are known to do the same at the same time"


@dataclass(frozen=True)
class Place(ABC):
    """A described machine, with the part of it on which each rank runs.

    This class contains the behavior that most kinds of machine share: no folding, no links, no
    faults.
    """

    @abstractmethod
    def run_of(
        self, plan: _core.Plan, *, with_data: bool = True, seed: int = 1,
        trace: _core.Trace | None = None,
    ) -> _core.SimulatedRun:  # fmt: skip
        """The ranks of a plan on this machine, ready to be invoked.

        Args:
            plan: the plan of the ranks.
            with_data: True if the ranks carry bytes; otherwise only time is simulated.
            seed: seed of all random behavior of the machine.
            trace: receives the events, if given.

        Raises:
            ValueError: the machine is too small for the plan.
        """

    def links_of(self, run: _core.SimulatedRun) -> list[LinkLoad]:
        """The load of each link in `run`, in the machine's order; empty if the machine has no
        links.
        """
        return []

    def failures_of(self, run: _core.SimulatedRun) -> list[LinkFailure]:
        """One entry per link that has a fault."""
        return []

    def track_names(self) -> dict[str, str]:
        """Track names of the simulator with their names in a timeline, if they differ."""
        return {}

    def changed(self, **conditions: Any) -> Self:
        """The same place with changed conditions: the fields of this class that are given.

        Args:
            conditions: `threads`, `folds`, `by_packets`, `link_faults`; a kind of machine without
                such a field ignores the condition.
        """
        known = {each.name for each in fields(self)}
        return replace(self, **{name: conditions[name] for name in known & set(conditions)})

    def why_all(self, plan: _core.Plan, *, with_data: bool) -> str:
        """The reason for simulating every rank of an untraced run; empty if some are not
        simulated.
        """
        return _NO_FOLD

    def busiest_of(self, run: _core.SimulatedRun) -> LinkLoad | None:
        """The first of the busiest links; None if there are no links."""
        return busiest(self.links_of(run))


@dataclass(frozen=True)
class GpuPlace(Place):
    """A machine with GPUs.

    Attributes:
        machine: the machine.
        places: the GPU of each rank; empty: the first ones.
        jitter_ns: maximum random delay of arrivals, to explore interleavings; leave it at zero for
            timing.
        folds: True to simulate ranks with identical behavior once.
        threads: threads of a simulation; None: chosen by `threads_for`.
    """

    machine: _core.Machine
    places: tuple[int, ...] = ()
    jitter_ns: float = 0.0
    folds: bool = True
    threads: int | None = None

    def run_of(
        self, plan: _core.Plan, *, with_data: bool = True, seed: int = 1,
        trace: _core.Trace | None = None,
    ) -> _core.SimulatedRun:  # fmt: skip
        places = list(self.places)
        is_exact = self.folds and not with_data and trace is None and self.jitter_ns == 0
        fold = _core.find_fold(self.machine, plan, places) if is_exact else None
        if (fold is None or fold.period == 0) and plan.steps > _STEPS_MAX:
            raise ConfigError(
                f"{plan.steps:,} steps exceed the maximum of {_STEPS_MAX:,}; ranks with "
                "identical behavior are simulated once, but here "
                + (fold.refusal if fold is not None else "that is off")
            )
        return _core.SimulatedRun.on_gpus(
            self.machine, plan, places=places, carries_data=with_data, seed=seed,
            jitter_ns=self.jitter_ns, trace=trace, fold=fold, threads=threads_for(self.threads),
        )  # fmt: skip

    def why_all(self, plan: _core.Plan, *, with_data: bool) -> str:
        if not self.folds:
            return "as asked for"
        if with_data:
            return "each has data of its own"
        if self.jitter_ns != 0:
            return "each is late by a time of its own"
        return _core.find_fold(self.machine, plan, list(self.places)).refusal

    def busiest_of(self, run: _core.SimulatedRun) -> LinkLoad | None:
        # Less work on a large machine than the loads of all links.
        found = run.busiest
        if found is None:
            return None
        number, size_bytes, busy_us = found
        link = self.machine.link(number)
        names = [self.machine.device(end).name for end in (link.from_device, link.to_device)]
        return LinkLoad(
            names[0], names[1], link.kind.name, size_bytes, busy_us / max(run.now_us, 1e-9)
        )

    def links_of(self, run: _core.SimulatedRun) -> list[LinkLoad]:
        names = [device.name for device in self.machine.devices]
        total_us = max(run.now_us, 1e-9)
        return [
            LinkLoad(
                names[link.from_device],
                names[link.to_device],
                link.kind.name,
                size_bytes,
                busy_us / total_us,
            )
            for link, (size_bytes, busy_us, _) in zip(self.machine.links, run.loads, strict=True)
        ]


@dataclass(frozen=True)
class ChipPlace(Place):
    """A cluster of chips that Ethernet joins.

    Attributes:
        cluster: the chips and their links.
        places: the place in the fabric of each rank; empty: the first ones.
        link_faults: links that may fail.
        shape: shape of the fabric; None: the default shape.
        threads: threads of a simulation; None: chosen by `threads_for`.
        by_packets: True to simulate the chips' networks packet by packet instead of flit by flit.
    """

    cluster: _core.ChipCluster
    places: tuple[int, ...] = ()
    link_faults: tuple[LinkFault, ...] = ()
    shape: _core.FabricShape | None = None
    threads: int | None = None
    by_packets: bool = False

    def run_of(
        self, plan: _core.Plan, *, with_data: bool = True, seed: int = 1,
        trace: _core.Trace | None = None,
    ) -> _core.SimulatedRun:  # fmt: skip
        faults = [_core.LinkFaults() for _ in self.cluster.links]
        for link, fault in self._faults().items():
            faults[link] = fault.core()
        return _core.SimulatedRun.on_chips(
            self.cluster, plan, places=list(self.places), carries_data=with_data, seed=seed,
            trace=trace, link_faults=faults, shape=self.shape, threads=threads_for(self.threads),
            by_packets=self.by_packets,
        )  # fmt: skip

    def links_of(self, run: _core.SimulatedRun) -> list[LinkLoad]:
        """Two loads per link of the cluster, in its order: from its first end, and from its second
        end.
        """
        ways = [way for link in self.cluster.links for way in (link.ends, link.ends[::-1])]
        total_us = max(run.now_us, 1e-9)
        return [
            LinkLoad(name_of_end(a), name_of_end(b), "ethernet", size_bytes, busy_us / total_us)
            for (a, b), (size_bytes, busy_us, _) in zip(ways, run.loads, strict=True)
        ]

    def failures_of(self, run: _core.SimulatedRun) -> list[LinkFailure]:
        faults = self._faults()
        return [
            LinkFailure(
                link=" - ".join(map(name_of_end, self.cluster.links[failure.link].ends)),
                fault=faults[failure.link].text, drops=failure.drops, down_us=failure.down_us,
                is_up=failure.is_up, frames_lost=failure.frames_lost,
                resent_bytes=sum(failure.resent_bytes),
            )
            for failure in run.link_failures
        ]  # fmt: skip

    def track_names(self) -> dict[str, str]:
        names = {}
        for link in self.cluster.links:
            core_a, core_b = (self._core_name(end) for end in link.ends)
            end_a, end_b = map(name_of_end, link.ends)
            names[f"link {core_a} > {core_b}"] = f"link {end_a} > {end_b}"
            names[f"link {core_b} > {core_a}"] = f"link {end_b} > {end_a}"
            names[f"ethernet link between {core_a} and {core_b}"] = f"outages of {end_a} - {end_b}"
        return names

    def _faults(self) -> dict[int, LinkFault]:
        if not self.link_faults:
            return {}
        from towpath.collectives.link_faults import links_of

        return links_of(self.cluster, self.link_faults)

    def _core_name(self, end: tuple[int, int]) -> str:
        return f"Ethernet core {self.cluster.core_of(end)} of chip {end[0]}"


@dataclass(frozen=True)
class MailboxPlace(Place):
    """A cluster with mailboxes; rank r is on node r. It has no separate links.

    Attributes:
        cluster: the nodes.
    """

    cluster: _core.MailboxCluster

    def run_of(
        self, plan: _core.Plan, *, with_data: bool = True, seed: int = 1,
        trace: _core.Trace | None = None,
    ) -> _core.SimulatedRun:  # fmt: skip
        return _core.SimulatedRun.on_mailboxes(
            self.cluster, plan, carries_data=with_data, seed=seed, trace=trace
        )


def busiest(links: list[LinkLoad]) -> LinkLoad | None:
    """The first of the busiest links; None if there are no links."""
    return max(links, key=lambda link: link.busy_fraction, default=None)


def name_of_end(end: tuple[int, int]) -> str:
    """Name of an end of a link between chips, (chip, channel), in text and drawings.

    >>> name_of_end((0, 9))
    'chip 0 E9'
    """
    return f"chip {end[0]} E{end[1]}"
