# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables measured on chips that Ethernet joins: latency of the fabric, and collectives over it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from towpath import _core
from towpath.collectives import fabric
from towpath.collectives.call import Call
from towpath.errors import quoted
from towpath.schedules.schedule_source import ScheduleSource
from towpath.specs import catalogue
from towpath.validation.chip_systems import (
    CHIPS_MAX,
    ChipSystem,
    Form,
    counted_system,
    describe,
    form_of,
    letters_of,
    named_system,
    on_machine,
    system_of,
)
from towpath.validation.table_kind import (
    CannotSimulate,
    Context,
    Prediction,
    Row,
    TableKind,
    one_of,
    real,
    whole,
)

_PAYLOAD_BYTES_MAX = 1 << 14
_SIZE_BYTES_MAX = 1 << 40
# Bytes times links that a simulated call moves at most, which bounds what it takes to simulate.
# Larger sizes are on the line through the largest simulated one and half of it.
_LINK_BYTES_MAX = 64 << 20


# --- latency --------------------------------------------------------------------------------------

# By the kind of packet that tt-metal's tests name: whether a payload is written, and whether a word
# is incremented behind it.
_PACKETS = {
    "NOC_UNICAST_WRITE": (True, False),
    "NOC_UNICAST_INLINE_WRITE": (False, True),
    "NOC_UNICAST_ATOMIC_INC": (False, True),
    "NOC_FUSED_UNICAST_ATOMIC_INC": (True, True),
    "NOC_UNICAST_SCATTER_WRITE": (True, False),
}


def _predict_neighbour(row: Row, context: Context) -> Prediction:
    """Half of the round trip between two chips that a link joins.

    Like tt-metal's test (tt_fabric_latency_sender.cpp), it is measured between the first two
    places, from the return of the sender's calls, and without the time of the responder's calls.
    """
    system = on_machine(named_system(row, form_of(row)), context.machine)
    has_payload, is_fused = _PACKETS[one_of(row, "ntype", tuple(_PACKETS))]
    payload_bytes = whole(row, "payload_bytes", _PAYLOAD_BYTES_MAX, least=0)
    trip = _core.fabric_round_trip(
        system.cluster(), system.shape(), source=0, destination=1,
        payload_bytes=payload_bytes if has_payload else 0, is_fused=is_fused, worker_noc=0,
    )  # fmt: skip
    return Prediction((trip.total_ns - trip.response_ns) / 2, describe(system))


def _predict_line(row: Row, context: Context) -> Prediction:
    """The round trip to a chip at half of the counted hops, or the trip around a ring.

    Like tt-metal's test (1D_fabric_loopback_latency_test_writer.cpp), it is measured from the time
    at which the message has left the sender's core.
    """
    form = form_of(row)
    size = whole(row, "line_size", CHIPS_MAX, least=2)
    named = named_system(row, form)
    system = system_of(named.chip, form, size, named.links)
    if size <= named.chips and named.machine is not None and form == "line":
        system = replace(named, columns=size, rows=1)
    if size == named.chips and form == "ring":
        system = named
    system = on_machine(system, context.machine)
    farthest = size // 2 if system.goes_round else size - 1
    hops = whole(row, "hops_counted", 2 * CHIPS_MAX, least=2)
    is_all_round = form == "ring" and hops == size
    if not is_all_round and (hops % 2 or hops > 2 * farthest):
        raise CannotSimulate(
            f"hops_counted is {hops}; it must be even, there and back, and at most "
            f"{2 * farthest} on a {form} of {size}, or {size}, all round a ring"
        )
    message_bytes = whole(row, "message_bytes", _PAYLOAD_BYTES_MAX, least=0)
    is_fused = one_of(row, "fused_payload_with_sync", ("True", "False"))
    trip = _core.fabric_round_trip(
        system.cluster(), system.shape(), source=0, destination=0 if is_all_round else hops // 2,
        payload_bytes=message_bytes, is_fused=is_fused == "True", worker_noc=1,
    )  # fmt: skip
    return Prediction(trip.total_ns - trip.flush_ns, describe(system))


