# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the requests of a NoC trace on a described chip, and compares their times.

A trace contains the times at which software called, not the times at which the network moved data.
The time between two calls of a core is software: the kernel's computation, and the cost of
recording the call (75 to 150 cycles each). It is replayed as work. The time inside a barrier is a
wait for the network, and the simulated network determines its length. A gap that also contains a
wait, because a request could not leave, is recognized by being much longer than other gaps of its
kind. Only its software part is replayed.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from dataclasses import replace as with_fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from towpath import _core
from towpath.errors import ConfigError
from towpath.studies.noc_trace import (
    ATOMIC,
    BARRIER_BEGINS,
    BARRIER_ENDS,
    FABRIC,
    MULTICAST,
    READS,
    WAITS,
    WRITES,
    CoreTrace,
    NocEvent,
    NocTrace,
)

if TYPE_CHECKING:
    from towpath.specs.chip_spec import ChipSpec

Pace = Literal["gaps", "times"]
PACES: tuple[Pace, ...] = ("gaps", "times")

FIGURE_NAMES = {
    "longest_core": "longest core",
    "median_core": "median core",
    "first_begin_to_last_event": "first begin to last event",
}
# States of a request, in order.
PHASES = ("waits to start", "leaves", "travels", "is answered")

# What the profiler takes to record a call, before the call does anything: with nothing outstanding
# a barrier's two events are 77 to 84 cycles apart (128 of them, in two of tt-npe's traces).
RECORD_CYCLES = 75
# Gaps of one kind differ by up to 1.55 where software alone decides, in 31 of tt-npe's traces.
_WAITED_FACTOR = 1.6
_MULTICAST_VC = 4
_LINK_SAMPLES = 200

_REQUESTS = READS | WRITES | FABRIC | {MULTICAST, ATOMIC}
_STEP_OF_WAIT = {
    "READ_BARRIER_START": ("read_barrier",),
    "WRITE_BARRIER_START": ("write_barrier",),
    "READ_BARRIER_WITH_TRID": ("read_barrier",),
    "WRITE_BARRIER_WITH_TRID": ("write_barrier",),
    "FULL_BARRIER": ("read_barrier", "write_barrier", "atomic_barrier"),
    "ATOMIC_BARRIER": ("atomic_barrier",),
    "WRITE_FLUSH": ("writes_flushed",),
    "WRITE_FLUSH_WITH_TRID": ("writes_flushed",),
}


@dataclass(frozen=True)
class EndToEnd:
    """Time of a program in cycles, in the three forms that are published for traces.

    Attributes:
        longest_core: the longest time of any processor, from its kernel's start to its last event.
        median_core: the median of these times.
        first_begin_to_last_event: span of all processors together.
    """

    longest_core: int
    median_core: int
    first_begin_to_last_event: int

    @staticmethod
    def of(spans: Sequence[tuple[int, int]]) -> EndToEnd:
        """From the start and end of every processor."""
        lengths = [end - begin for begin, end in spans]
        first = min(begin for begin, _ in spans)
        last = max(end for _, end in spans)
        return EndToEnd(max(lengths), int(statistics.median(lengths)), last - first)


@dataclass(frozen=True)
class CoreReplay:
    """First and last event of one processor, traced and simulated, in cycles."""

    core: tuple[int, int]
    processor: str
    begin_cycle: int
    end_cycle_measured: int
    end_cycle_predicted: int
    chip: int = 0

    @property
    def name(self) -> str:
        return f"({self.core[0]}, {self.core[1]}) {self.processor}"


@dataclass(frozen=True)
class RequestReplay:
    """Progress of a request over time, in simulated cycles; -1: never.

    Attributes:
        issued_cycle: time at which software passed it to the network interface.
        started_cycle: time at which its first packet had a virtual channel.
        sent_cycle: time at which its last flit had left.
        received_cycle: time at which its last packet had arrived at the other end.
        completed_cycle: time at which its last answer had returned.
    """

    core: tuple[int, int]
    processor: str
    kind: str
    noc: int
    to: tuple[int, int]
    size_bytes: int
    issued_cycle: int
    started_cycle: int
    sent_cycle: int
    received_cycle: int
    completed_cycle: int
    chip: int = 0

    @property
    def phase_cycles(self) -> tuple[int, int, int, int]:
        """Duration of each of PHASES; 0 for a phase that did not happen."""
        moments = [self.issued_cycle]
        for cycle in (
            self.started_cycle, self.sent_cycle, self.received_cycle, self.completed_cycle,
        ):  # fmt: skip
            moments.append(max(cycle, moments[-1]))
        waits, leaves, travels, answered = np.diff(moments).tolist()
        return waits, leaves, travels, answered


