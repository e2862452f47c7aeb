# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What several threads make of one simulation: wall time, and what its windows allow.

The numbers of threads take turns, so that a busy moment of the machine strikes them all; figures
are medians. The time is that of the simulation alone, without plan, buffers and checks. The bound
is the events of a run over those of its busiest thread in each window.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import towpath
from towpath.collectives.places import ChipPlace, GpuPlace


@dataclass(frozen=True)
class Case:
    machine: str
    collective: str
    size: str
    data: bool
    size_of_machine: dict[str, int]
    algorithm: str | None = None


CASES = (
    Case("galaxy", "all_reduce", "1M", True, {}),
    Case("t3000", "all_gather", "16M", True, {}),
    Case("dgx-h100", "all_reduce", "4M", True, {"ranks": 1024}, "ring"),
    Case("dgx-h100", "all_gather", "128K", True, {"ranks": 4096}, "bruck"),
)


@dataclass
class Note:
    """How long a run took, and what its windows allow."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    now_us: float = 0.0
    windows: tuple[int, int, int] = (0, 0, 0)


class Timed:
    """A run that notes how long it takes. The note outlives it: a run keeps much memory."""

    def __init__(self, run: Any, notes: list[Note]) -> None:
        self.run = run
        self.note = Note()
        notes.append(self.note)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    def invoke(self, *arguments: Any) -> float:
        wall, cpu = time.perf_counter(), time.process_time()
        time_us = self.run.invoke(*arguments)
        self.note.wall_s += time.perf_counter() - wall
        self.note.cpu_s += time.process_time() - cpu
        self.note.now_us, self.note.windows = self.run.now_us, self.run.windows
        return time_us


def watch(place: type) -> list[Note]:
    """Runs on a kind of place, from now on."""
    notes: list[Note] = []
    original = place.run_of
    place.run_of = lambda self, *plan, **how: Timed(original(self, *plan, **how), notes)
    return notes


def run_once(case: Case, threads: int, kinds: list[list[Note]]) -> Note:
    """The simulation of a case, after it has ended."""
    machine = towpath.load(case.machine, **case.size_of_machine)
    machine.run(
        case.collective, size_bytes=case.size, algorithm=case.algorithm, protocol="Simple",
        channels=1 if case.algorithm else None, data=case.data, threads=threads,
    )  # fmt: skip
    first = next(run for kind in kinds for run in kind)
    for kind in kinds:
        kind.clear()
    return first


def rows_of(case: Case, found: dict[int, list[Note]]) -> Iterator[str]:
    """A row for each number of threads."""
    first_s = 0.0
    for threads, runs in found.items():
        wall_s = statistics.median(run.wall_s for run in runs)
        cpu_s = statistics.median(run.cpu_s for run in runs)
        first_s = first_s or wall_s
        _, events, critical = runs[0].windows
        ranks = case.size_of_machine.get("ranks", "")
        yield (
            f"| {case.machine} {ranks} | {case.collective} {case.size} | {threads} | {wall_s:.2f} "
            f"| {cpu_s:.2f} | {first_s / wall_s:.2f} | {events / max(critical, 1):.2f} "
            f"| {os.getloadavg()[0]:.1f} | {runs[0].now_us:.3f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--case", type=int, nargs="+", default=range(len(CASES)))
    options = parser.parse_args()
    kinds = [watch(kind) for kind in (ChipPlace, GpuPlace)]
    print("| machine | what | threads | wall, s | CPU, s | speed-up | bound | load | us |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for case in (CASES[number] for number in options.case):
        found: dict[int, list[Note]] = {threads: [] for threads in options.threads}
        for _ in range(options.repetitions):
            for threads in options.threads:
                found[threads].append(run_once(case, threads, kinds))
        times = {run.now_us for runs in found.values() for run in runs}
        if len(times) != 1:
            raise RuntimeError(f"threads change the time: {times}")
        for row in rows_of(case, found):
            print(row, flush=True)


if __name__ == "__main__":
    main()