# --- bandwidth ------------------------------------------------------------------------------------


class _Streams(NamedTuple):
    """Senders and receivers of streams; True if the fabric's routers forward packets."""

    pattern: Literal["neighbours", "full ring", "half ring"]
    forwards: bool = True
    is_multicast: bool = False


# By tt-metal's name of a test.
_STREAMS = {
    "NeighborExchangeUnicast": _Streams("neighbours", forwards=False),
    "NeighborExchangeLinear": _Streams("neighbours"),
    "FullRingUnicast": _Streams("full ring"),
    "FullRingMulticast": _Streams("full ring", is_multicast=True),
    "HalfRingMulticast": _Streams("half ring", is_multicast=True),
}
# By the kind of packet: what it does besides writing its payload as a whole.
_STREAM_PACKET_KINDS = {
    "NOC_UNICAST_WRITE": {},
    "NOC_FUSED_UNICAST_ATOMIC_INC": {"fused": True},
    "NOC_UNICAST_SCATTER_WRITE": {"scattered": True},
}
# Packets of a stream: so many that the first and the last ones do not matter, fewer where that
# would be more than _LINK_BYTES_MAX in all.
_STREAM_PACKETS = 400
_STREAM_PACKETS_LEAST = 24


def _steps(pattern: str, chip: int, chips: int) -> tuple[int, int]:
    """Destinations of the streams of a chip. Half way around, streams of even places go one chip
    farther upward.
    """
    if pattern != "half ring":
        return 1, -1
    far, near = chips // 2, (chips - 1) // 2
    return (far, -near) if chip % 2 == 0 else (-far, near)


def _predict_bandwidth(row: Row, context: Context) -> Prediction:
    """Payload that the busiest link carries, with a stream from each chip in both directions."""
    name = one_of(row, "test_name", tuple(_STREAMS))
    kind = _STREAM_PACKET_KINDS[one_of(row, "ntype", tuple(_STREAM_PACKET_KINDS))]
    pattern, forwards, is_multicast = _STREAMS[name]
    is_ring = pattern != "neighbours"
    system = on_machine(named_system(row, "ring" if is_ring else "line"), context.machine)
    payload_bytes = whole(row, "packet_size", _PAYLOAD_BYTES_MAX, least=4)
    slot_bytes = whole(row, "max_packet_size", _PAYLOAD_BYTES_MAX, least=4)
    if payload_bytes > slot_bytes:
        raise CannotSimulate(
            f"packet_size is {payload_bytes}; a slot has max_packet_size, which is {slot_bytes}"
        )
    chips = system.chips
    if is_ring and not system.goes_round:
        raise CannotSimulate(f"{name} goes round a ring; {system.name} has {chips} chips in a line")
    streams = [
        (chip, (chip + step) % chips)
        for chip in range(chips) for step in _steps(pattern, chip, chips)
        if system.goes_round or 0 <= chip + step < chips
    ]  # fmt: skip
    hops = {"neighbours": 1.0, "full ring": chips - 1.0, "half ring": (chips - 1) / 2}[pattern]
    affordable = int(_LINK_BYTES_MAX / (len(streams) * hops * payload_bytes))
    rate = _core.fabric_stream_gb_per_s(
        system.cluster(), system.shape(), streams, payload_bytes=payload_bytes,
        packets=min(max(affordable, _STREAM_PACKETS_LEAST), _STREAM_PACKETS),
        slot_bytes=slot_bytes, forwards=forwards, long_way=pattern == "full ring",
        multicast=is_multicast, **kind,
    )  # fmt: skip
    # Each link carries as many streams as each of them makes hops, in the mean.
    return Prediction(rate * hops, describe(system))


# --- collectives ----------------------------------------------------------------------------------

