# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Benefit of several virtual channels (VCs): the measurements of the study, as points of a sweep.

The main study is bandwidth over NoC, size, number of VCs and traffic pattern. Its follow-ups cover
open questions: the order of destinations, flow-control messages next to data, throttled injection,
a core that sends to itself, the effect of stalled VCs, and the effect of its recommendations for
classes of traffic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from statistics import median
from typing import TYPE_CHECKING

from towpath.studies import noc_traffic, sweep
from towpath.studies.noc_traffic import (
    STALL_BEGIN_CYCLE,
    STALL_COLUMNS,
    STALL_ROWS,
    STALLED_MAX,
    TRAFFIC_CLASSES,
    ChipShape,
    Coordinate,
    Program,
    Step,
    bandwidth_programs,
    class_programs,
    class_streams,
    destinations,
    flow_control_programs,
    is_read,
    run,
    shape_of,
    stalled_vcs_programs,
    throttle_programs,
)
from towpath.studies.sweep import Point, Result

if TYPE_CHECKING:
    from towpath._core import Chip, TrafficResult

WRITE_PATTERNS = ("one_to_one", "one_to_all", "all_to_all")
READ_PATTERNS = ("one_from_one", "one_from_all", "all_from_all")
PATTERNS = WRITE_PATTERNS + READ_PATTERNS
FOLLOW_UP_PATTERNS = ("one_to_all", "all_to_all")  # whose order of destinations is turned
VCS_MAX = 4  # the classes for unicast requests
PAGES_MAX = 4096  # a page is a flit

# A point of several hundred has as many transactions as fit into this, a second or two of a core,
POINT_FLIT_HOPS = 40_000_000
# but at least one on each VC; it is left out where even those would take more than ten seconds.
POINT_FLIT_HOPS_MAX = 320_000_000

_FEW_TRANSACTIONS = 4  # per destination
# Where reduced points are held against points with several times their transactions.
_AGREEMENT_PAGES = (16, 256)
_AGREEMENT_TIMES = 4
_AGREEMENT_PATTERNS = ("all_to_all", "all_from_all")
_THROTTLED_PAGES = 64
# What each core offers, in 64ths of a link's rate. All to all, links carry about a ninth of it.
_OFFERED_64THS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32)


# --- points ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StudyRequest:
    """Options of a study.

    Attributes:
        patterns: patterns of the main study, out of PATTERNS.
        sizes_bytes: sizes of a transaction.
        nocs: 0, 1 or both.
        vcs: numbers of VCs, each 1 to VCS_MAX.
        transactions: transactions from each master to each of its destinations, as in the study's
            kernels.
        has_study: True to run the main study.
        has_follow_ups: True to run the follow-ups.
        seed: seed of the simulations.
    """

    patterns: tuple[str, ...]
    sizes_bytes: tuple[int, ...]
    nocs: tuple[int, ...] = (0, 1)
    vcs: tuple[int, ...] = (1, 2, 3, 4)
    transactions: int = 256
    has_study: bool = True
    has_follow_ups: bool = True
    seed: int = 1


def study_parts(shape: ChipShape, request: StudyRequest) -> dict[str, list[Point]]:
    """The requested points, by the part of the study to which they belong.

    A point may belong to several parts.
    """
    parts: dict[str, Iterator[Point]] = {}
    if request.has_study:
        parts["patterns"] = _bandwidths(shape, request, request.patterns, request.transactions)
        parts["agreement"] = _agreement(shape, request)
    if request.has_follow_ups:
        parts["orders"] = _orders(shape, request)
        parts["loopback"] = _bandwidths(shape, request, ("loopback",), request.transactions)
        parts["flow_control"] = _flow_control(shape, request)
        parts["classes"] = _classes(shape, request)
        parts["throttle"] = _throttled(shape, request)
        parts["stalled_vcs"] = _stalled(shape, request)
    common = {"grid": f"{shape.columns}x{shape.rows}", "seed": request.seed}
    return {part: [{**point, **common} for point in points] for part, points in parts.items()}


