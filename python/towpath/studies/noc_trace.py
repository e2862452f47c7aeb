# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Reads NoC traces: the requests of every data-movement core of a chip to the NoCs, with their
times.

The format is tt-npe's (its doc/noc_trace_format.md): one JSON list of events, written by tt-metal's
profiler. Coordinates are physical, those of NoC 0 on either NoC. A trace may contain the events of
several chips. A fabric event is the write of a packet's payload to a router of the same chip: an
Ethernet core, named by its channel or by the first part of the packet's path.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from towpath.errors import ConfigError, quoted
from towpath.specs.input_file import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

Core = tuple[int, int]

FILE_BYTES_MAX = 64 << 20
EVENTS_MAX = 500_000
CYCLES_MAX = 10**10
SIZE_BYTES_MAX = 1 << 21  # no core's memory is larger
# Six bits each in a NoC address: as far as coordinates reach on any chip.
GRID_MAX = (64, 64)
CHIPS_MAX = 1024
ETHERNET_CHANNELS_MAX = 256
VC_MAX = 5

READS = frozenset({
    "READ", "READ_WITH_STATE", "READ_WITH_STATE_AND_TRID", "READ_DRAM_SHARDED_WITH_STATE",
})  # fmt: skip
WRITES = frozenset({
    "WRITE_", "WRITE_WITH_TRID", "WRITE_WITH_STATE", "WRITE_WITH_TRID_WITH_STATE", "WRITE_INLINE",
})  # fmt: skip
MULTICAST = "WRITE_MULTICAST"
# Packets that leave the chip: what goes over its NoC is the payload, to a router.
FABRIC = frozenset({
    "FABRIC_UNICAST_WRITE", "FABRIC_UNICAST_INLINE_WRITE", "FABRIC_UNICAST_ATOMIC_INC",
    "FABRIC_FUSED_UNICAST_ATOMIC_INC", "FABRIC_MULTICAST_WRITE", "FABRIC_MULTICAST_ATOMIC_INC",
    "FABRIC_UNICAST_SCATTER_WRITE",
})  # fmt: skip
ATOMIC = "SEMAPHORE_INC"
# Prepare the core's own registers; nothing goes onto the NoC.
STATES = frozenset({
    "READ_SET_STATE", "READ_DRAM_SHARDED_SET_STATE", "WRITE_SET_STATE", "WRITE_WITH_TRID_SET_STATE",
    "READ_SET_TRID", "WRITE_SET_TRID",
})  # fmt: skip
# Two events each, before and after the wait.
BARRIER_BEGINS = {
    "READ_BARRIER_START": "READ_BARRIER_END",
    "WRITE_BARRIER_START": "WRITE_BARRIER_END",
}
BARRIER_ENDS = frozenset(BARRIER_BEGINS.values())
# One event, before the wait.
WAITS = frozenset({
    "READ_BARRIER_WITH_TRID", "WRITE_BARRIER_WITH_TRID", "FULL_BARRIER", "ATOMIC_BARRIER",
    "WRITE_FLUSH", "WRITE_FLUSH_WITH_TRID",
})  # fmt: skip
# Between cores; the trace does not say which one is waited for.
SEMAPHORES = frozenset({"SEMAPHORE_SET", "SEMAPHORE_WAIT"})
KINDS = (
    READS | WRITES | STATES | BARRIER_BEGINS.keys() | BARRIER_ENDS | WAITS | SEMAPHORES
    | FABRIC | {MULTICAST, ATOMIC}
)  # fmt: skip
# Phases of zones, in both spellings of tt-metal's profiler.
_PHASES = {"begin": True, "ZONE_START": True, "end": False, "ZONE_END": False}

_NOCS = {"NOC_0": 0, "NOC_1": 1}
_PROCESSORS = frozenset({"BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2", "ERISC"})
_KNOWN_ELSEWHERE = "the types of tt-npe's noc_trace_format.md and its fabric events"
_KERNEL_ZONE = "-KERNEL"
# The profiler's buffer was full and was written to DRAM, at the cost of the core whose events these
# are; it is recorded without a processor.
_FLUSH_ZONE = "PROFILER-NOC-QUICK-SEND"


