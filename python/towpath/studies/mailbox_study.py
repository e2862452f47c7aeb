# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The published measurement of a RISC-V cluster with mailboxes, applied to a described cluster.

The study has a ping-pong of 32 bytes with every iteration timed by the cycle counter, the breakdown
of one round trip, and the effect of a clock of 1 GHz. It also sweeps clock, hops, size, mailbox
depth, polling period and the number of processes. The published values are from Loukas et al.,
Low-latency user-level communication for RISC-V clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from towpath import _core
from towpath.specs.mailbox_cluster_spec import MailboxClusterSpec
from towpath.studies.progress import Progress, silent

Row = dict[str, Any]

DOCUMENT_CLUSTER = "carvnet"
# (node, event, published cycle, in words), from the first store on node 0 on.
PUBLISHED_BREAKDOWN = (
    (0, "first store", 0, "data start being written to the packetizer of node 0"),
    (0, "header leaves", 7, "the packet is formed, its header is on the network"),
    (0, "first poll", 22, "node 0 polls its mailbox"),
    (0, "acknowledgement arrives", 47, "node 0 receives the acknowledgement"),
    (1, "header leaves", 79, "the header of the answer leaves node 1"),
    (0, "header arrives", 99, "the header of the answer arrives at node 0"),
    (0, "poll sees the message", 107, "a poll of node 0 sees the answer"),
    (0, "last word read", 129, "the last word of the answer has been read"),
    (0, "next first store", 144, "the next packet begins to be written"),
)
# (with interrupts, figure, published value), one way in ns but for the round trip.
PUBLISHED_LATENCIES = (
    (False, "mode_ns", 720.0),
    (False, "mean_ns", 725.0),
    (False, "max_ns", 1000.0),
    (True, "mode_ns", 720.0),
    (True, "mean_round_trip_ns", 1860.0),
    (True, "max_ns", 500_000.0),
)
PUBLISHED_AT_1_GHZ_NS = 340.0
# What one way is made of on node 0: (part, kind, from event, to event).
PARTS = (
    ("stores of the words and the descriptor", "software", "first store", "last store"),
    ("formation of the packet", "hardware", "last store", "header leaves"),
    ("wait for the poll that sees it", "hardware", "header arrives", "poll sees the message"),
    ("reading the message", "software", "poll sees the message", "last word read"),
    ("from there to the next packet", "software", "last word read", "next first store"),
)
PUBLISHED_CYCLES = {"software": 42, "hardware": 10, "traverse": 20}

# The plateaus of the document's histogram, by what disturbs an iteration. Bounds in ns, one way.
PLATEAUS = (
    ("nothing, or the phase of the polls", 0.0, 750.0),
    ("page walks", 750.0, 1_010.0),
    ("interrupts", 1_010.0, 3_000.0),
    ("a context switch on one node", 3_000.0, 260_000.0),
    ("context switches on both nodes", 260_000.0, float("inf")),
)

SETTLED_ITERATIONS = 20  # until both nodes are in step
_SWEEP_ITERATIONS = 400
_SERIES_POINTS = 2000  # of the slow iterations, and of the others


@dataclass(frozen=True)
class StudyRequest:
    """A request: iterations with and without interrupts, and the seed."""

    iterations: int = 1_000_000
    calm_iterations: int = 300_000
    size_bytes: int = 32
    seed: int = 1


@dataclass(frozen=True)
class MailboxStudy:
    """Results of a run. Times are in ns; one way is half of a round trip.

    Attributes:
        name: name of the cluster.
        is_the_documents: True if the document measured it.
        breakdown: rows of cycle, published cycle and event, in the phase of the polls in which node
            0 waits longest, as in the document.
        parts: rows with the components of one way, in cycles of software, hardware and traverse.
        phases: the cycles of node 1's answer and of node 0's poll, by phase.
        latencies: with and without interrupts: statistics, plateaus, and times with their counts.
        projections: times with a clock of 1 GHz, by the parts that scale with it.
        sweeps: rows by swept parameter.
        engine: "model", or "rtl" for programs on hardware (mailbox_rtl.py).
        waves: from the RTL: rows of node, signal and its changes over two round trips.
        assumptions: from the RTL: details that the document leaves open, and their effects.
    """

    name: str
    is_the_documents: bool
    request: StudyRequest
    breakdown: list[Row] = field(default_factory=list)
    parts: list[Row] = field(default_factory=list)
    phases: list[Row] = field(default_factory=list)
    latencies: dict[str, Row] = field(default_factory=dict)
    projections: list[Row] = field(default_factory=list)
    sweeps: dict[str, list[Row]] = field(default_factory=dict)
    engine: str = "model"
    waves: list[Row] = field(default_factory=list)
    assumptions: list[Row] = field(default_factory=list)