def _orders(shape: ChipShape, request: StudyRequest) -> Iterator[Point]:
    """Few transactions per destination, with and without different orders."""
    most = replace(request, vcs=(max(request.vcs),))
    for pattern, turned in product(FOLLOW_UP_PATTERNS, (False, True)):
        for point in _bandwidths(shape, most, (pattern,), _FEW_TRANSACTIONS, turned):
            if not is_reduced(point):
                yield point


def _bandwidths(
    shape: ChipShape,
    request: StudyRequest,
    patterns: Sequence[str],
    transactions: int,
    turned: bool = False,
) -> Iterator[Point]:
    choices = product(patterns, request.nocs, request.sizes_bytes, request.vcs)
    least = min(transactions, max(request.vcs))
    for pattern, noc, size_bytes, vcs in choices:
        point = {
            "experiment": "bandwidth", "pattern": pattern, "noc": noc, "size_bytes": size_bytes,
            "vcs": vcs, "turned": turned,
        }  # fmt: skip
        fitted = _fitted(shape, point, transactions, least)
        if flit_hops(shape, fitted) <= POINT_FLIT_HOPS_MAX:
            yield fitted


def _agreement(shape: ChipShape, request: StudyRequest) -> Iterator[Point]:
    """Reduced points of the study, repeated with several times the transactions."""
    pages = [n * shape.flit_bytes for n in _AGREEMENT_PAGES]
    some = replace(
        request,
        nocs=request.nocs[:1],
        sizes_bytes=tuple(size for size in request.sizes_bytes if size in pages),
        vcs=tuple(sorted({min(request.vcs), max(request.vcs)})),
    )
    patterns = [pattern for pattern in _AGREEMENT_PATTERNS if pattern in request.patterns]
    for point in _bandwidths(shape, some, patterns, request.transactions):
        more = min(request.transactions, _AGREEMENT_TIMES * point["per_destination"])
        larger = {**point, "per_destination": more}
        if is_reduced(point) and flit_hops(shape, larger) <= POINT_FLIT_HOPS_MAX:
            yield from (point, larger)


def is_reduced(point: Point) -> bool:
    """True if the point has fewer transactions than requested, to fit its budget."""
    return point["per_destination"] < point["asked_per_destination"]