@dataclass(frozen=True)
class Replay:
    """A replayed trace.

    Attributes:
        grid: columns and rows of tiles.
        tile_kinds: kinds of all tiles, row by row.
        link_sample_cycles: duration of a sample.
        link_flits: the flits that left on each link in each sample, [sample, NoC, tile * 4 + port];
            tiles row by row, ports along the first axis that the NoC travels, along the second, to
            the network interface, from it.
    """

    name: str
    chip: str
    grid: tuple[int, int]
    tile_kinds: tuple[str, ...]
    pace: Pace
    measured: EndToEnd
    predicted: EndToEnd
    cores: tuple[CoreReplay, ...]
    requests: tuple[RequestReplay, ...]
    link_sample_cycles: int
    link_flits: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """Returns everything except the load of links."""
        return {
            "trace": self.name,
            "chip": self.chip,
            "pace": self.pace,
            "unit": "cycles",
            "measured": asdict(self.measured),
            "predicted": asdict(self.predicted),
            "error_pct": {
                name: 100 * (predicted / measured - 1) if measured else None
                for (name, predicted), measured in zip(
                    asdict(self.predicted).items(), asdict(self.measured).values(), strict=True
                )
            },
            "cores": [asdict(core) for core in self.cores],
            "requests": [asdict(request) for request in self.requests],
        }


def measured(trace: NocTrace) -> EndToEnd:
    """The times in the trace itself."""
    return EndToEnd.of([(core.begin_cycle, core.end_cycle) for core in trace.cores])


def chip_of(trace: NocTrace, spec: ChipSpec) -> _core.Chip:
    """The chip of the trace, equal for all its chips, with no used line harvested.

    Raises:
        ConfigError: a core or the other end of a request is outside the chip's grid.
    """
    width, height = spec.grid.width, spec.grid.height
    used = {core.core for core in trace.cores}
    for core in trace.cores:
        for event in core.events:
            used |= {end for end in (event.to, event.to_last) if end is not None}
    for x, y in sorted(used):
        if x >= width or y >= height:
            raise ConfigError(
                f"trace '{trace.name}' uses tile ({x}, {y}), but chip '{spec.name}' has "
                f"{width} x {height} tiles"
            )
    axis = 1 if spec.harvesting.axis == "rows" else 0
    lines = {tile[axis] for tile in used}
    harvested = [line for line in spec.harvesting.harvested if line not in lines]
    return spec.with_harvested(harvested).build()