class NocEvent(NamedTuple):
    """One call of a core, or the end of a barrier.

    Attributes:
        kind: one of KINDS.
        cycle: start of the call, counted from the trace's first event.
        noc: 0 or 1.
        to: the other end; None if there is none.
        to_last: the last corner of a multicast, whose first is `to`, in the direction of its NoC;
            None otherwise.
        size_bytes: payload; 0 if there is none.
        vc: the requested virtual channel; None for the software's default.
        number: the event's index in the file, from 0.
        router_channel: the Ethernet channel in a fabric event without a path, which has no `to`;
            None otherwise.
    """

    kind: str
    cycle: int
    noc: int
    to: Core | None
    to_last: Core | None
    size_bytes: int
    vc: int | None
    number: int
    router_channel: int | None = None


@dataclass(frozen=True)
class CoreTrace:
    """Events of one processor of one core, in order.

    Attributes:
        core: coordinates of the core.
        processor: BRISC, NCRISC, ...
        begin_cycle: start of its kernel.
        events: empty if the kernel did not use a NoC.
        flush_cycles: times at which the core's profiler emptied its buffer.
        chip: the chip, by its device id in the trace; 0 if the trace has none.
    """

    core: Core
    processor: str
    begin_cycle: int
    events: tuple[NocEvent, ...]
    flush_cycles: tuple[int, ...] = ()
    chip: int = 0

    @property
    def name(self) -> str:
        return f"core ({self.core[0]}, {self.core[1]}) {self.processor}"

    @property
    def end_cycle(self) -> int:
        """Cycle of its last event; a kernel without events ends where it begins."""
        return self.events[-1].cycle if self.events else self.begin_cycle


@dataclass(frozen=True)
class NocTrace:
    """A whole trace: cores in the file's order, with cycles counted from its first event."""

    name: str
    cores: tuple[CoreTrace, ...]

    @property
    def chips(self) -> tuple[int, ...]:
        """The chips with cores in it, in ascending order."""
        return tuple(sorted({core.chip for core in self.cores}))

    def on_chip(self, chip: int) -> NocTrace:
        """The part of one chip, with the cycles of the whole trace."""
        return NocTrace(self.name, tuple(core for core in self.cores if core.chip == chip))

    @property
    def requests(self) -> int:
        """The events that send data over a NoC."""
        kinds = READS | WRITES | FABRIC | {MULTICAST, ATOMIC}
        return sum(event.kind in kinds for core in self.cores for event in core.events)


def load_noc_trace(path: Path | str, grid: tuple[int, int] = GRID_MAX) -> NocTrace:
    """Reads a trace completely or raises an error.

    Args:
        path: a JSON file.
        grid: columns and rows of the chip, which must contain all coordinates.

    Raises:
        ConfigError: the file is not such a trace, or it is incomplete.
    """
    text = read_text(path, FILE_BYTES_MAX)
    reader = _Reader(str(path), grid)
    for number, (line, value) in enumerate(_list_items(text, str(path))):
        reader.add(number, line, value)
    return NocTrace(Path(path).stem, reader.cores())


# --- JSON, with the line of every event ---------------------------------------------------------

_BLANK = re.compile(r"[ \t\n\r]*")
_DIGITS_MAX = 20


