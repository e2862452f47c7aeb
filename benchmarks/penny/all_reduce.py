# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""penny.all_reduce between processes of this host, beside the executor of schedules.

python benchmarks/penny/all_reduce.py [RANKS]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

import towpath
from towpath import Communicator

SIZES_BYTES = (8 << 10, 64 << 10, 1 << 20)
CALLS = 40
ROUNDS = 3


def median_us(communicator: Communicator, call: Callable[[], object]) -> float:
    """Of calls that all ranks begin together."""
    times = []
    for _ in range(CALLS):
        communicator.barrier()
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def measure(communicator: Communicator, job: str) -> list[tuple[int, list[float]]]:
    """Per size, the medians of executor, symmetric tensor and ordinary tensor, in microseconds."""
    import torch

    from towpath import penny

    penny.begin(job, communicator.rank, communicator.ranks)
    rows = []
    for size_bytes in SIZES_BYTES:
        array = np.zeros(size_bytes // 4, dtype=np.float32)
        ordinary = torch.zeros(size_bytes // 4)
        symmetric = penny.empty(size_bytes // 4)
        ways = (
            lambda array=array: communicator.all_reduce(array),
            lambda tensor=symmetric: penny.all_reduce(tensor),
            lambda tensor=ordinary: penny.all_reduce(tensor),
        )
        rounds = [[median_us(communicator, way) for way in ways] for _ in range(ROUNDS)]
        rows.append((size_bytes, [statistics.median(each) for each in zip(*rounds, strict=True)]))
    penny.end()
    return rows


def main() -> None:
    """Prints a line for each size."""
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    job = f"penny-benchmark-{time.time_ns()}"
    found = towpath.launch(measure, ranks, arguments=(job,), timeout_s=120.0)[0]
    print("size      executor (us)  symmetric (us)  ordinary (us)  ordinary / executor")
    for size_bytes, (executor, symmetric, ordinary) in found:
        print(
            f"{size_bytes:8}  {executor:13.1f}  {symmetric:14.1f}  {ordinary:13.1f}  "
            f"{ordinary / executor:19.2f}"
        )


if __name__ == "__main__":
    main()