# By chip: workers that serve a link in one direction. On Blackhole two, by reduce-scatter of 1 MiB
# on a line: with one each step would wait for the compute cores.
_WORKERS = {"wormhole": 1, "blackhole": 2}
# tt-metal, reduce_scatter.cpp (k_direct_rs_max_input_bytes): up to here a ring's parts go straight
# to their ranks. Above, sums come from half way round on both sides (reduce_scatter_minimal_async).
_ONE_SHOT_BYTES_MAX = 512 << 10
# tt-metal, all_gather_device_operation.cpp, of pages of 2 KiB: parts of rings of Wormholes that are
# not as many pages go to all ranks at once, those of lines always, and arrays of Blackholes that
# are not as many bytes for each link.
_PAGE_BYTES = 2048
# tt-metal's benchmark of collectives has routers with as many pages as fit (test_ccl_bandwidth.py):
# by chip, the largest payload that one takes (erisc_datamover_builder.hpp); segments of a write.
_PAYLOAD_BYTES_MOST = {"wormhole": 7616, "blackhole": 15232}
_SEGMENTS_MAX = 4
# Of a packet in one dimension (fabric_layout.hpp).
_HEADER_BYTES = 48
# Pages that tt-metal's reduce-scatter adds up at a time (tile_granularity of bfloat16).
_CHUNK_PAGES = 8
_MULTICAST_PAGES = 64
_MULTICAST_BYTES_PER_LINK = 1_000_000
# Calls after the first whose mean counts. tt-metal traces a series and divides its time by the
# number of calls (CCL_bandwidth.md), which tables do not name; that it is four is assumed.
_SERIES = 4
_MODES = {
    "single": 1, "isolated": 1,
    **dict.fromkeys(
        ("backtoback", "bb", "repeated", "chained", "pipelined", "series", "multi", "multiple",
         "steady"),
        _SERIES,
    ),
}  # fmt: skip

# By operation: collectives that run one after the other.
_PARTS = {
    "all_gather": ("all_gather",),
    "reduce_scatter": ("reduce_scatter",),
    "all_reduce": ("reduce_scatter", "all_gather"),
    "all_to_all": ("all_to_all",),
}