def _fitted(shape: ChipShape, point: Point, asked: int, least: int) -> Point:
    """The point with the number of transactions per destination that its budget permits."""
    each = flit_hops(shape, {**point, "per_destination": 1})
    count = max(least, min(asked, POINT_FLIT_HOPS // each))
    return {**point, "per_destination": count, "asked_per_destination": asked}


def _flow_control(shape: ChipShape, request: StudyRequest) -> Iterator[Point]:
    if shape.columns < 2:
        return
    placements = ("alone", "own_vc", "data_vc")
    messages = ("inline_write", "atomic")
    for noc, message, placement in product(request.nocs, messages, placements):
        yield {
            "experiment": "flow_control", "noc": noc, "message": message, "placement": placement,
        }  # fmt: skip


def _classes(shape: ChipShape, request: StudyRequest) -> Iterator[Point]:
    """Two classes of traffic on shared links, on one VC and on separate VCs."""
    for noc, other in product(request.nocs, TRAFFIC_CLASSES):
        if class_streams(shape, noc, other):
            for placement in ("data_vc", "own_vc"):
                yield {
                    "experiment": "classes", "noc": noc, "other": other, "placement": placement,
                }  # fmt: skip


def _throttled(shape: ChipShape, request: StudyRequest) -> Iterator[Point]:
    size_bytes = _THROTTLED_PAGES * shape.flit_bytes
    asked = min(_FEW_TRANSACTIONS, request.transactions)
    numbers = sorted({min(request.vcs), max(request.vcs)})
    for noc, vcs, part in product(request.nocs, numbers, _OFFERED_64THS):
        point = {
            "experiment": "throttle", "noc": noc, "vcs": vcs, "size_bytes": size_bytes,
            "interval_cycles": round(64 * _THROTTLED_PAGES / part),
        }  # fmt: skip
        yield _fitted(shape, point, asked, 1)


def _stalled(shape: ChipShape, request: StudyRequest) -> Iterator[Point]:
    if shape.columns < STALL_COLUMNS or shape.rows < STALL_ROWS or 0 not in request.nocs:
        return
    for stalled in range(STALLED_MAX):
        yield {"experiment": "stalled_vcs", "noc": 0, "stalled": stalled, "rows": shape.rows}
    for rows in range(STALL_ROWS, shape.rows + 1):
        yield {"experiment": "stalled_vcs", "noc": 0, "stalled": STALLED_MAX, "rows": rows}


# --- cost -----------------------------------------------------------------------------------------


def flit_hops(shape: ChipShape, point: Point) -> int:
    """Number of routers that flits pass at this point, which determines the cost of its
    simulation.
    """
    experiment = point["experiment"]
    if experiment in ("bandwidth", "throttle"):
        pattern = point.get("pattern", "all_to_all")
        there, back = _hops_of_pattern(shape, pattern, point["noc"])
        data, packets = _flits(shape, point["size_bytes"])
        if is_read(pattern):
            there, back = back, there
        return point["per_destination"] * ((data + packets) * there + packets * back)
    return sum(
        _step_flit_hops(shape, point["noc"], program.core, step)
        for program in _PROGRAMS[experiment](shape, point)
        for step in program.steps
        if "to" in step.fields
    )


@lru_cache
def _hops_of_pattern(shape: ChipShape, pattern: str, noc: int) -> tuple[int, int]:
    """Hops from all masters to all their destinations, and back."""
    pairs = [(m, to) for m, targets in destinations(shape, pattern).items() for to in targets]
    there = sum(shape.hops(noc, master, to) for master, to in pairs)
    return there, sum(shape.hops(noc, to, master) for master, to in pairs)


def _flits(shape: ChipShape, size_bytes: int) -> tuple[int, int]:
    """Data flits of a transfer, and packets with one header flit each."""
    data = -(-size_bytes // shape.flit_bytes)
    return data, -(-data // shape.packet_data_flits_max)


def _step_flit_hops(shape: ChipShape, noc: int, core: Coordinate, step: Step) -> int:
    data, packets = _flits(shape, step.fields["size_bytes"])
    there = shape.hops(noc, core, step.fields["to"])
    back = shape.hops(noc, step.fields["to"], core)
    return step.fields.get("count", 1) * ((data + packets) * there + packets * back)


# --- measuring ------------------------------------------------------------------------------------


def measure_point(spec_json: str, point: Point) -> Result:
    """Simulates one point.

    Args:
        spec_json: the chip's spec as JSON, so that any process can build it.
        point: one of study_parts().

    Raises:
        ValueError: the simulation rejects the traffic.
    """
    chip, whole = _chip_of(spec_json)
    columns, rows = map(int, point["grid"].split("x"))
    shape = whole.cropped(columns, rows)
    experiment = point["experiment"]
    programs = _PROGRAMS[experiment](shape, point)
    with_requests = experiment in ("flow_control", "throttle", "classes")
    outcome = run(chip, programs, point["noc"], point["seed"], with_requests=with_requests)
    result = _SUMMARIES[experiment](programs, outcome, point)
    return {**result, "cycles": int(outcome.cycles), "flit_hops": int(outcome.flit_hops)}


def digest_of(spec_json: str) -> str:
    """Digest of the inputs of results other than the point: the chip, simulator and traffic."""
    from towpath import _core

    return sweep.digest_of(spec_json, _core.__file__, noc_traffic.__file__, __file__)


@lru_cache(maxsize=1)
def _chip_of(spec_json: str) -> tuple[Chip, ChipShape]:
    from towpath.specs.chip_spec import ChipSpec

    spec = ChipSpec.model_validate_json(spec_json)
    return spec.build(), shape_of(spec)


def _bandwidths_of(programs: Sequence[Program], outcome: TrafficResult) -> list[float]:
    """Bytes per cycle of each program, from its start to its end."""
    return [
        round(_bytes_of(program) / (end - begin), 4)
        for program, begin, end in zip(
            programs, outcome.begin_cycles, outcome.end_cycles, strict=True
        )
    ]


def _bytes_of(program: Program) -> int:
    fields = (step.fields for step in program.steps)
    return sum(each.get("count", 1) * each.get("size_bytes", 0) for each in fields)


def _bandwidth_summary(programs: Sequence[Program], outcome: TrafficResult, point: Point) -> Result:
    rates = _bandwidths_of(programs, outcome)
    return {"bandwidth_bytes_per_cycle": _median(rates), "bandwidths_bytes_per_cycle": rates}


def _throttle_summary(programs: Sequence[Program], outcome: TrafficResult, point: Point) -> Result:
    """Latency is counted from the time at which a transaction was due, so it includes the wait for
    its issue.
    """
    requests_of: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for core, issued, received in _requests(outcome):
        requests_of.setdefault(core, []).append((issued, received))
    latencies = sorted(
        received - number * point["interval_cycles"]
        for requests in requests_of.values()
        for number, (_, received) in enumerate(sorted(requests))
    )
    return {
        "offered_bytes_per_cycle": point["size_bytes"] / point["interval_cycles"],
        "bandwidth_bytes_per_cycle": _median(_bandwidths_of(programs, outcome)),
        "latency_median_cycles": _percentile(latencies, 50),
    }


def _flow_control_summary(
    programs: Sequence[Program], outcome: TrafficResult, point: Point
) -> Result:
    """Statistics of messages while every stream still runs."""
    message = point["message"]
    streams = [number for number, p in enumerate(programs) if p.steps[0].kind == "write"]
    until = min((outcome.end_cycles[number] for number in streams), default=outcome.cycles)
    senders = {tuple(p.core) for p in programs if p.steps[-1].kind == message}
    latencies = sorted(
        received - issued
        for core, issued, received in _requests(outcome)
        if core in senders and issued < until
    )
    rates = _bandwidths_of(programs, outcome)
    return {
        "messages": len(latencies),
        "latency_median_cycles": _percentile(latencies, 50),
        "latency_p95_cycles": _percentile(latencies, 95),
        "latency_max_cycles": latencies[-1],
        "data_bandwidth_bytes_per_cycle": _median([rates[n] for n in streams]),
    }


def _classes_summary(programs: Sequence[Program], outcome: TrafficResult, point: Point) -> Result:
    """Bandwidth of either class while every stream still runs."""
    other = {program.core for program in programs if program.is_other}
    packet_bytes = programs[0].steps[0].fields["size_bytes"]
    until = min(outcome.end_cycles)
    delivered = {True: 0, False: 0}
    for core, _, received in _requests(outcome):
        delivered[core in other] += packet_bytes if received < until else 0
    rates = {is_other: round(size / until, 4) for is_other, size in delivered.items()}
    return {
        "bandwidth_bytes_per_cycle": round(rates[False] + rates[True], 4),
        "l1_bandwidth_bytes_per_cycle": rates[False],
        "other_bandwidth_bytes_per_cycle": rates[True],
    }


def _stalled_summary(programs: Sequence[Program], outcome: TrafficResult, point: Point) -> Result:
    """Bandwidth of the free flow; the stalled flows in its row must run longer."""
    size_bytes = _bytes_of(programs[0])
    begin, end = max(STALL_BEGIN_CYCLE, outcome.begin_cycles[0]), outcome.end_cycles[0]
    row = programs[0].core.y
    others = [
        other
        for program, other in zip(programs[1:], outcome.end_cycles[1:], strict=True)
        if program.core.y == row
    ]
    return {
        "bandwidth_bytes_per_cycle": round(size_bytes / (end - begin), 4),
        "stalled_to_the_end": bool(all(other > end for other in others)),
    }


def _requests(outcome: TrafficResult) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Core, cycle of issue and cycle of delivery of every request."""
    columns = (outcome.waits[name].tolist() for name in ("x", "y", "issued", "received"))
    for x, y, issued, received in zip(*columns, strict=True):
        yield (x, y), issued, received


def _median(rates: Sequence[float]) -> float:
    return round(median(rates), 4) if rates else 0.0


def _percentile(ordered: Sequence[int], percent: int) -> int:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


_PROGRAMS = {
    "bandwidth": bandwidth_programs,
    "flow_control": flow_control_programs,
    "classes": class_programs,
    "throttle": throttle_programs,
    "stalled_vcs": stalled_vcs_programs,
}
_SUMMARIES = {
    "bandwidth": _bandwidth_summary,
    "flow_control": _flow_control_summary,
    "classes": _classes_summary,
    "throttle": _throttle_summary,
    "stalled_vcs": _stalled_summary,
}
