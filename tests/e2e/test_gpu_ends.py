# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""PEs of a CUDA program that end early, meet in different calls, throw or never end: who is named,
and when."""

import subprocess
import sys
import time

import pytest

import towpath

MACHINE = "dgx-h100"

PROGRAM = """#include <cstdlib>
#include <cstring>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <signal.h>
#include <stdexcept>
#include <unistd.h>
__global__ void ring(uint64_t* word, int round) {
  nvshmemx_signal_op(word, round, NVSHMEM_SIGNAL_SET, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
  nvshmem_signal_wait_until(word, NVSHMEM_CMP_GE, round);
}
__global__ void spin() { for (;;) ; }
__global__ void count(int* p) { while (atomicAdd(p, 1) != -1) *p = *p & 255; }
__global__ void poll(volatile int* p) { for (;;) if (*p == 12345) break; }
__global__ void fail() { throw 7; }
int main(int argc, char** argv) {
  nvshmem_init();
  const char* const how = argv[1];
  uint64_t* const word = static_cast<uint64_t*>(nvshmem_calloc(1, 8));
  int* own;
  cudaMalloc(&own, sizeof(int));
  for (int round = 1; round <= 40; ++round) {
    if (nvshmem_my_pe() == 1 && round == 20) {
      if (!strcmp(how, "exit 0")) exit(0);
      if (!strcmp(how, "exit 3")) exit(3);
      if (!strcmp(how, "return")) return 0;
      if (!strcmp(how, "finalize")) { nvshmem_finalize(); return 0; }
      if (!strcmp(how, "_exit")) _exit(0);
      if (!strcmp(how, "kill")) raise(SIGKILL);
      if (!strcmp(how, "stop")) raise(SIGSTOP);
      if (!strcmp(how, "abort")) abort();
      if (!strcmp(how, "fault")) *(volatile int*)nullptr = 1;
      if (!strcmp(how, "throw")) throw 5;
      if (!strcmp(how, "throw error")) throw std::length_error("too long");
      if (!strcmp(how, "throw in a kernel")) fail<<<1, 1>>>();
      if (!strcmp(how, "malloc")) nvshmem_malloc(64);
      if (!strcmp(how, "free")) nvshmem_free(word);
      if (!strcmp(how, "spin")) spin<<<1, 1>>>();
      if (!strcmp(how, "poll")) poll<<<1, 1>>>(own);
      if (!strcmp(how, "count")) count<<<1, 1>>>(own);
      cudaDeviceSynchronize();
    }
    ring<<<1, 1>>>(word, round);
    cudaDeviceSynchronize();
  }
  if (!strcmp(how, "sizes")) nvshmem_malloc(nvshmem_my_pe() == 1 ? 2048 : 1024);
  if (!strcmp(how, "last")) return 0;
  nvshmem_finalize();
  return !strcmp(how, "status") ? nvshmem_my_pe() - 1 : 0;
}
"""


# In processor time of kernel code; the run takes longer.
LIMIT_S = 0.1


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    file = tmp_path_factory.mktemp("ends") / "ends.cu"
    file.write_text(PROGRAM)
    kernel = towpath.kernel(file)
    kernel.run_live(3, arguments=["status"])  # compiled, and its pages are warm
    return kernel


LINE = {text: number for number, text in enumerate(PROGRAM.splitlines(), 1)}


def line(part: str) -> str:
    (number,) = (number for text, number in LINE.items() if part in text)
    return f"ends.cu:{number}"


# How PE 1 goes astray: what the others hear of it.
LIVE = {
    "exit 0": ["exit(0) without nvshmem_finalize"],
    "exit 3": ["exit(3) without nvshmem_finalize"],
    "return": ["the return of 0 from main() without nvshmem_finalize"],
    "finalize": ["nvshmem_finalize at", line('"finalize"')],
    "_exit": ["exited early with status 0"],
    "kill": ["SIGKILL"],
    "abort": ["SIGABRT"],
    "fault": ["the host program of PE 1 at", line('"fault"'), "follows a pointer"],
    "throw": ["the host program of PE 1 throws a value of type int"],
    "throw error": ["throws std::length_error: too long"],
    "throw in a kernel": ["thread 0 of block (0,0,0) of kernel fail on PE 1 throws"],
    "malloc": ["mismatched symmetric allocations", "64 symmetric bytes", line('"malloc"')],
    "free": ["mismatched symmetric allocations", line('"free"')],
    "spin": ["endless kernel: thread 0 of block (0,0,0) of kernel spin on PE 1"],
    "count": ["kernel count on PE 1 at", line("void count")],
}


@pytest.mark.parametrize("how", LIVE)
def test_live_all_name_the_culprit_within_a_second(program, how):
    begin = time.monotonic()
    program.run_live(3, arguments=["status"])
    right_s = time.monotonic() - begin
    begin = time.monotonic()
    with pytest.raises(towpath.RankError) as raised:
        program.run_live(3, arguments=[how], kernel_limit_s=LIMIT_S)
    taken_s = time.monotonic() - begin
    error = raised.value
    assert error.rank == 1, str(error)
    for phrase in LIVE[how]:
        assert phrase in str(error).replace("\n", " "), str(error)
    for other, sentence in error.others.items():
        assert "rank 1" in sentence, (other, sentence)
    # The limit of an endless kernel counts in processor time of a core that others may use.
    if how not in ("spin", "count"):
        assert taken_s - right_s < 1


def test_a_stopped_pe_is_named_after_the_timeout(program):
    with pytest.raises(towpath.RankError, match="rank 1 .* is stopped") as raised:
        program.run_live(3, arguments=["stop"], timeout_s=1)
    assert raised.value.rank == 1


def test_a_live_poll_without_end_is_named_after_the_timeout(program):
    with pytest.raises(towpath.RankError) as raised:
        program.run_live(3, arguments=["poll"], timeout_s=1)
    for phrase in ("no PE can continue", "kernel poll: 1 thread polls", "kernel ring: 1 thread in"):
        assert phrase in str(raised.value)


SIMULATED = {
    "exit 0": (towpath.DeadlockError, ["PE 1: its host program has ended by exit(0) without"]),
    "return": (towpath.DeadlockError, ["PE 1: its host program has ended by the return of 0"]),
    "finalize": (towpath.DeadlockError, ["nvshmem_barrier_all at", line('"finalize"')]),
    "fault": (towpath.RunError, LIVE["fault"]),
    "throw": (towpath.RunError, LIVE["throw"]),
    "throw error": (towpath.RunError, LIVE["throw error"]),
    "throw in a kernel": (towpath.RunError, LIVE["throw in a kernel"]),
    "malloc": (towpath.HazardError, LIVE["malloc"]),
    "free": (towpath.HazardError, LIVE["free"]),
    "sizes": (towpath.HazardError, ["1024 symmetric bytes", "2048 symmetric bytes"]),
    "spin": (towpath.DeadlockError, LIVE["spin"]),
    "poll": (towpath.DeadlockError, ["kernel poll", "polls memory that stays as it is"]),
    "count": (towpath.DeadlockError, LIVE["count"]),
}


@pytest.mark.parametrize("how", SIMULATED)
def test_simulated_the_culprit_is_named(program, how):
    kind, phrases = SIMULATED[how]
    with pytest.raises(kind) as raised:
        program.run(MACHINE, 3, arguments=[how], kernel_limit_s=LIMIT_S)
    for phrase in phrases:
        assert phrase in str(raised.value)


def test_different_sizes_are_named_live(program):
    with pytest.raises(towpath.RankError) as raised:
        program.run_live(3, arguments=["sizes"])
    for phrase in ("1024 symmetric bytes", "2048 symmetric bytes", "nvshmem_malloc at"):
        assert phrase in str(raised.value)


@pytest.mark.parametrize("way", ["simulated", "live"])
def test_programs_that_all_end_alike_are_silent(program, way):
    for how, status in (("last", 0), ("none", 0), ("status", 255)):
        arguments = [how]
        run = (
            program.run_live(3, arguments=arguments)
            if way == "live"
            else program.run(MACHINE, 3, arguments=arguments)
        )
        assert run.status == status, how


def test_a_limit_of_kernels_is_checked(program):
    with pytest.raises(towpath.ConfigError, match="kernel_limit_s is -1"):
        program.run(MACHINE, 3, arguments=["none"], kernel_limit_s=-1)
    assert program.run(MACHINE, 3, arguments=["none"], kernel_limit_s=0).status == 0


@pytest.mark.parametrize(("suffix", "option"), [(".cu", "--kernel-limit"), (".cpp", "--core")])
def test_help_lists_the_options_of_the_kind_of_file(suffix, option):
    done = subprocess.run(
        [sys.executable, "-m", "towpath", "kernel", "run", f"any{suffix}", "--help"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert option in done.stdout


TOO_MANY_THREADS = """#include <nvshmem.h>
__global__ void touch(int* at) { *at = 1; }
int main() {
  nvshmem_init();
  int* at;
  cudaMalloc(&at, sizeof(int));
  touch<<<1, 2048>>>(at);
  const bool is_kept = cudaPeekAtLastError() == cudaErrorInvalidConfiguration;
  const bool is_told = cudaGetLastError() == cudaErrorInvalidConfiguration;
  const bool is_cleared = cudaGetLastError() == cudaSuccess;
  nvshmem_finalize();
  return is_kept && is_told && is_cleared ? 0 : 1;
}
"""


def test_the_error_of_a_launch_is_the_last_error(tmp_path):
    file = tmp_path / "threads.cu"
    file.write_text(TOO_MANY_THREADS)
    assert towpath.kernel(file).run(MACHINE, 1).status == 0
