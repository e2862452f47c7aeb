# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Repeats one use of Towpath for a while, and prints the memory, descriptors and files it takes.

Usage: python tests/e2e/soak.py WAY SECONDS

A line for each sample has the process, its rounds so far, its memory in KiB, its descriptors, its
threads, and the files in the temporary folder and in shared memory. The last line has the growth
between the second quarter of the time and the last one.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import towpath

RANKS = 2
ELEMENTS = (1, 1000, 100_000)
SAMPLES = 40
REST_S = 0.02  # after each round, so that several soaks run beside each other
HERE = Path(__file__).parent
SHMEM = """#include <shmem.h>
static long word, sum;
int main(void) {
  shmem_init();
  long* const part = shmem_malloc(4096);
  part[0] = word = shmem_my_pe();
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &word, 1);
  shmem_free(part);
  shmem_finalize();
  return sum != 1;
}
"""
CUDA = """#include <nvshmem.h>
__global__ void add(int* at) { atomicAdd(at + threadIdx.x, 1); }
int main() {
  nvshmem_init();
  int* const at = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));
  add<<<2, 64>>>(at);
  cudaDeviceSynchronize();
  nvshmem_finalize();
}
"""
CORE = """#include "dataflow_api.h"
void kernel_main() {
  noc_async_write(0x20000, get_noc_addr(2, 1, 0x20000), 64);
  noc_async_write_barrier();
}
"""


class Sample(NamedTuple):
    """The process `who` after `rounds`."""

    who: str
    rounds: int
    memory_kib: int
    descriptors: int
    threads: int
    files: int


def files_now() -> int:
    """Files in the temporary folder, which is of this soak alone, and ours in shared memory."""
    names = sum(len(files) for _, _, files in os.walk(tempfile.gettempdir()))
    return names + sum("towpath" in name for name in os.listdir("/dev/shm"))


