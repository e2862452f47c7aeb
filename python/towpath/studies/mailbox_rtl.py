# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The published measurement on hardware: programs on RTL, simulated by Verilator.

`make rtl` builds the simulators and the programs (rtl/README.md). All cycles result from
instructions and registers. `ASSUMPTIONS` lists details that the document leaves open.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from towpath.errors import ConfigError
from towpath.studies.mailbox_study import (
    SETTLED_ITERATIONS,
    MailboxStudy,
    Row,
    StudyRequest,
    breakdown_rows,
    latency_row,
    part_rows,
    phase_row,
)
from towpath.studies.progress import Progress, silent

CLOCK_MHZ = 100.0
SIGNALS = (
    "word written", "descriptor written", "header leaves", "notice arrives", "header arrives",
    "poll", "poll sees a message", "last word read",
)  # fmt: skip
_WORD, _DESCRIPTOR, _HEADER_OUT, _NOTICE, _HEADER_IN, _POLL, _HIT, _LAST = range(8)
_ITERATIONS_MAX = 500_000
_SIZES = (8, 16, 32, 56)
# Cycles in which all of this many iterations and the start of the nodes end, by far.
_CYCLES_PER_ITERATION = 4_000
_PROBED_ITERATIONS = 60

# (what, value here, what it changes)
ASSUMPTIONS = (
    ("latency of a link's transceivers", "15 cycles",
     "one way by as much; with gearbox and registers a header takes 19 cycles, so that its notice "
     "is back after 40, as measured"),
    ("path from the core to the interface", "one register each way into it",
     "every store by a cycle that nobody waits for, every load and poll by two"),
    ("code of the poll loop", "a load and a branch", "the period of 5 cycles"),
    ("packet", "a header and flits of 128 bits; a descriptor of one word",
     "a header leaves 3 cycles after the descriptor"),
    ("read of memory", "16 cycles", "a page walk, three reads: 52 cycles of a round trip"),
    ("timer", "250 ticks per second", "the share of iterations that an interrupt meets"),
    ("second process", "500 us of work, every third tick", "the plateau of context switches"),
)  # fmt: skip


@dataclass(frozen=True)
class RtlRun:
    """One run of a simulator.

    Attributes:
        program: name of a program of rtl/sw.
        nodes: number of nodes of the cluster.
        iterations: number of iterations of the program.
        size_bytes: size of a message.
        phase_cycles: delay of the nodes after the first one, before their first poll.
        tick_cycles: cycles between timer interrupts; 0 for none.
        background_ticks: ticks between turns of the second process; 0 for none.
        background_loops: rounds of its work in a turn.
        bits_per_cycle: rate of the line.
        latency_cycles: latency of the transceivers of a link.
        memory_latency_cycles: duration of a read of memory.
        probed_cycles: cycles whose signals are recorded.
    """

    program: str = "ping_pong"
    nodes: int = 2
    iterations: int = 100
    size_bytes: int = 32
    phase_cycles: int = 0
    tick_cycles: int = 0
    background_ticks: int = 0
    background_loops: int = 0
    bits_per_cycle: int = 100
    latency_cycles: int = 15
    memory_latency_cycles: int = 16
    probed_cycles: int = 0


@dataclass(frozen=True)
class RtlOutcome:
    """Results of a run.

    Attributes:
        cycles: cycles until the last node was done.
        results: cycles of each iteration on node 0, int64.
        probes: rows of cycle, node and the bits of its signals, at each change.
    """

    cycles: int
    results: np.ndarray
    probes: list[tuple[int, int, int]]


def check_built(folder: Path, nodes: int = 2) -> None:
    """Checks that the simulator and the ping-pong are built.

    Raises:
        ConfigError: one of them is missing.
    """
    for name in (f"cluster{nodes}", "ping_pong.elf"):
        if not (folder / name).is_file():
            raise ConfigError(
                f"--engine rtl needs {folder / name}, which does not exist; build it with "
                "`make rtl`, or give its folder with --rtl"
            )


