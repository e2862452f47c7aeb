# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""All-reduce between processes of this host: towpath's schedules, beside torch's gloo and memcpy.

Everything runs in the same minutes on the same machine, in rounds, so that a busy moment of the
machine strikes them all; the figure of each is the median over the rounds. Without torch, its
columns are left out and the reason is printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict

import numpy as np

ALGORITHMS = ("ring", "two_shot", "one_shot")
SIZES_BYTES = tuple(64 << shift for shift in range(0, 21, 2))  # 64 B to 64 MiB
# One shot moves the whole array to every peer and is meant for the smallest.
ONE_SHOT_BYTES_MAX = 4 << 20
MEMCPY = "memcpy"
GLOO = "gloo"

Times = dict[tuple[str, int], list[float]]


def repetitions(size_bytes: int) -> int:
    """Calls per round: many of a small array, at least three of a large one."""
    return max(3, min(400, (16 << 20) // size_bytes))


def add_towpath(times: Times, ranks: int, channels: int, sizes_bytes: list[int]) -> None:
    from towpath.collectives import live
    from towpath.schedules.schedule_source import ScheduleSource

    for size_bytes in sizes_bytes:
        calls = [
            live.LiveCall(
                ScheduleSource(algorithm=f"{algorithm}_all_reduce", ranks=ranks, channels=channels),
                (size_bytes,),
            )
            for algorithm in ALGORITHMS
            if algorithm != "one_shot" or size_bytes <= ONE_SHOT_BYTES_MAX
        ]
        options = live.LiveOptions(iterations=repetitions(size_bytes), warmup=5)
        for call, row in live.measure_calls(calls, ranks, options):
            column = row.in_place
            if column.wrong:
                raise RuntimeError(f"{call.source.algorithm} of {size_bytes} B came out wrong")
            times[call.source.algorithm.removesuffix("_all_reduce"), size_bytes].append(
                column.time_us
            )


def gloo_rank(rank: int, ranks: int, port: int, sizes_bytes: list[int]) -> None:
    """One rank of the peer: prints the mean time of each size in microseconds."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks
    )
    means_us = []
    for size_bytes in sizes_bytes:
        tensor = torch.zeros(size_bytes // 4)
        for _ in range(5):
            distributed.all_reduce(tensor)
        distributed.barrier()
        count = repetitions(size_bytes)
        started = time.perf_counter()
        for _ in range(count):
            distributed.all_reduce(tensor)
        means_us.append((time.perf_counter() - started) / count * 1e6)
        distributed.barrier()
    print(json.dumps(means_us), flush=True)
    distributed.destroy_process_group()


def add_gloo(times: Times, ranks: int, sizes_bytes: list[int]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sizes = ",".join(map(str, sizes_bytes))
    # By itself gloo takes the interface of the host's name, which may be a slower one.
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--gloo-rank", str(rank), str(ranks), str(port), sizes],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )  # fmt: skip
        for rank in range(ranks)
    ]
    means_us = [json.loads(process.communicate()[0]) for process in processes]
    for size_bytes, of_ranks in zip(sizes_bytes, zip(*means_us, strict=True), strict=True):
        times[GLOO, size_bytes].append(statistics.mean(of_ranks))


def add_memcpy(times: Times, sizes_bytes: list[int]) -> None:
    """One copy of the array by one process."""
    for size_bytes in sizes_bytes:
        source = np.ones(size_bytes, np.uint8)
        target = np.zeros(size_bytes, np.uint8)
        count = repetitions(size_bytes)
        np.copyto(target, source)
        started = time.perf_counter()
        for _ in range(count):
            np.copyto(target, source)
        times[MEMCPY, size_bytes].append((time.perf_counter() - started) / count * 1e6)


def print_table(ranks: int, rounds: int, times: Times, sizes_bytes: list[int]) -> None:
    medians = {key: statistics.median(values) for key, values in times.items()}
    print(f"\n{ranks} ranks, float32 sum in place, microseconds, medians of {rounds} rounds\n")
    columns = (*ALGORITHMS, GLOO, "gloo / best", MEMCPY, "memcpy GB/s")
    print("| bytes | " + " | ".join(columns) + " |")
    print("|---:" * (len(columns) + 1) + "|")
    for size_bytes in sizes_bytes:
        best = min(
            medians[algorithm, size_bytes]
            for algorithm in ALGORITHMS
            if (algorithm, size_bytes) in medians
        )
        cells = {name: medians.get((name, size_bytes)) for name in (*ALGORITHMS, GLOO, MEMCPY)}
        cells["gloo / best"] = cells[GLOO] / best if cells[GLOO] else None
        cells["memcpy GB/s"] = size_bytes / cells[MEMCPY] / 1e3
        shown = ("" if cells[name] is None else f"{cells[name]:,.3g}" for name in columns)
        shown = (f"{float(cell.replace(',', '')):,g}" if cell else "" for cell in shown)
        print(f"| {size_bytes:,} | " + " | ".join(shown) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES_BYTES))
    parser.add_argument("--gloo-rank", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.gloo_rank:
        rank, ranks, port, sizes = options.gloo_rank
        gloo_rank(int(rank), int(ranks), int(port), [int(size) for size in sizes.split(",")])
        return
    has_torch = importlib.util.find_spec("torch") is not None
    if not has_torch:
        print("without gloo: torch is not installed for this Python (pip install torch)")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    for ranks in options.ranks:
        times: Times = defaultdict(list)
        for _ in range(options.rounds):
            add_towpath(times, ranks, options.channels, options.sizes)
            if has_torch:
                add_gloo(times, ranks, options.sizes)
            add_memcpy(times, options.sizes)
        print_table(ranks, options.rounds, times, options.sizes)
    print(f"\nload {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