def measure_study(
    spec: MailboxClusterSpec, request: StudyRequest, progress: Progress = silent
) -> MailboxStudy:
    """Measures everything, one part after the other.

    Raises:
        ConfigError: a swept value is out of bounds. ValueError: the message does not fit into a
        packet.
    """
    by_phase = [_cycles_in_phase(spec, request, phase) for phase in range(_period(spec))]
    slowest = max(by_phase, key=_wait)
    parts = part_rows(slowest)
    return MailboxStudy(
        name=spec.name,
        is_the_documents=is_the_documents(spec),
        request=request,
        breakdown=breakdown_rows(slowest),
        parts=parts,
        phases=[phase_row(phase, cycles) for phase, cycles in enumerate(by_phase)],
        latencies=_latencies(spec, request, progress),
        projections=[*_projections(spec), *_arithmetic(spec, parts)],
        sweeps=_sweeps(spec),
    )


def is_the_documents(spec: MailboxClusterSpec) -> bool:
    """True if the document measured this cluster."""
    return spec.name == DOCUMENT_CLUSTER


# --- the breakdown --------------------------------------------------------------------------------


def _period(spec: MailboxClusterSpec) -> int:
    return spec.software.poll_cycles.value


def _cycles_in_phase(
    spec: MailboxClusterSpec, request: StudyRequest, phase: int
) -> dict[tuple[int, str], int]:
    options = _core.PingPongOptions(size_bytes=request.size_bytes, phase_cycles=phase)
    cycles: dict[tuple[int, str], int] = {}
    for node, event, cycle in _core.ping_pong_breakdown(spec.build(), options):
        name = "next first store" if (node, event) == (0, "first store") and cycle > 0 else event
        cycles[node, name] = cycle
    return cycles


def _wait(cycles: dict[tuple[int, str], int]) -> int:
    return cycles[0, "poll sees the message"] - cycles[0, "header arrives"]


def breakdown_rows(cycles: dict[tuple[int, str], int]) -> list[Row]:
    """The document's events, with their cycles from (node, event)."""
    return [
        {"what": what, "node": node, "cycle": cycles[node, event], "published_cycle": published}
        for node, event, published, what in PUBLISHED_BREAKDOWN
    ]


def part_rows(cycles: dict[tuple[int, str], int]) -> list[Row]:
    """The components of one way, in cycles."""
    rows = [
        {"what": what, "kind": kind, "cycles": cycles[0, end] - cycles[0, begin]}
        for what, kind, begin, end in PARTS
    ]
    there_and_back = cycles[0, "acknowledgement arrives"] - cycles[0, "header leaves"]
    what = "half of the way to the acknowledgement"
    return [*rows, {"what": what, "kind": "traverse", "cycles": there_and_back / 2}]


def phase_row(phase: int, cycles: dict[tuple[int, str], int]) -> Row:
    """The times at which the answer leaves and arrives, the waits of both polls, and the round
    trip.
    """
    return {
        "phase": phase,
        "answer_leaves": cycles[1, "header leaves"],
        "answer_arrives": cycles[0, "header arrives"],
        "seen_after_cycles": _wait(cycles),
        "seen_after_cycles_on_node_1": (
            cycles[1, "poll sees the message"] - cycles[1, "header arrives"]
        ),
        "round_trip": cycles[0, "next first store"],
    }


# --- latencies ------------------------------------------------------------------------------------


def _latencies(
    spec: MailboxClusterSpec, request: StudyRequest, progress: Progress
) -> dict[str, Row]:
    calm, iterations = request.calm_iterations, request.iterations
    with progress(f"measuring {spec.name}", calm + iterations) as show:
        return {
            "without": measure_latency(spec, request, calm, False, show),
            "with": measure_latency(
                spec, request, iterations, True, lambda done: show(calm + done)
            ),
        }  # fmt: skip


