# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Messages per second of simulated collectives: runs that keep time alone, nothing folded.

A message is one chunk, or part of an all-to-all, that one rank sends.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True)
class Point:
    """One collective on one machine."""

    machine: str
    collective: str
    algorithm: str | None
    ranks: int
    size_bytes: int
    channels: int = 1


POINTS = (
    Point("ring", "all_reduce", None, 256, 64 * MIB),
    Point("ring", "all_reduce", None, 1024, 64 * MIB),
    Point("ring", "all_reduce", None, 4096, 64 * MIB),
    Point("ring", "all_reduce", None, 64, 16384 * MIB),
    Point("ring", "all_reduce", None, 1024, 16384 * MIB),
    Point("dgx-h100", "all_reduce", None, 1024, 64 * MIB, 4),
    Point("dgx-h100", "all_reduce", None, 1024, 64 * MIB, 8),
    Point("dgx-h100", "all_reduce", "hierarchical_all_reduce", 1024, 1024 * MIB),
    Point("dgx-h100", "all_to_all", None, 256, 64 * MIB),
    Point("dgx-h100", "all_to_all", None, 1024, 64 * MIB),
)


def cpu_s() -> float:
    """Of this process so far: user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure_here(point: Point) -> dict[str, Any]:
    """One simulation in this process, which has simulated nothing before."""
    from towpath import _core
    from towpath.collectives.call import Call
    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.specs import catalogue

    spec = catalogue.load(point.machine, ranks=point.ranks)
    machine = spec.build()
    source = ScheduleSource(
        collective=point.collective, algorithm=point.algorithm, ranks=point.ranks,
        channels=point.channels, hosts=spec.host_count,
    )  # fmt: skip
    started_s = cpu_s()
    plan = Call(source.schedule()).plan(point.size_bytes, 1)
    planned_s = cpu_s()
    run = _core.SimulatedRun.on_gpus(machine, plan, carries_data=False)
    made_s = cpu_s()
    time_us = run.invoke(plan)
    ended_s = cpu_s()
    return {
        "plan_s": planned_s - started_s,
        "make_s": made_s - planned_s,
        "run_s": ended_s - made_s,
        "simulated_us": time_us,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def messages_of(point: Point) -> int:
    """What a schedule of the table sends."""
    ranks = point.ranks
    if point.collective == "all_to_all":
        return ranks * (ranks - 1)
    if point.algorithm is None:
        return 2 * ranks * (ranks - 1) * point.channels
    gpus = 8
    hosts = ranks // gpus
    return ranks * point.channels * (2 * hosts * (gpus - 1) + 2 * (hosts - 1))


def measure_apart(number: int, repetitions: int) -> None:
    """Prints the medians over some processes."""
    point = POINTS[number]
    command = [sys.executable, __file__, "--point", str(number)]
    found = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for _ in range(repetitions)
    ]
    median = {name: statistics.median(each[name] for each in found) for name in found[0]}
    rate = messages_of(point) / median["run_s"] / 1e6
    name = point.algorithm or f"{point.collective}, default"
    print(
        f"| {point.machine} | {name} | {point.ranks:,} | {point.size_bytes // MIB:,} "
        f"| {point.channels} | {messages_of(point):,} | {median['plan_s'] + median['make_s']:.2f} "
        f"| {median['run_s']:.3g} | {rate:.1f} | {median['peak_mib']:,.0f} "
        f"| {median['simulated_us']:,.3f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--point", type=int)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    if options.point is not None:
        print(json.dumps(measure_here(POINTS[options.point])))
        return
    for number in range(len(POINTS)):
        measure_apart(number, options.repetitions)


if __name__ == "__main__":
    main()
