# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a schedule on a described machine: simulated time, and real bytes where they fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from towpath import _core
from towpath.collectives.data import count_wrong, make_expected, make_input, type_bytes
from towpath.collectives.link_faults import LinkFault, links_of
from towpath.collectives.result import FaultCost, LinkFailure, LinkLoad, Row, Timeline, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

# Runs whose buffers would take more memory than this keep time only.
DATA_BYTES_MAX = 4 << 30


@dataclass(frozen=True)
class Call:
    """One collective call as the user asks for it, without its size."""

    schedule: _core.Schedule
    type_name: str = "float32"
    operation: str = "sum"

    @property
    def collective(self) -> str:
        return _core.name_of(self.schedule.collective)

    @property
    def ranks(self) -> int:
        return self.schedule.rank_count

    def elements(self, size_bytes: int) -> int:
        """The elements of an array of about that size: rounded down to what the schedule can cut,
        but never to nothing."""
        granularity = _core.element_granularity(self.schedule)
        elements = size_bytes // type_bytes(self.type_name)
        return max(elements // granularity, 1) * granularity

    def plan(self, size_bytes: int) -> _core.Plan:
        return _core.Plan(self.schedule, self.elements(size_bytes), self.type_name, self.operation)


@dataclass(frozen=True)
class Place:
    """A machine, and the GPU of it that each rank runs on; none given: the first ones."""

    machine: _core.Machine
    gpus: tuple[int, ...] = ()

    def run_of(
        self, plan: _core.Plan, with_data: bool, seed: int, jitter_ns: float,
        trace: _core.Trace | None,
    ) -> _core.SimulatedRun:  # fmt: skip
        return _core.SimulatedRun(
            self.machine, plan, gpus=list(self.gpus), carries_data=with_data, seed=seed,
            jitter_ns=jitter_ns, trace=trace,
        )  # fmt: skip

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
class ChipPlace:
    """Chips that Ethernet joins, and the place in their fabric that each rank runs on; none given:
    the first ones. Some of the links between them may fail. The fabric has the usual shape, or
    another one."""

    cluster: _core.ChipCluster
    places: tuple[int, ...] = ()
    link_faults: tuple[LinkFault, ...] = ()
    shape: _core.FabricShape | None = None

    def run_of(
        self, plan: _core.Plan, with_data: bool, seed: int, jitter_ns: float,
        trace: _core.Trace | None,
    ) -> _core.SimulatedRun:  # fmt: skip
        if jitter_ns:
            raise ValueError("a cluster of chips has no jitter")
        faults = [_core.LinkFaults() for _ in self.cluster.links]
        for link, fault in links_of(self.cluster, self.link_faults).items():
            faults[link] = fault.core()
        return _core.SimulatedRun(
            self.cluster, plan, gpus=list(self.places), carries_data=with_data, seed=seed,
            trace=trace, link_faults=faults, shape=self.shape,
        )  # fmt: skip

    def links_of(self, run: _core.SimulatedRun) -> list[LinkLoad]:
        """Two of each link of the cluster, in its order: from its first end, and from its other."""
        ways = [way for link in self.cluster.links for way in (link.ends, link.ends[::-1])]
        total_us = max(run.now_us, 1e-9)
        return [
            LinkLoad(
                name_of_end(one), name_of_end(other), "ethernet", size_bytes, busy_us / total_us
            )
            for (one, other), (size_bytes, busy_us, _) in zip(ways, run.loads, strict=True)
        ]

    def failures_of(self, run: _core.SimulatedRun) -> list[LinkFailure]:
        """Of each link that has a fault."""
        faults = links_of(self.cluster, self.link_faults)
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
        """The simulator's name of each link's tracks, and the one that a timeline has."""
        names = {}
        for link in self.cluster.links:
            one, other = (self._core_name(end) for end in link.ends)
            near, far = map(name_of_end, link.ends)
            names[f"link {one} > {other}"] = f"link {near} > {far}"
            names[f"link {other} > {one}"] = f"link {far} > {near}"
            names[f"ethernet link between {one} and {other}"] = f"outages of {near} - {far}"
        return names

    def _core_name(self, end: tuple[int, int]) -> str:
        return f"Ethernet core {self.cluster.core_of(end)} of chip {end[0]}"


def name_of_end(end: tuple[int, int]) -> str:
    """An end of a link between chips, as text and drawings name it.

    >>> name_of_end((0, 9))
    'chip 0 E9'
    """
    return f"chip {end[0]} E{end[1]}"


@dataclass(frozen=True)
class MailboxPlace:
    """A cluster with mailboxes; rank r is on node r. It has no timeline and no loads of links."""

    cluster: _core.MailboxCluster

    def run_of(
        self, plan: _core.Plan, with_data: bool, seed: int, jitter_ns: float,
        trace: _core.Trace | None,
    ) -> _core.MailboxRun:  # fmt: skip
        if trace is not None or jitter_ns:
            raise ValueError("a cluster with mailboxes has neither timeline nor jitter")
        return _core.MailboxRun(self.cluster, plan, carries_data=with_data, seed=seed)

    def links_of(self, run: _core.MailboxRun) -> list[LinkLoad]:
        return []


AnyPlace = Place | ChipPlace | MailboxPlace


@dataclass(frozen=True)
class Outcome:
    """One invocation on all ranks. `wrong` is None when the run kept time only."""

    time_us: float
    wrong: int | None
    events: int
    trace_hash: int | None = None
    timeline: Timeline | None = None
    links: list[LinkLoad] = field(default_factory=list)
    failures: list[LinkFailure] = field(default_factory=list)


def buffers_of(
    call: Call, rank: int, elements: int, in_place: bool
) -> tuple[np.ndarray, np.ndarray]:
    """A rank's input and output. In place they share memory, one as a part of the other."""
    arguments = (call.collective, rank, call.ranks, elements, call.type_name, call.operation)
    source = make_input(*arguments)
    part = elements // call.ranks
    if not in_place:
        size = part if call.collective == "reduce_scatter" else elements
        return source, np.zeros(size, source.dtype)
    if call.collective == "all_gather":
        output = np.zeros(elements, source.dtype)
        own = output[rank * part : (rank + 1) * part]
        own[:] = source
        return own, output
    if call.collective == "reduce_scatter":
        return source, source[rank * part : (rank + 1) * part]
    return source, source


def fits(call: Call, size_bytes: int) -> bool:
    """Whether a simulated run of that size may carry data."""
    plan = call.plan(size_bytes)
    per_rank = plan.input_bytes + plan.output_bytes + plan.heap_bytes
    return per_rank * call.ranks <= DATA_BYTES_MAX


def invoke(
    place: AnyPlace, call: Call, size_bytes: int, *, in_place: bool, with_data: bool,
    trace: _core.Trace | None = None, seed: int = 1, jitter_ns: float = 0.0,
) -> Outcome:  # fmt: skip
    """Simulates one invocation and checks what every rank received.

    Raises:
        TransportError: the schedule hangs; the sentence names who waits for whom.
        ValueError: the machine has too few GPUs.
    """
    elements = call.elements(size_bytes)
    plan = call.plan(size_bytes)
    run = place.run_of(plan, with_data, seed, jitter_ns, trace)
    wrong = None
    if with_data:
        pairs = [buffers_of(call, rank, elements, in_place) for rank in range(call.ranks)]
        time_us = run.invoke(
            plan, [source.view(np.uint8) for source, _ in pairs],
            [output.view(np.uint8) for _, output in pairs],
        )  # fmt: skip
        wrong = sum(_wrong_at(call, rank, elements, pairs[rank][1]) for rank in range(call.ranks))
    else:
        time_us = run.invoke(plan)
    return Outcome(
        time_us=time_us,
        wrong=wrong,
        events=run.events,
        trace_hash=trace.hash if trace is not None else None,
        timeline=_timeline(place, trace, size_bytes) if trace is not None else None,
        links=place.links_of(run),
        failures=place.failures_of(run) if isinstance(place, ChipPlace) else [],
    )


def _wrong_at(call: Call, rank: int, elements: int, output: np.ndarray) -> int:
    expected = make_expected(
        call.collective, rank, call.ranks, elements, call.type_name, call.operation,
        call.schedule.root,
    )  # fmt: skip
    return count_wrong(output, expected, call.type_name)


def measure_sizes(
    place: AnyPlace, call: Call, sizes_bytes: list[int], *, with_data: bool = True
) -> Iterator[Row]:
    """One row per size, out of place and in place as far as the schedule runs that way."""
    for size_bytes in sizes_bytes:
        elements = call.elements(size_bytes)
        exact_bytes = elements * type_bytes(call.type_name)

        carries = with_data and fits(call, size_bytes)

        def column(
            in_place: bool, size_bytes: int = size_bytes, carries: bool = carries
        ) -> Outcome:
            return invoke(place, call, size_bytes, in_place=in_place, with_data=carries)

        ways = {False: call.schedule.out_of_place, True: call.schedule.in_place}
        if carries:
            outcomes = {in_place: column(in_place) for in_place, runs in ways.items() if runs}
        else:
            # Where there is no memory, there is no difference.
            outcomes = dict.fromkeys((way for way, runs in ways.items() if runs), column(False))
        measured = {
            in_place: measure(
                outcome.time_us, exact_bytes, call.collective, call.ranks, outcome.wrong
            )
            for in_place, outcome in outcomes.items()
        }
        yield Row(
            size_bytes=exact_bytes,
            count=elements,
            out_of_place=measured.get(False),
            in_place=measured.get(True),
            fault_cost=_fault_cost(place, call, size_bytes, next(iter(outcomes.values()))),
        )


def _fault_cost(place: AnyPlace, call: Call, size_bytes: int, outcome: Outcome) -> FaultCost | None:
    """Against the same call where nothing fails; None where nothing may."""
    if not outcome.failures:
        return None
    healthy = invoke(
        replace(place, link_faults=()), call, size_bytes, in_place=False, with_data=False
    )
    return FaultCost(outcome.time_us, healthy.time_us, outcome.failures)


def _timeline(place: AnyPlace, trace: _core.Trace, size_bytes: int) -> Timeline:
    names = place.track_names() if isinstance(place, ChipPlace) else {}
    tracks = [names.get(track, track) for track in trace.tracks]
    return Timeline(size_bytes, tracks, list(trace.names), list(trace.spans))