def measure_latency(
    spec: MailboxClusterSpec, request: StudyRequest, iterations: int, has_interruptions: bool,
    on_progress: Callable[[int], None] | None = None,
) -> Row:  # fmt: skip
    """One-way times of single iterations: mean, mode, extremes, plateaus and all times."""
    options = _core.PingPongOptions(
        size_bytes=request.size_bytes, iterations=iterations + SETTLED_ITERATIONS,
        seed=request.seed, has_interruptions=has_interruptions,
    )  # fmt: skip
    cycles, _, _ = _core.run_ping_pong(spec.build(), options, on_progress)
    one_way_ns = cycles[SETTLED_ITERATIONS:] * (1e3 / spec.core_clock_mhz.value / 2)
    return latency_row(one_way_ns, is_named=is_the_documents(spec))


def latency_row(one_way_ns: np.ndarray, *, is_named: bool) -> Row:
    """Statistics of the iterations of a run.

    Args:
        one_way_ns: time of each iteration in ns, shape (iterations,), float64.
        is_named: True if the disturbance of the iterations in each plateau is known.

    Returns:
        Mean, mode, extremes, plateaus, all times with their counts, and a series of iterations and
        their times: all long ones, and some of the others.
    """
    times_ns, counts = np.unique(one_way_ns, return_counts=True)
    mode_ns = float(times_ns[counts.argmax()])
    return {
        "iterations": len(one_way_ns),
        "mean_ns": float(one_way_ns.mean()),
        "mean_round_trip_ns": float(2 * one_way_ns.mean()),
        "mode_ns": mode_ns,
        "min_ns": float(times_ns[0]),
        "max_ns": float(times_ns[-1]),
        "plateaus": [
            _plateau(times_ns, counts, what if is_named else "", begin_ns, end_ns)
            for what, begin_ns, end_ns in PLATEAUS
        ],
        "times_ns": times_ns.tolist(),
        "counts": counts.tolist(),
        "series": _series(one_way_ns, mode_ns),
    }