def replay(
    trace: NocTrace, spec: ChipSpec, *, pace: Pace = "gaps", seed: int = 1, samples_links=False
) -> Replay:
    """Runs a trace.

    Args:
        trace: the traced calls.
        spec: the chip.
        pace: rule for the time of the next call: "gaps": the software time after the previous call;
            "times": its time in the trace, or later if the previous call is not done.
        seed: seed of everything random on the chip.
        samples_links: True to record the load of links over time.

    Every chip of the trace is run separately. The waits of its cores, which are in the trace,
    include data that arrives over Ethernet; the writes of that data on the NoCs are not replayed.

    Raises:
        ConfigError: the trace does not fit the chip, or samples of links are requested for several
        chips. ValueError: the chip cannot carry out a request.
    """
    if samples_links and len(trace.chips) > 1:
        problem = f"trace '{trace.name}' has {len(trace.chips)} chips; a page shows one"
        raise ConfigError(problem)
    placed = with_routers(trace, spec)
    chip = chip_of(placed, spec)
    end_to_end = measured(trace)
    sample_cycles = max(end_to_end.first_begin_to_last_event // _LINK_SAMPLES, 16)
    runs = [
        _run_chip(placed.on_chip(number), chip, pace, seed, sample_cycles if samples_links else 0)
        for number in trace.chips
    ]
    cores = tuple(core for run in runs for core in run.cores)
    return Replay(
        name=trace.name,
        chip=chip.name,
        grid=(chip.width, chip.height),
        tile_kinds=tuple(kind.name for kind in chip.tiles),
        pace=pace,
        measured=end_to_end,
        predicted=EndToEnd.of([(core.begin_cycle, core.end_cycle_predicted) for core in cores]),
        cores=cores,
        requests=tuple(request for run in runs for request in run.requests),
        link_sample_cycles=sample_cycles,
        link_flits=runs[0].link_flits,
    )


@dataclass(frozen=True)
class _ChipRun:
    """A replayed chip of a trace."""

    cores: tuple[CoreReplay, ...]
    requests: tuple[RequestReplay, ...]
    link_flits: np.ndarray


def _run_chip(
    trace: NocTrace, chip: _core.Chip, pace: Pace, seed: int, link_sample_cycles: int
) -> _ChipRun:
    """Replays the part of a trace that belongs to one chip."""
    programs = programs_of(trace, chip, pace)
    result = _core.run_traffic(
        chip, [own.program for own in programs], seed=seed, records_requests=True,
        link_sample_cycles=link_sample_cycles,
    )  # fmt: skip
    ends = {
        own.trace: own.event_cycles(result, number)[-1]
        for number, own in enumerate(programs)
        if own.is_whole
    }
    cores = tuple(
        CoreReplay(
            core.core, core.processor, core.begin_cycle, core.end_cycle,
            ends.get(n, core.begin_cycle), core.chip,
        )
        for n, core in enumerate(trace.cores)
    )  # fmt: skip
    requests = tuple(_requests(trace, programs, result))
    samples = np.diff(np.asarray(result.link_samples), axis=0, prepend=0)
    return _ChipRun(cores, requests, samples)


def with_routers(trace: NocTrace, spec: ChipSpec) -> NocTrace:
    """The trace, with the tile of every router that a fabric event identifies by its channel.

    Raises:
        ConfigError: the chip does not have the channel.
    """
    events = (event for core in trace.cores for event in core.events)
    if all(event.router_channel is None for event in events):
        return trace
    tiles = spec.tiles.ethernet

    def placed(event: NocEvent) -> NocEvent:
        channel = event.router_channel
        if channel is None:
            return event
        if channel >= len(tiles):
            raise ConfigError(
                f"trace '{trace.name}' sends over Ethernet channel {channel}, but chip "
                f"'{spec.name}' has {len(tiles)}"
            )
        return event._replace(to=(tiles[channel].x, tiles[channel].y))

    return NocTrace(
        trace.name,
        tuple(with_fields(core, events=tuple(map(placed, core.events))) for core in trace.cores),
    )


# --- from a trace to programs ---------------------------------------------------------------------


@dataclass(frozen=True)
class CoreProgram:
    """A core's trace as a program.

    Attributes:
        trace: its number in the trace.
        noc: NoC of the program.
        program: program for the run.
        event_steps: for each event, the number of steps that are done when it happens.
        request_events: the events that are requests, in order.
        is_whole: True if it uses all the time of its processor; the requests of a processor on its
            other NoC are a second program.
    """

    trace: int
    noc: int
    program: _core.TrafficProgram
    event_steps: tuple[int, ...]
    request_events: tuple[NocEvent, ...]
    is_whole: bool = True

    def event_cycles(self, result: _core.TrafficResult, number: int) -> list[int]:
        """The time of each event in a run in which this is the program of that number."""
        begin, ends = result.begin_cycles[number], result.step_end_cycles[number]
        return [int(ends[done - 1]) if done else int(begin) for done in self.event_steps]


def programs_of(trace: NocTrace, chip: _core.Chip, pace: Pace) -> list[CoreProgram]:
    """Programs for every processor that used a NoC: one, or one for each NoC.

    A processor's program runs on the NoC that it uses most. Its requests on the other NoC are a
    second program, at the times of the trace. To its own program they are software.
    """
    channels = dram_channels(trace, chip)
    gaps = software_gaps(trace)
    programs = []
    for number, core in enumerate(trace.cores):
        if not core.events:
            continue
        nocs = Counter(event.noc for event in core.events)
        noc = max(nocs, key=lambda noc: (nocs[noc], -noc))
        programs.append(_Writer(chip, channels, pace, noc).program(number, core, gaps[number]))
        others = [event for event in core.events if event.noc != noc and event.kind in _REQUESTS]
        if others:
            beside = with_fields(core, events=tuple(others))
            writer = _Writer(chip, channels, "times", 1 - noc)
            made = writer.program(number, beside, [0] * len(others))
            programs.append(with_fields(made, is_whole=False))
    return programs


def dram_channels(trace: NocTrace, chip: _core.Chip) -> dict[tuple[int, int], int]:
    """The channel behind each DRAM tile that a trace uses.

    A tile reaches every channel of its group, and the trace contains no address. Software addresses
    a channel through one tile, so the tiles of one group are assumed to be its channels, in their
    order.
    """
    used = {event.to for core in trace.cores for event in core.events if event.kind in _REQUESTS}
    per_group = chip.dram["channels_per_group"]
    channels: dict[tuple[int, int], int] = {}
    for group in chip.dram_groups:
        tiles = [(x, y) for x, y in group if (x, y) in used]
        channels |= {tile: number % per_group for number, tile in enumerate(tiles)}
    return channels


def software_gaps(trace: NocTrace) -> list[list[int]]:
    """Cycles of software from each event of a core to the next event; 0 after the last.

    A gap after a request or a wait may also contain a wait for the network. This is assumed if it
    is much longer than the shortest of its kind (processor, event, next event). Its software is
    then the median of gaps without a wait. A gap in which the profiler emptied its buffer is
    software, whatever its length.
    """
    kinds: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for core in trace.cores:
        for event, following in _pairs(core):
            if not _holds_flush(core, event, following):
                key = core.processor, event.kind, following.kind
                kinds[key].append(following.cycle - event.cycle)
    software: dict[tuple[str, str, str], tuple[float, int]] = {}
    for key, found in kinds.items():
        limit = _WAITED_FACTOR * min(found)
        software[key] = limit, int(statistics.median(gap for gap in found if gap <= limit))
    gaps = []
    for core in trace.cores:
        own: list[int] = []
        for event, following in _pairs(core):
            cycles = following.cycle - event.cycle
            if event.kind in _REQUESTS | WAITS and not _holds_flush(core, event, following):
                limit, usual = software[core.processor, event.kind, following.kind]
                cycles = cycles if cycles <= limit else usual
            own.append(cycles)
        gaps.append([*own, 0])
    return gaps


def _pairs(core: CoreTrace) -> Iterable[tuple[NocEvent, NocEvent]]:
    return zip(core.events, core.events[1:], strict=False)


def _holds_flush(core: CoreTrace, event: NocEvent, following: NocEvent) -> bool:
    return any(event.cycle <= flush <= following.cycle for flush in core.flush_cycles)


class _Writer:
    """Writes the program of one core."""

    def __init__(
        self, chip: _core.Chip, channels: dict[tuple[int, int], int], pace: Pace, noc: int
    ) -> None:
        self._call_cycles = _core.call_cycles(chip)
        self._channels = channels
        self._pace = pace
        self._noc = noc
        self._steps: list[_core.TrafficStep] = []

    def program(self, number: int, core: CoreTrace, gaps: list[int]) -> CoreProgram:
        """The events on the program's NoC; events on the other NoC are software."""
        event_steps = []
        software_cycles = core.events[0].cycle - core.begin_cycle
        for event, gap in zip(core.events, gaps, strict=True):
            is_other = event.noc != self._noc
            # A barrier's end comes when the simulated wait is over.
            if event.kind not in BARRIER_ENDS or is_other:
                self._pace_to(event, software_cycles)
            event_steps.append(len(self._steps))
            if is_other:
                software_cycles = gap
            elif event.kind in _REQUESTS:
                software_cycles = self._write_request(event, gap)
            elif event.kind in BARRIER_BEGINS or event.kind in WAITS:
                software_cycles = self._write_wait(event, gap)
            else:
                software_cycles = gap
        program = _core.TrafficProgram(
            core=core.core, noc=self._noc, start_cycle=core.begin_cycle, steps=self._steps
        )
        requests = tuple(
            event for event in core.events if event.kind in _REQUESTS and event.noc == self._noc
        )
        return CoreProgram(number, self._noc, program, tuple(event_steps), requests)

    def _pace_to(self, event: NocEvent, software_cycles: int) -> None:
        if self._pace == "times":
            self._steps.append(_core.TrafficStep("wait_until", cycle=event.cycle))
        else:
            self._work(software_cycles)

    def _work(self, cycles: int) -> None:
        if cycles > 0:
            self._steps.append(_core.TrafficStep("work", cycle=cycles))

    def _write_request(self, event: NocEvent, gap: int) -> int:
        """Writes the record and the issue, and then the rest of the gap."""
        kind, fields = self._step(event)
        call_cycles = self._call_cycles[_call(kind, fields.get("has_state", False))]
        left = max(gap - call_cycles, 0)
        record_cycles = min(RECORD_CYCLES, left) if gap else RECORD_CYCLES
        self._work(record_cycles)
        self._steps.append(_core.TrafficStep(kind, **fields))
        return left - record_cycles if gap else 0

    def _write_wait(self, event: NocEvent, gap: int) -> int:
        is_end_traced = event.kind in BARRIER_BEGINS
        record_cycles = min(RECORD_CYCLES, gap) if gap else RECORD_CYCLES
        self._work(record_cycles)
        self._steps.extend(_core.TrafficStep(kind) for kind in _STEP_OF_WAIT[event.kind])
        return 0 if is_end_traced else max(gap - record_cycles, 0)

    def _step(self, event: NocEvent) -> tuple[str, dict[str, Any]]:
        fields: dict[str, Any] = {"to": event.to}
        if event.kind == MULTICAST:
            kind = "multicast"
            fields["to_last"] = event.to_last
            fields["first_vc"] = _MULTICAST_VC
        elif event.kind == ATOMIC:
            kind = "atomic"
        elif event.kind == "WRITE_INLINE" or (event.kind in FABRIC and event.size_bytes == 0):
            kind = "inline_write"  # a packet without a payload is its header's, which follows
        else:
            kind = "read" if event.kind in READS else "write"
            fields["has_state"] = "WITH_STATE" in event.kind
        if kind in ("read", "write", "multicast"):
            fields["size_bytes"] = event.size_bytes
        if event.vc is not None:
            fields["first_vc"] = event.vc
        if event.to in self._channels:
            fields["channel"] = self._channels[event.to]
        return kind, fields


def _call(kind: str, has_state: bool) -> str:
    """The name of the call that a step makes."""
    return f"{kind}_with_state" if has_state else kind


# --- from a run to what is shown ------------------------------------------------------------------

_WAIT_COLUMNS = ("issued", "started", "sent", "received", "completed")


def _requests(
    trace: NocTrace, programs: list[CoreProgram], result: _core.TrafficResult
) -> Iterable[RequestReplay]:
    """The run's records in order of issue, each with its event.

    Processors of one core may share a NoC; the other end of a request identifies the processor.
    """
    waits = result.waits
    left: dict[tuple[tuple[int, int], int], list[tuple[CoreTrace, deque[NocEvent]]]] = {}
    for own in programs:
        core = trace.cores[own.trace]
        events = deque(own.request_events)
        left.setdefault((core.core, own.noc), []).append((core, events))
    columns = zip(*(waits[name].tolist() for name in _WAIT_COLUMNS), strict=True)
    places = zip(*(waits[name].tolist() for name in ("x", "y", "noc", "to_x", "to_y")), strict=True)
    for (x, y, noc, to_x, to_y), cycles in zip(places, columns, strict=True):
        queues = [(core, events) for core, events in left[(x, y), noc] if events]
        core, events = next(
            (queue for queue in queues if queue[1][0].to == (to_x, to_y)), queues[0]
        )
        event = events.popleft()
        assert event.to is not None  # every request has one
        issued, started, sent, received, completed = cycles
        yield RequestReplay(
            core.core, core.processor, event.kind, noc, event.to, event.size_bytes,
            issued, started, sent, received, completed, core.chip,
        )  # fmt: skip
