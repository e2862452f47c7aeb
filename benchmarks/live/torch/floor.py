# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What a small all_reduce costs through PyTorch: on a backend that does nothing, and on ours.

Usage: python benchmarks/live/torch/floor.py [--ranks 2] [--bytes 8] [--turns 10]

The backend that does nothing is torch's own `fake`: its time is what torch.distributed takes to
come to a backend and back. Both are timed in the same processes, turn by turn.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.testing._internal.distributed import fake_pg  # noqa: F401: registers the backend

import towpath.torch  # noqa: F401: registers the backend
from towpath.torch.build import load_extension

BACKENDS = ("fake", "towpath")
CALLS = 4000


def median_us(values: torch.Tensor, group: dist.ProcessGroup) -> float:
    """The median of calls, one after the other."""
    times_ns = []
    for _ in range(CALLS):
        began_ns = time.perf_counter_ns()
        dist.all_reduce(values, group=group)
        times_ns.append(time.perf_counter_ns() - began_ns)
    return statistics.median(times_ns) / 1e3


def run_rank(rank: int, arguments: argparse.Namespace, store: str) -> None:
    """Times both backends in turn; rank 0 prints."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    dist.init_process_group(
        "towpath", init_method=f"file://{store}", rank=rank, world_size=arguments.ranks
    )
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    times_us: dict[str, list[float]] = {name: [] for name in BACKENDS}
    values = torch.zeros(arguments.bytes // 4)
    for _ in range(arguments.turns):
        for name in BACKENDS:
            dist.barrier()
            times_us[name].append(median_us(values, groups[name]))
    if rank == 0:
        print(f"all_reduce of {arguments.bytes} B, {arguments.ranks} ranks, us: median of the "
              f"medians of {arguments.turns} turns (least..most)")  # fmt: skip
        for name, medians_us in times_us.items():
            print(f"{name:8} {statistics.median(medians_us):7.2f} "
                  f"({min(medians_us):.2f}..{max(medians_us):.2f})")  # fmt: skip
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", type=int, default=8, help="a multiple of 4")
    parser.add_argument("--turns", type=int, default=10)
    arguments = parser.parse_args()
    load_extension()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run_rank, (arguments, f"{folder}/store"), nprocs=arguments.ranks)


if __name__ == "__main__":
    main()