@dataclass(frozen=True)
class ChipCall:
    """A collective on a system; `calls` is the number of calls after the first, whose
    mean counts.
    """

    system: ChipSystem
    collective: str
    size_bytes: int
    calls: int = 1

    def algorithm(self) -> str:
        """tt-metal's algorithm for the call."""
        if self.collective == "all_to_all":
            return "all_pairs_all_to_all"
        if self.system.rows > 1:
            return f"grid_{self.collective}"
        form = "ring" if self.system.goes_round else "line"
        if self.collective == "all_gather" and self._goes_to_all_at_once():
            return "multicast_all_gather"
        if (form, self.collective) == ("ring", "reduce_scatter"):
            is_small = self.size_bytes <= _ONE_SHOT_BYTES_MAX
            return "all_pairs_reduce_scatter" if is_small else "half_ring_reduce_scatter"
        return f"{form}_{self.collective}"

    def _goes_to_all_at_once(self) -> bool:
        """True if an all-gather uses multicast (select_program_factory in tt-metal)."""
        if self.system.chip == "blackhole":
            return self.size_bytes < _MULTICAST_BYTES_PER_LINK * self.system.links
        if not self.system.goes_round:
            return True
        return self.size_bytes < _MULTICAST_PAGES * _PAGE_BYTES * self.system.chips

    def link_bytes(self) -> float:
        """Bytes that cross the busiest link in its busier direction."""
        chips, size_bytes = self.system.chips, self.size_bytes
        ways = 2 if self.system.goes_round else 1
        if self.collective != "all_to_all":
            # All must come in over the links of the chip that has the fewest.
            sides = [side for side in (self.system.columns, self.system.rows) if side > 1]
            links = sum(ways if side > 2 else 1 for side in sides)
            return size_bytes * (chips - 1) / chips / links
        # Every chip sends a part to each on the other side of the middle; rings have two middles.
        along = max(self.system.columns, self.system.rows)
        crossing = (along // 2) * (along - along // 2) * (chips // along)
        return size_bytes * crossing / chips / (chips // along) / ways

    def total_bytes(self) -> float:
        """Bytes times links that they cross."""
        hops = self.system.chips - 1
        return self.size_bytes * hops * (self.system.chips / 3 if self.is_exchange else 1)

    @property
    def is_exchange(self) -> bool:
        """True if each part has only one receiver, so that it crosses links separately."""
        return self.collective == "all_to_all"


@lru_cache(maxsize=256)
def call_us(call: ChipCall) -> float:
    """The time of a call after another one."""
    system = call.system
    algorithm = call.algorithm()
    ways = 2 if system.goes_round else 1
    is_grid = algorithm.startswith("grid")
    # To a rank there is one way, which one worker serves with the other (all_to_all_async_generic,
    # reduce_scatter_minimal_direct), and which adds up all that comes in over its link.
    is_pairwise = fabric.is_pairwise(algorithm)
    is_multicast = fabric.is_multicast(algorithm)
    shape = system.shape()
    dimensions = [*shape.dimensions, (1, False)]
    workers = _workers_of(call, algorithm)
    source = ScheduleSource(
        None, call.collective, algorithm, system.chips,
        channels=1 if is_multicast else workers * (1 if is_grid or is_pairwise else ways),
        both_ways=algorithm.startswith(("ring", "half_ring")),
        columns=dimensions[0][0] if is_grid else 0,
        row_rings=is_grid and dimensions[0][1], column_rings=is_grid and dimensions[1][1],
    )  # fmt: skip
    plan = Call(source.schedule()).plan(call.size_bytes)
    run = _core.SimulatedRun.on_chips(
        system.cluster(), plan, carries_data=False, shape=shape,
        payload_bytes=_payload_bytes_of(system.cluster()),
    )  # fmt: skip
    run.invoke(plan)
    return sum(run.invoke(plan) for _ in range(call.calls)) / call.calls


def _payload_bytes_of(cluster: _core.ChipCluster) -> int:
    """Payload of a packet: whole pages, up to the maximum number of segments of a write; 0: the
    value in the spec.
    """
    most = _PAYLOAD_BYTES_MOST.get(cluster.chips[0].chip.name, 0)
    return min(most // _PAGE_BYTES, _SEGMENTS_MAX) * _PAGE_BYTES


def _workers_of(call: ChipCall, algorithm: str) -> int:
    """Channels of a schedule in one direction: one per worker, not counting idle ones.

    A part is divided among workers by whole pages, or by chunks if it goes directly to the rank
    that adds it (reduce_scatter_direct_num_links in tt-metal).
    """
    links = _links_of(call.system)
    pages = math.ceil(call.size_bytes / call.system.chips / _PAGE_BYTES)
    if algorithm == "all_pairs_reduce_scatter":
        return min(links, math.ceil(pages / _CHUNK_PAGES))
    chip = call.system.cluster().chips[0].chip.name
    each = 1 if fabric.is_pairwise(algorithm) else _WORKERS.get(chip, 1)
    return min(links * each, pages)


def _links_of(system: ChipSystem) -> int:
    """Links that join two neighbours."""
    return _core.fabric_planes(system.cluster(), system.shape())


def _size_simulated(call: ChipCall) -> int:
    """The size itself, or the largest power of two that is simulated in its place."""
    size = call.size_bytes
    if call.total_bytes() <= _LINK_BYTES_MAX:
        return size
    per_byte = call.total_bytes() / size
    return max(1 << int(math.log2(_LINK_BYTES_MAX / per_byte)), 1 << 16)


def _time_us(call: ChipCall) -> tuple[float, int]:
    """The time of a call, and the largest size simulated for it."""
    simulated = _size_simulated(call)
    if simulated >= call.size_bytes:
        return call_us(call), call.size_bytes
    large = call_us(replace(call, size_bytes=simulated))
    small = call_us(replace(call, size_bytes=simulated // 2))
    # A link cannot be faster than its line.
    system = call.system
    share = system.line_share(_payload_bytes_of(system.cluster()), _HEADER_BYTES)
    line_bytes_per_us = 1e3 * system.links * system.link_gb_per_s * share
    least = call.link_bytes() / call.size_bytes / line_bytes_per_us
    slope = max((large - small) / (simulated - simulated // 2), least)
    return large + slope * (call.size_bytes - simulated), simulated


def _predict_collective(row: Row, context: Context) -> Prediction:
    form = form_of(row)
    calls = _calls_of(row)
    parts = _PARTS[one_of(_with_underscores(row, "op"), "op", tuple(_PARTS))]
    size_bytes = whole(row, "size_bytes", _SIZE_BYTES_MAX, least=64)
    system = on_machine(_system_of_collective(row, form), context.machine)
    found = [_time_us(ChipCall(system, part, size_bytes, calls)) for part in parts]
    details: dict[str, Any] = describe(system)
    if found[0][1] < size_bytes:
        details["scaled_from"] = {"size_bytes": found[0][1]}
    return Prediction(sum(time_us for time_us, _ in found), details)


def _system_of_collective(row: Row, form: Form) -> ChipSystem:
    """The links and their rate of the system that a row names."""
    counted = counted_system(row, form)
    if not row.get("system", "").strip():
        return counted
    named = named_system(row, form)
    return replace(counted, line_rate_gb_per_s=named.line_rate_gb_per_s)


def _with_underscores(row: Row, column: str) -> Row:
    return {**row, column: row[column].strip().lower().replace("-", "_").replace(" ", "_")}


def _calls_of(row: Row) -> int:
    mode = letters_of(row["mode"])
    if mode not in _MODES:
        raise CannotSimulate(f"mode is {quoted(row['mode'])}; choose single or back-to-back")
    return _MODES[mode]


def _group_of_collective(row: Row) -> str:
    return f"{row['arch']} {row['topology']} {row['op']} on {row['n_devices']}"


FABRIC_KINDS = (
    TableKind(
        name="latency between neighbours of a fabric",
        columns=frozenset({"system", "ntype", "topology", "payload_bytes", "per_hop_avg_ns"}),
        unit="ns",
        identity=("system", "topology", "ntype"),
        group=lambda row: f"{row['system']} {row['topology']} {row['ntype']}",
        measured=lambda row: real(row, "per_hop_avg_ns"),
        predict=_predict_neighbour,
        label=lambda row: f"{row['payload_bytes']} B",
        check_machine=catalogue.load_chip_cluster,
    ),
    TableKind(
        name="latency along a line of chips",
        columns=frozenset({
            "system", "topology", "line_size", "hops_counted", "message_bytes",
            "fused_payload_with_sync", "mean_ns",
        }),
        unit="ns",
        identity=("system", "message_bytes"),
        group=lambda row: f"{row['system']} {row['topology']} of {row['line_size']}",
        measured=lambda row: real(row, "mean_ns"),
        predict=_predict_line,
        label=lambda row: f"{row['message_bytes']} B",
        check_machine=catalogue.load_chip_cluster,
    ),
    TableKind(
        name="bandwidth of a fabric",
        columns=frozenset({
            "system", "test_name", "ntype", "packet_size", "max_packet_size", "bandwidth_gb_per_s",
        }),
        unit="GB/s",
        identity=("system", "test_name", "max_packet_size"),
        group=lambda row: f"{row['system']} {row['test_name']}",
        measured=lambda row: real(row, "bandwidth_gb_per_s"),
        predict=_predict_bandwidth,
        label=lambda row: f"{row['packet_size']} B",
        check_machine=catalogue.load_chip_cluster,
    ),
    TableKind(
        name="collectives on chips",
        columns=frozenset({
            "arch", "topology", "mode", "op", "n_devices", "links_per_direction", "size_bytes",
            "time_us",
        }),
        unit="us",
        identity=("arch", "topology", "op"),
        group=_group_of_collective,
        measured=lambda row: real(row, "time_us"),
        predict=_predict_collective,
        label=lambda row: f"{row['size_bytes']} B",
        check_machine=catalogue.load_chip_cluster,
    ),
)  # fmt: skip
