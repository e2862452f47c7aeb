# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What a simulated ring all-reduce costs the computer that simulates it.

Two series, each point in a process of its own: more GPUs with the same array, and the same GPUs
with a larger array. Both take more steps; only the first has more thread blocks under way at once.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MACHINE = "dgx-h100"
CHANNELS = 8
SIZE_BYTES = 64 << 20
RANKS = (16, 32, 64, 128, 256, 512, 1024)
FIXED_RANKS = 64
LARGER_SIZES_BYTES = tuple(SIZE_BYTES << shift for shift in (2, 4, 6))
SMALL_RANKS_MAX = 256  # up to here a point takes less than a second
SMALL_REPETITIONS = 7
LARGE_REPETITIONS = 3


Point = dict[str, Any]


def measure_here(ranks: int, size_bytes: int) -> Point:
    """One simulation in this process, which has simulated nothing before."""
    from towpath import _core
    from towpath.collectives.call import Call
    from towpath.schedules.schedule_source import ScheduleSource
    from towpath.specs import catalogue

    spec = catalogue.load(MACHINE, ranks=ranks)
    machine = spec.build()
    source = ScheduleSource(
        collective="all_reduce", ranks=ranks, channels=CHANNELS, hosts=spec.host_count
    )
    schedule = source.schedule()
    call = Call(schedule)
    started = time.perf_counter()
    # Runs with a trace go event by event; this one keeps no records.
    plan = call.plan(size_bytes)
    run = _core.SimulatedRun.on_gpus(
        machine, plan, carries_data=False, trace=_core.Trace(keeps_records=False)
    )
    simulated_us = run.invoke(plan)
    wall_s = time.perf_counter() - started
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    iterations = _core.Chunking(schedule, call.elements(size_bytes), 4).iterations
    # Every rank of a ring has the same program. To look at one copies all, so the peak is known.
    steps_of_rank = sum(len(block.steps) for block in schedule.ranks[0].blocks)
    return {
        "ranks": ranks,
        "size_bytes": size_bytes,
        "steps": ranks * steps_of_rank * iterations,
        "events": run.events,
        "simulated_us": simulated_us,
        "wall_s": wall_s,
        "peak_bytes": peak_bytes,
    }


def measure_apart(ranks: int, size_bytes: int) -> Point:
    """The median of some processes; the peak is the largest."""
    command = [sys.executable, __file__, "--point", str(ranks), str(size_bytes)]
    times = SMALL_REPETITIONS if ranks <= SMALL_RANKS_MAX else LARGE_REPETITIONS
    points = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for _ in range(times)
    ]
    point = dict(points[0])
    point["wall_s"] = statistics.median(other["wall_s"] for other in points)
    point["wall_range_s"] = [choose(other["wall_s"] for other in points) for choose in (min, max)]
    point["peak_bytes"] = max(other["peak_bytes"] for other in points)
    point["repetitions"] = times
    print(
        f"{ranks:5} GPUs {size_bytes >> 20:5} MiB {point['steps']:10} steps "
        f"{point['events']:10} events {point['wall_s']:8.3f} s "
        f"({point['wall_range_s'][0]:.3f} to {point['wall_range_s'][1]:.3f}) "
        f"{point['wall_s'] / point['events'] * 1e9:5.0f} ns/event "
        f"{point['peak_bytes'] / 2**20:6.0f} MiB",
        flush=True,
    )
    return point


def slope(points: list[Point], field: str, over: str) -> float:
    """The exponent of one field over another: least squares through the logarithms."""
    return statistics.linear_regression(
        [math.log(point[over]) for point in points], [math.log(point[field]) for point in points]
    ).slope


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--point", nargs=2, type=int, metavar=("RANKS", "BYTES"))
    parser.add_argument("--ranks-max", type=int, default=max(RANKS))
    parser.add_argument("--json", type=Path, default=HERE / "scaling.json")
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure_here(*options.point)))
        return
    more_gpus = [measure_apart(ranks, SIZE_BYTES) for ranks in RANKS if ranks <= options.ranks_max]
    start = [point for point in more_gpus if point["ranks"] == FIXED_RANKS]
    larger_array = start + [measure_apart(FIXED_RANKS, size) for size in LARGER_SIZES_BYTES]
    series = {"more_gpus": more_gpus, "larger_array": larger_array}
    slopes = {
        "wall_s over steps, more GPUs": slope(more_gpus, "wall_s", "steps"),
        "events over steps, more GPUs": slope(more_gpus, "events", "steps"),
        "wall_s over events, more GPUs": slope(more_gpus, "wall_s", "events"),
        "wall_s over events, larger array": slope(larger_array, "wall_s", "events"),
    }
    for name, power in slopes.items():
        print(f"exponent of {name}: {power:.2f}")
    computer = f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"
    result = {"machine": MACHINE, "computer": computer, "series": series, "slopes": slopes}
    options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