def _list_items(text: str, file: str) -> Iterator[tuple[int, object]]:
    """The items of the only list in a text, each with its line."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_int=_integer, parse_constant=_no_constant
    )
    position, line = _skip_blank(text, 0), 1 + text.count("\n", 0, _skip_blank(text, 0))
    if text[position : position + 1] != "[":
        raise ConfigError("is not a NoC trace; it must be a JSON list", file=file, line=line)
    is_first = True
    while True:
        begin = _skip_blank(text, position + 1)
        line += text.count("\n", position, begin)
        if is_first and text[begin : begin + 1] == "]":
            raise ConfigError("holds no events", file=file, line=line)
        is_first = False
        try:
            value, end = decoder.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            line += text.count("\n", begin, error.pos)
            raise ConfigError(f"is not valid JSON: {error.msg}", file=file, line=line) from None
        except ValueError as error:
            raise ConfigError(f"has an item that {error}", file=file, line=line) from None
        except RecursionError:
            raise ConfigError("is nested too deeply", file=file, line=line) from None
        yield line, value
        position = _skip_blank(text, end)
        line += text.count("\n", begin, position)
        following = text[position : position + 1]
        if following == "]":
            break
        if following != ",":
            problem = "is cut off" if not following else "is not valid JSON: ',' or ']' is expected"
            raise ConfigError(problem, file=file, line=line)
    rest = _skip_blank(text, position + 1)
    if rest < len(text):
        line += text.count("\n", position, rest)
        raise ConfigError("continues after the end of its list", file=file, line=line)


def _skip_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"has {quoted(twice)} twice")
    return values


def _integer(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise ValueError(
            f"has the number {quoted(text)}; it must have at most {_DIGITS_MAX} digits"
        )
    return int(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"has {text}, which is not a number")


# --- events ---------------------------------------------------------------------------------------


@dataclass
class _CoreInProgress:
    """A CoreTrace while it is read; cycles are still timestamps."""

    core: Core
    processor: str
    chip: int | None = None
    begin: int | None = None
    events: list[NocEvent] = field(default_factory=list)
    # The last SET_STATE, by NoC and direction: other end and size.
    states: dict[tuple[int, str], tuple[Core, int]] = field(default_factory=dict)
    open_barrier: NocEvent | None = None
    open_barrier_line: int = 0


class _Reader:
    """Sorts events by core and processor, and rejects the first that does not fit."""

    def __init__(self, file: str, grid: tuple[int, int]) -> None:
        self._file = file
        self._grid = grid
        self._cores: list[_CoreInProgress] = []
        self._by_place: dict[tuple[int, Core, str], _CoreInProgress] = {}
        # The last kernel of each core and processor whose chip no mark or event has named yet.
        self._unplaced: dict[tuple[Core, str], _CoreInProgress] = {}
        self._flushes: dict[tuple[int | None, Core], list[int]] = {}
        self._marks: set[tuple[int | None, Core, str, int]] = set()  # of kernels
        self._number = 0
        self._line = 0

    def add(self, number: int, line: int, value: object) -> None:
        self._number, self._line = number, line
        if number >= EVENTS_MAX:
            raise self._error(f"it must have at most {EVENTS_MAX} events")
        if not isinstance(value, dict):
            raise self._error(f"is {quoted(value)}; it must be an object")
        chip = None
        if "src_device_id" in value:
            chip = self._whole(value, "src_device_id", 0, CHIPS_MAX - 1)
        core = self._coordinates(value, "sx", "sy")
        timestamp = self._whole(value, "timestamp", 0, (1 << 63) - 1)
        if "zone" in value:
            self._add_zone(value, chip, core, timestamp)
        else:
            self._add_event(value, chip, core, timestamp)

    def cores(self) -> tuple[CoreTrace, ...]:
        """The complete cores, called at the end of the file."""
        for own in self._cores:
            if own.open_barrier is not None:
                raise self._open_barrier(own)
        first = self._first_cycle()
        named = sorted({own.chip for own in self._cores if own.chip is not None})
        only_chip = named[0] if len(named) == 1 else 0
        return tuple(
            CoreTrace(
                own.core, own.processor, (own.begin or 0) - first,
                tuple(event._replace(cycle=event.cycle - first) for event in own.events),
                tuple(flush - first for flush in self._flushes_of(own)),
                only_chip if own.chip is None else own.chip,
            )
            for own in self._cores
        )  # fmt: skip

    def _first_cycle(self) -> int:
        begins = [own.begin for own in self._cores if own.begin is not None]
        if not begins:
            raise ConfigError("has no events of a kernel", file=self._file, line=self._line)
        ends = [own.events[-1].cycle for own in self._cores if own.events]
        if max(begins + ends) - min(begins) > CYCLES_MAX:
            problem = f"spans more than {CYCLES_MAX} cycles; that is not one run of a program"
            raise ConfigError(problem, file=self._file, line=self._line)
        return min(begins)

    def _flushes_of(self, own: _CoreInProgress) -> list[int]:
        marks = self._flushes.get((None, own.core), [])
        return marks if own.chip is None else marks + self._flushes.get((own.chip, own.core), [])

    def _place(self, chip: int | None, core: Core, processor: str) -> _CoreInProgress:
        """The core of an event. Marks of zones may omit the chip, which later events name."""
        unplaced = self._unplaced.get((core, processor))
        if chip is None:
            own = unplaced or self._by_place.get((0, core, processor))
            return own or self._new_core(None, core, processor)
        own = self._by_place.get((chip, core, processor))
        if unplaced is not None:
            if own is not None:
                raise self._second_kernel(core, processor)
            own = self._by_place[chip, core, processor] = unplaced
            own.chip = chip
            del self._unplaced[core, processor]
        return own or self._new_core(chip, core, processor)

    def _new_core(self, chip: int | None, core: Core, processor: str) -> _CoreInProgress:
        own = _CoreInProgress(core, processor, chip)
        self._cores.append(own)
        if chip is None:
            self._unplaced[core, processor] = own
        else:
            self._by_place[chip, core, processor] = own
        return own

    def _second_kernel(self, core: Core, processor: str) -> ConfigError:
        name = _name(core, processor)
        return self._error(f"starts a second kernel on {name}; a trace must have one run")

    def _error(self, problem: str) -> ConfigError:
        place = f"event {self._number}"
        return ConfigError(problem, file=self._file, line=self._line, field=place)

    def _add_zone(
        self, value: dict[str, Any], chip: int | None, core: Core, timestamp: int
    ) -> None:
        zone = self._word(value, "zone", None)
        begins = _PHASES[self._word(value, "zone_phase", _PHASES)]
        if zone == _FLUSH_ZONE:
            if begins:
                self._flushes.setdefault((chip, core), []).append(timestamp)
            return
        processor = self._word(value, "proc", _PROCESSORS)
        if not zone.endswith(_KERNEL_ZONE) or not begins:
            return
        # After a flush the profiler repeats the mark, with its first timestamp.
        mark = chip, core, processor, timestamp
        if mark in self._marks:
            return
        self._marks.add(mark)
        own = (
            self._new_core(None, core, processor)
            if chip is None and (core, processor) not in self._unplaced
            else self._place(chip, core, processor)
        )
        if own.begin is not None:
            raise self._second_kernel(core, processor)
        own.begin = timestamp

    def _add_event(
        self, value: dict[str, Any], chip: int | None, core: Core, timestamp: int
    ) -> None:
        processor = self._word(value, "proc", _PROCESSORS)
        kind = self._word(value, "type", KINDS)
        noc = _NOCS[self._word(value, "noc", _NOCS)]
        own = self._place(chip, core, processor)
        if own.begin is None:  # older traces have no marks of zones
            own.begin = timestamp
        before = own.events[-1].cycle if own.events else own.begin
        if timestamp < before:
            raise self._error(
                f"is {before - timestamp} cycles before its predecessor on "
                f"{_name(core, processor)}; a core's events must be in order of time"
            )
        event = self._event(value, kind, noc, timestamp, own)
        self._check_barrier(own, event)
        own.events.append(event)

    def _event(
        self, value: dict[str, Any], kind: str, noc: int, timestamp: int, own: _CoreInProgress
    ) -> NocEvent:
        to: Core | None = None
        to_last: Core | None = None
        size_bytes = 0
        channel: int | None = None
        vc = self._whole(value, "vc", -1, VC_MAX) if "vc" in value else -1
        direction = kind.partition("_")[0]
        if kind in STATES:
            if not kind.endswith("SET_TRID"):
                to = self._coordinates(value, "dx", "dy")
                size_bytes = self._size(value, least=0)
                own.states[noc, direction] = (to, size_bytes)
        elif "WITH_STATE" in kind:
            to, size_bytes = self._with_state(value, kind, own.states.get((noc, direction)))
        elif kind == MULTICAST:
            to = self._coordinates(value, "mcast_start_x", "mcast_start_y")
            to_last = self._coordinates(value, "mcast_end_x", "mcast_end_y")
            size_bytes = self._size(value)
        elif kind in FABRIC:
            size_bytes = self._size(value, least=0) if "num_bytes" in value else 0
            to, channel = self._router(value)
        elif kind == ATOMIC:
            to = self._coordinates(value, "dx", "dy")
        elif kind in READS or kind in WRITES:
            to = self._coordinates(value, "dx", "dy")
            size_bytes = self._size(value)
        return NocEvent(
            kind, timestamp, noc, to, to_last, size_bytes, None if vc < 0 else vc, self._number,
            channel,
        )  # fmt: skip

    def _router(self, value: dict[str, Any]) -> tuple[Core | None, int | None]:
        """The place where a fabric event's packet is handed over: a tile, or an
        Ethernet channel.
        """
        send = value.get("fabric_send")
        if send is None:  # a trace that says no more than the tile
            return self._coordinates(value, "dx", "dy"), None
        if not isinstance(send, dict):
            raise self._error(f"its fabric_send is {quoted(send)}; it must be an object")
        if "path" not in send:
            return None, self._whole(send, "eth_chan", 0, ETHERNET_CHANNELS_MAX - 1)
        path = send["path"]
        if not isinstance(path, list) or not path or not isinstance(path[0], dict):
            raise self._error("its fabric_send.path is not a list of parts of a path")
        # Older traces name only where a part of the way ends.
        end = "forward" if "forward_x" in path[0] else "segment_end"
        return self._coordinates(path[0], f"{end}_x", f"{end}_y"), None

    def _with_state(
        self, value: dict[str, Any], kind: str, state: tuple[Core, int] | None
    ) -> tuple[Core, int]:
        """The registers contain the other end, whatever the event's own fields are."""
        if state is None:
            raise self._error(f"is a {kind} without a preceding event that sets the state")
        to, state_bytes = state
        own_bytes = self._size(value, least=0) if "num_bytes" in value else 0
        size_bytes = own_bytes or state_bytes
        if size_bytes == 0:
            raise self._error(f"is a {kind} without a size, in the event and in its state")
        return to, size_bytes

    def _check_barrier(self, own: _CoreInProgress, event: NocEvent) -> None:
        begun = own.open_barrier
        if begun is not None:
            if event.kind != BARRIER_BEGINS[begun.kind] or event.noc != begun.noc:
                raise self._open_barrier(own)
            own.open_barrier = None
        elif event.kind in BARRIER_ENDS:
            raise self._error(
                f"is a {event.kind} on {_name(own.core, own.processor)} without a preceding start"
            )
        elif event.kind in BARRIER_BEGINS:
            own.open_barrier, own.open_barrier_line = event, self._line

    def _open_barrier(self, own: _CoreInProgress) -> ConfigError:
        begun = own.open_barrier
        assert begun is not None
        return ConfigError(
            f"is a {begun.kind} on {_name(own.core, own.processor)} that no "
            f"{BARRIER_BEGINS[begun.kind]} follows; the trace is incomplete",
            file=self._file, line=own.open_barrier_line, field=f"event {begun.number}",
        )  # fmt: skip

    # --- fields -----------------------------------------------------------------------------------

    def _whole(self, value: dict[str, Any], name: str, least: int, most: int) -> int:
        if name not in value:
            raise self._error(f"has no {quoted(name)}")
        number = value[name]
        if type(number) is not int or not least <= number <= most:
            allowed = f"a whole number from {least} to {most}"
            raise self._error(f"its {name} is {quoted(number)}; it must be {allowed}")
        return number

    def _size(self, value: dict[str, Any], least: int = 1) -> int:
        return self._whole(value, "num_bytes", least, SIZE_BYTES_MAX)

    def _coordinates(self, value: dict[str, Any], x: str, y: str) -> Core:
        columns, rows = self._grid
        return self._whole(value, x, 0, columns - 1), self._whole(value, y, 0, rows - 1)

    def _word(self, value: dict[str, Any], name: str, allowed: Any) -> str:
        if name not in value:
            raise self._error(f"has no {quoted(name)}")
        word = value[name]
        if not isinstance(word, str):
            raise self._error(f"its {name} is {quoted(word)}; it must be a word")
        if allowed is not None and word not in allowed:
            known = ", ".join(sorted(allowed)) if len(allowed) <= 8 else _KNOWN_ELSEWHERE
            raise self._error(f"its {name} is {quoted(word)}; choose one of {known}")
        return word


def _name(core: Core, processor: str) -> str:
    return f"core ({core[0]}, {core[1]}) {processor}"