def run_rtl(folder: Path, asked: RtlRun, *, vcd: Path | None = None) -> RtlOutcome:
    """Runs a program on every node of a cluster.

    Raises:
        ConfigError: the simulator is not built, or the run failed.
    """
    check_built(folder, asked.nodes)
    arguments = (
        asked.iterations, asked.size_bytes, asked.phase_cycles, asked.tick_cycles,
        asked.background_ticks, asked.background_loops,
    )  # fmt: skip
    options: list[tuple[str, Any]] = [("--argument", value) for value in arguments]
    options += [
        ("--bits-per-cycle", asked.bits_per_cycle),
        ("--latency", asked.latency_cycles),
        ("--memory-latency", asked.memory_latency_cycles),
        ("--result", f"results:{asked.iterations}"),
        ("--probes", asked.probed_cycles),
        ("--cycles", 1_000_000 + _CYCLES_PER_ITERATION * asked.iterations),
    ]
    if vcd is not None:
        options.append(("--vcd", vcd))
    command = [str(folder / f"cluster{asked.nodes}")]
    command += [str(part) for option in options for part in option]
    command.append(str(folder / f"{asked.program}.elf"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigError(f"the RTL of {asked.program} failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    if any(found["codes"]):
        raise ConfigError(
            f"{asked.program} ended with {found['codes']} on its nodes, and printed "
            f"{''.join(found['consoles']).strip() or 'nothing'}"
        )
    return RtlOutcome(
        found["cycles"],
        np.array(found["results"]["results"], dtype=np.int64),
        [(cycle, node, bits) for cycle, node, bits in found["probes"]],
    )


# --- signals --------------------------------------------------------------------------------------


class Signals:
    """The cycles in which the signals of a run become true."""

    def __init__(self, outcome: RtlOutcome) -> None:
        found: dict[tuple[int, int], list[int]] = {}
        before: dict[int, int] = {}
        for cycle, node, bits in outcome.probes:
            risen = bits & ~before.get(node, 0)
            before[node] = bits
            for signal in range(len(SIGNALS)):
                if risen >> signal & 1:
                    found.setdefault((node, signal), []).append(cycle)
        self._rises = {key: np.array(cycles) for key, cycles in found.items()}

    def rises(self, node: int, signal: int) -> np.ndarray:
        """All cycles in which a node's signal becomes true, ascending, int64."""
        return self._rises.get((node, signal), np.array([], dtype=np.int64))

    def first(self, node: int, signal: int, begin: int) -> int:
        """The first such cycle at or after `begin`, minus `begin`; -1 if there is none."""
        cycles = self.rises(node, signal)
        place = int(np.searchsorted(cycles, begin))
        return int(cycles[place]) - begin if place < len(cycles) else -1


def iteration_cycles(outcome: RtlOutcome) -> list[dict[tuple[int, str], int]]:
    """By settled iteration of the ping-pong: (node, event) and its cycle, counted from the first
    store.

    A poll is counted in the cycle in which it reads the mailbox, and the last store in the cycle in
    which it is complete.
    """
    signals = Signals(outcome)
    stores = signals.rises(0, _WORD)[SETTLED_ITERATIONS:-1]
    wanted = [
        (0, "last store", _DESCRIPTOR, 1), (0, "header leaves", _HEADER_OUT, 0),
        (0, "first poll", _POLL, 0), (0, "acknowledgement arrives", _NOTICE, 0),
        (1, "header arrives", _HEADER_IN, 0), (1, "poll sees the message", _HIT, -1),
        (1, "last word read", _LAST, 0), (1, "first store", _WORD, 0),
        (1, "header leaves", _HEADER_OUT, 0), (0, "header arrives", _HEADER_IN, 0),
        (0, "poll sees the message", _HIT, -1), (0, "last word read", _LAST, 0),
    ]  # fmt: skip
    found = []
    for begin, end in pairwise(int(cycle) for cycle in stores):
        cycles = {
            (node, event): signals.first(node, signal, begin) + more
            for node, event, signal, more in wanted
        }
        found.append({(0, "first store"): 0, **cycles, (0, "next first store"): end - begin})
    return found


def waveform(outcome: RtlOutcome, begin: int, cycles: int) -> list[Row]:
    """Rows of node, signal and the cycles, starting at `begin`, in which it changes, as 0 or 1."""
    rows: list[Row] = []
    for node in sorted({where for _, where, _ in outcome.probes}):
        for signal, name in enumerate(SIGNALS):
            value = 0
            changes = [(0, 0)]
            for cycle, where, bits in outcome.probes:
                if where != node or not begin <= cycle <= begin + cycles:
                    continue
                if bits >> signal & 1 != value:
                    value = bits >> signal & 1
                    changes.append((cycle - begin, value))
            rows.append({"node": node, "signal": name, "changes": changes})
    return rows


# --- the study ------------------------------------------------------------------------------------


def measure_rtl_study(
    folder: Path, request: StudyRequest, progress: Progress = silent, *, vcd: Path | None = None
) -> MailboxStudy:
    """Measures everything, one part after the other.

    Args:
        folder: folder in which `make rtl` built the programs.
        request: iterations with and without interrupts, and the size of a message: 8, 16, 32 or 56
            bytes. The RTL has no seed.
        progress: display of the work.
        vcd: file for the waveform of some iterations.

    Raises:
        ConfigError: the simulator is not built, or the size or number of iterations is not
        possible.
    """
    check_built(folder)
    if request.size_bytes not in _SIZES or request.iterations > _ITERATIONS_MAX:
        raise ConfigError(
            f"{request.iterations} messages of {request.size_bytes} bytes are requested; the "
            f"RTL supports at most {_ITERATIONS_MAX}, of {', '.join(map(str, _SIZES))} bytes"
        )
    # Without interrupts, with them, eight phases, three clocks, a point per size, in iterations.
    total = request.iterations + request.calm_iterations + 15 * _PROBED_ITERATIONS
    with progress("simulating the RTL", total) as show:
        by_phase = []
        for phase in range(8):
            vcd_here = vcd if phase == 0 else None
            by_phase.append(_probed(folder, request.size_bytes, phase, vcd_here))
            show((phase + 1) * _PROBED_ITERATIONS)
        done = 8 * _PROBED_ITERATIONS
        without = _latency(folder, request, request.calm_iterations, False)
        show(done := done + request.calm_iterations)
        with_interrupts = _latency(folder, request, request.iterations, True)
        show(done := done + request.iterations)
        projections = _projections(folder)
        sizes = [{"value": size, "one_way_ns": _settled_ns(folder, RtlRun(size_bytes=size))}
                 for size in _SIZES]  # fmt: skip
        show(total)
    iterations = [cycles for outcome in by_phase for cycles in iteration_cycles(outcome)]
    shown = _as_in_the_document(iterations)
    first = int(Signals(by_phase[0]).rises(0, _WORD)[SETTLED_ITERATIONS])
    return MailboxStudy(
        name="carvnet in RTL",
        is_the_documents=True,
        request=request,
        engine="rtl",
        breakdown=breakdown_rows(shown),
        parts=part_rows(shown),
        phases=_phases(iterations),
        latencies={"without": without, "with": with_interrupts},
        projections=projections,
        sweeps={"message size (B)": sizes},
        waves=waveform(by_phase[0], first, 2 * shown[0, "next first store"]),
        assumptions=[
            {"what": what, "here": here, "effect": effect} for what, here, effect in ASSUMPTIONS
        ],
    )


def _probed(folder: Path, size_bytes: int, phase: int, vcd: Path | None) -> RtlOutcome:
    asked = RtlRun(
        iterations=_PROBED_ITERATIONS, size_bytes=size_bytes, phase_cycles=phase,
        probed_cycles=100_000,
    )  # fmt: skip
    return run_rtl(folder, asked, vcd=vcd)


def _wait(cycles: dict[tuple[int, str], int]) -> int:
    return cycles[0, "poll sees the message"] - cycles[0, "header arrives"]


def _as_in_the_document(iterations: list[dict[tuple[int, str], int]]) -> dict[tuple[int, str], int]:
    """Among the most frequent iterations, the first one whose poll waits longest, as in the
    document.
    """
    lengths = [cycles[0, "next first store"] for cycles in iterations]
    usual = max(set(lengths), key=lengths.count)
    return max(
        (cycles for cycles, length in zip(iterations, lengths, strict=True) if length == usual),
        key=_wait,
    )


def _phases(iterations: list[dict[tuple[int, str], int]]) -> list[Row]:
    """The different alignments of polls and packets, by frequency."""
    rows = [phase_row(0, cycles) for cycles in iterations]
    keys = [tuple(row.values()) for row in rows]
    distinct = sorted(set(keys), key=keys.count, reverse=True)
    return [rows[keys.index(key)] | {"phase": number} for number, key in enumerate(distinct)]


def _latency(folder: Path, request: StudyRequest, iterations: int, has_interruptions: bool) -> Row:
    asked = RtlRun(iterations=iterations + SETTLED_ITERATIONS, size_bytes=request.size_bytes)
    if has_interruptions:
        # 250 ticks per second; the work of a turn of the second process takes some 500 us.
        asked = replace(asked, tick_cycles=400_000, background_ticks=3, background_loops=6_000)
    outcome = run_rtl(folder, asked)
    one_way_ns = outcome.results[SETTLED_ITERATIONS:] * (1e3 / CLOCK_MHZ / 2)
    return latency_row(one_way_ns, is_named=True)


def _settled_ns(folder: Path, asked: RtlRun, clock_mhz: float = CLOCK_MHZ) -> float:
    """Time of one way: the mean of settled iterations."""
    outcome = run_rtl(folder, replace(asked, iterations=_PROBED_ITERATIONS))
    return float(outcome.results[SETTLED_ITERATIONS:].mean()) * 1e3 / clock_mhz / 2


def _projections(folder: Path) -> list[Row]:
    """Ten times the clock: a latency that is constant in ns has ten times the cycles."""
    fast = RtlRun(memory_latency_cycles=160)
    cases = [
        ("line of 10 Gb/s, transceivers of 150 ns: both as they are",
         replace(fast, bits_per_cycle=10, latency_cycles=150)),
        ("line of 100 Gb/s, transceivers of 150 ns",
         replace(fast, bits_per_cycle=100, latency_cycles=150)),
        ("line of 100 Gb/s, transceivers of 15 ns: all scales",
         replace(fast, bits_per_cycle=100, latency_cycles=15)),
    ]  # fmt: skip
    return [
        {"what": what, "how": "RTL", "one_way_ns": _settled_ns(folder, asked, 1000.0)}
        for what, asked in cases
    ]