def sampled(who: str, rounds: int) -> Sample:
    status = Path("/proc/self/status").read_text()
    pages = sum(int(n) for n in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", status, re.M))
    threads = int(re.search(r"^Threads:\s+(\d+)", status, re.M)[1])
    return Sample(who, rounds, pages, len(os.listdir("/proc/self/fd")), threads, files_now())


def repeat(who: str, seconds: float, one_round) -> list[Sample]:
    """Calls one_round(number) until the time is over. Ranks stop in the same round, which asks."""
    samples: list[Sample] = []
    began = time.monotonic()
    rounds = 0
    while True:
        passed_s = time.monotonic() - began
        if passed_s >= len(samples) * seconds / SAMPLES:
            samples.append(sampled(who, rounds))
            print(*samples[-1], flush=True)
        if not one_round(rounds, passed_s < seconds):
            return samples
        rounds += 1
        time.sleep(REST_S)


def exchange(group, number: int, goes_on: bool) -> bool:
    """Each collective once, a schedule, and one-sided calls; True if rank 0 goes on."""
    array = np.full(ELEMENTS[number % len(ELEMENTS)] * RANKS, 1.0)
    assert (group.all_reduce(array) == RANKS).all()
    group.all_reduce(array, "max", algorithm="ring_all_reduce")
    group.reduce(array, "min")
    group.all_gather(array)
    rows = array.reshape(RANKS, -1)
    group.reduce_scatter(rows)
    group.all_to_all(rows)
    word = np.array([float(goes_on)])
    group.broadcast(word)
    return bool(word[0])


def calls(group, seconds: float) -> list[Sample]:
    """A rank of one group, which calls for the whole time."""
    part = group.allocate(1000)
    signal = group.signals()

    def one_round(number: int, goes_on: bool) -> bool:
        group.put_signal(part, np.full(1000, 2.0), 1 - group.rank, signal, number + 1)
        group.wait_signal(signal, number + 1)
        return exchange(group, number, goes_on)

    return repeat(f"rank {group.rank}", seconds, one_round)


def joins(group, seconds: float, transport: str, job: str) -> list[Sample]:
    """A rank that joins a group, calls and leaves, again and again."""

    def one_round(number: int, goes_on: bool) -> bool:
        with towpath.connect(
            f"{job}{number}" if transport == "shm" else job, group.rank, RANKS,
            transport=transport, timeout_s=60, token=None if transport == "shm" else job,
        ) as other:  # fmt: skip
            other.allocate(100)
            return exchange(other, number, goes_on)

    return repeat(f"rank {group.rank}", seconds, one_round)


def fail(group) -> None:
    """Rank 1 ends in the middle of a call of the other."""
    if group.rank == 1:
        os._exit(3)
    group.all_reduce(np.ones(4))


def launches(seconds: float) -> list[Sample]:
    """A program that launches ranks, of which one fails, and runs programs in C and CUDA."""
    folder = Path(tempfile.gettempdir())
    source = folder / "soak.c"
    source.write_text(SHMEM)
    (folder / "soak.cu").write_text(CUDA)
    program = towpath.kernel(folder / "soak.cu")

    def one_round(number: int, goes_on: bool) -> bool:
        try:
            towpath.launch(fail, RANKS, timeout_s=60)
        except towpath.RankError as error:
            assert error.rank == 1, error
        assert program.run_live(RANKS).status == 0
        subprocess.run(
            [sys.executable, "-m", "towpath", "shmem", "run", str(source), "--pes", str(RANKS)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        return goes_on

    return repeat("launcher", seconds, one_round)


def simulated(seconds: float) -> list[Sample]:
    """A program that simulates: collectives, kernels for cores, CUDA, and mistakes in them."""
    (Path(tempfile.gettempdir()) / "soak.cu").write_text(CUDA)
    program = towpath.kernel(Path(tempfile.gettempdir()) / "soak.cu")
    gpus = towpath.load("dgx-h100", hosts=1)
    chip = towpath.load("wormhole")

    def one_round(number: int, goes_on: bool) -> bool:
        assert gpus.run("all_reduce", size_bytes=1 << 20).wrong == 0
        gpus.run("all_gather", size_bytes=64 << 20, data=False)
        assert program.run("dgx-h100", RANKS).status == 0
        chip.run_kernels([towpath.SourceKernel("soak.cpp", core=(0, 0), text=CORE)])
        try:
            wrong = CORE.replace("0x20000, get", "0x7fffffff, get")
            chip.run_kernels([towpath.SourceKernel("wrong.cpp", core=(0, 0), text=wrong)])
        except towpath.TowpathError:
            return goes_on
        raise AssertionError("a wrong kernel passed")

    return repeat("simulator", seconds, one_round)


def growth(samples: list[Sample]) -> Sample:
    """The median of the last quarter less that of the second one; a process ends as it began."""
    quarter = max(1, len(samples) // 4)
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    numbers = [
        int(statistics.median_low([each[field] for each in late])
            - statistics.median_low([each[field] for each in early]))
        for field in range(1, len(Sample._fields))
    ]  # fmt: skip
    return Sample(samples[0].who, *numbers)


WAYS = ("calls shm", "calls ucx", "joins shm", "joins ucx", "launches", "simulated")


def soak(way: str, seconds: float) -> list[list[Sample]]:
    """The samples of each process."""
    kind, _, transport = way.partition(" ")
    if kind == "calls":
        return towpath.launch(calls, RANKS, transport=transport, timeout_s=120,
                              arguments=(seconds,))  # fmt: skip
    if kind == "joins":
        from test_ucx_strangers import free_address

        job = f"soak-{os.getpid()}-" if transport == "shm" else free_address()
        return towpath.launch(joins, RANKS, timeout_s=120, arguments=(seconds, transport, job))
    return [launches(seconds) if kind == "launches" else simulated(seconds)]


def main() -> None:
    way, seconds = sys.argv[1], float(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        for samples in soak(way, seconds):
            print("growth", *growth(samples), flush=True)


if __name__ == "__main__":
    main()