def _series(one_way_ns: np.ndarray, mode_ns: float) -> list[tuple[int, float]]:
    """Iterations and their times: a uniform selection of each part, in order."""
    is_slow = one_way_ns > 1.05 * mode_ns
    chosen = []
    for part in (np.flatnonzero(is_slow), np.flatnonzero(~is_slow)):
        step = -(-len(part) // _SERIES_POINTS) if len(part) else 1
        chosen.append(part[::step])
    return [(int(place), float(one_way_ns[place])) for place in np.sort(np.concatenate(chosen))]


def _plateau(
    times_ns: np.ndarray, counts: np.ndarray, what: str, begin_ns: float, end_ns: float
) -> Row:
    """A plateau, named by its bounds if its disturbance is unknown."""
    what = what or f"{begin_ns:g} to {end_ns:g} ns"
    own = (times_ns >= begin_ns) & (times_ns < end_ns)
    if not own.any():
        return {"what": what, "iterations": 0, "median_ns": None, "max_ns": None}
    passed = np.cumsum(counts[own])
    median = times_ns[own][np.searchsorted(passed, passed[-1] / 2)]
    return {
        "what": what,
        "iterations": int(passed[-1]),
        "median_ns": float(median),
        "max_ns": float(times_ns[own][-1]),
    }


def settled_ns(spec: MailboxClusterSpec, **options: int) -> float:
    """Time of one way without disturbances, the mean over all phases of the polls."""
    period = _period(spec)
    core = spec.build()
    phases = range(0, period, max(1, period // 10))
    means = []
    for phase in phases:
        asked = _core.PingPongOptions(
            iterations=_SWEEP_ITERATIONS, phase_cycles=phase, has_interruptions=False,
            has_page_walks=False, **options,
        )  # fmt: skip
        cycles, _, _ = _core.run_ping_pong(core, asked)
        means.append(cycles.reshape(options.get("pairs", 1), -1)[:, SETTLED_ITERATIONS:].mean())
    return float(np.mean(means)) * 1e3 / spec.core_clock_mhz.value / 2


# --- the projection to 1 GHz ----------------------------------------------------------------------


def _projections(spec: MailboxClusterSpec) -> list[Row]:
    """Effect of a core at 1 GHz, by the parts that become faster."""
    factor = 1000 / spec.core_clock_mhz.value
    core = {"core_clock_mhz": 1000.0}
    hardware = core | {"interconnect_clock_mhz": spec.interconnect_clock_mhz.value * factor}
    wire = hardware | {"ring__line_rate_gb_per_s": spec.ring.line_rate_gb_per_s.value * factor}
    poll = round(spec.software.poll_cycles.value * factor)
    cases = [
        ("core, packetizer, mailbox and line rate scale; the traverse stays", wire),
        ("core, packetizer and mailbox scale; traverse and line rate stay", hardware),
        ("the core scales, its polls stay as far apart in time; all else stays",
         core | {"software__poll_cycles": poll}),
        ("the core scales, and its polls; all else stays", core),
    ]  # fmt: skip
    return [
        {"what": what, "how": "simulated", "one_way_ns": settled_ns(spec.with_figures(**figures))}
        for what, figures in cases
    ]


def _arithmetic(spec: MailboxClusterSpec, parts: list[Row]) -> list[Row]:
    """The same by adding up the parts of one way, as in the document."""
    software, hardware, traverse = (
        sum(row["cycles"] for row in parts if row["kind"] == kind) for kind in PUBLISHED_CYCLES
    )
    cycle_ns = 1e3 / spec.core_clock_mhz.value
    traverse_ns = traverse * cycle_ns
    cases = [
        (f"{software} cycles of software scale; {hardware} of hardware and the traverse stay",
         software + hardware * cycle_ns + traverse_ns),
        (f"all {software + hardware} cycles scale; the traverse stays",
         software + hardware + traverse_ns),
    ]  # fmt: skip
    return [{"what": what, "how": "arithmetic", "one_way_ns": value} for what, value in cases]


# --- sweeps ---------------------------------------------------------------------------------------


def _sweeps(spec: MailboxClusterSpec) -> dict[str, list[Row]]:
    nodes = (2, 4, 8, 16, 32, 64)
    pairs = (1, 2, 4, 8, 16)
    many_cores = spec.with_figures(cores_per_node=32)
    large = spec.packetizer.payload_bytes_max.value
    words = spec.word_bytes.value
    return {
        "core clock (MHz)": [
            _point(mhz, spec.with_figures(core_clock_mhz=float(mhz)))
            for mhz in (50, 100, 200, 400, 800, 1000, 2000)
        ],
        "nodes on the ring, to the farthest": [
            _point(count, spec.with_figures(nodes=count), hops=count // 2) for count in nodes
        ],
        "message size (B)": [
            _point(size, spec, size_bytes=size) for size in range(words, large + 1, words)
        ],
        "polling period (cycles)": [
            _point(period, spec.with_figures(software__poll_cycles=period))
            for period in (5, 10, 20, 40, 80)
        ],
        "pairs of processes, each on cores of its own": [
            _point(count, many_cores, pairs=count) for count in pairs
        ],
        "mailbox depth (packets)": [
            _stream_point(depth, many_cores) for depth in (1, 2, 4, 8, 16, 32, 64)
        ],
    }


def _point(value: float, spec: MailboxClusterSpec, **options: int) -> Row:
    return {"value": value, "one_way_ns": settled_ns(spec, **options)}


def _stream_point(depth: int, spec: MailboxClusterSpec) -> Row:
    """Eight senders in bursts of eight: the rate with back-pressure, and the loss without."""
    pressed = spec.with_figures(nodes=4, mailbox__depth_packets=depth)
    dropping = pressed.model_copy(
        update={"mailbox": pressed.mailbox.model_copy(update={"when_full": "drop"})}
    )
    options = {"senders": 8, "messages": 400, "burst_messages": 8, "pause_cycles": 4000}
    received, _, time_us = _core.run_mailbox_stream(pressed.build(), **options)
    kept, dropped, _ = _core.run_mailbox_stream(dropping.build(), **options)
    return {
        "value": depth,
        "messages_per_us": received / time_us,
        "dropped_pct": 100 * dropped / (kept + dropped),
    }
