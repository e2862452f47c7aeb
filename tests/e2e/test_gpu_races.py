# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Blocks that race for a word of global memory, and words that are waited for in the wrong way."""

import sys
from pathlib import Path

import pytest

import towpath
from conftest import ROOT
from inside import _core
from inside.kernels import GpuKernel, SimulatedGpus

sys.path.insert(0, str(ROOT / "tests" / "e2e" / "gpu"))

import random_programs  # noqa: E402

MACHINE = "dgx-h100"

HEAD = """#include <cooperative_groups.h>
#include <cstdlib>
#include <nvshmem.h>
#include <nvshmemx.h>
"""
MAIN = """
int main(int, char** argv) {
  nvshmem_init();
  const int me = nvshmem_my_pe();
  int *words, *out;
  cudaMalloc(&words, 4096);
  cudaMalloc(&out, 4096);
  int* const symmetric = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));
  uint64_t* const signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  switch (atoi(argv[1])) {
LAUNCHES  }
  cudaDeviceSynchronize();
  nvshmem_finalize();
  return words == nullptr || out == nullptr || symmetric == nullptr || signal == nullptr || me < 0;
}
"""

STORE = "__global__ void store(int* words) { words[0] = blockIdx.x; }"
HALF = "__global__ void halves(short* words) { words[blockIdx.x] = 1; }"
WIDE = "__global__ void wide(char* words) { *(short*)(words + 2 * (blockIdx.x / 2)) = 1; }"
READ = """__global__ void read(int* words, int* out) {
  if (blockIdx.x == 2 && threadIdx.x == 5) words[7] = 1;
  if (blockIdx.x == 0) out[threadIdx.x] = words[threadIdx.x];
}"""
GRID = """__global__ void grid(int* words, int* out) {
  words[blockIdx.x] = blockIdx.x;
  cooperative_groups::this_grid().sync();
  out[blockIdx.x] = words[3 - blockIdx.x];
}"""
ATOMIC = "__global__ void add(int* words) { atomicAdd(words, 1); }"
FLAG = """__global__ void flag(int* words, volatile int* ready, int* out) {
  if (blockIdx.x == 0) {
    words[0] = 3;
    __threadfence();
    *ready = 1;
  } else {
    while (*ready == 0) continue;
    out[blockIdx.x] = words[0];
  }
}"""
PEERS = """__global__ void peers(int* words) {
  static_cast<int*>(nvshmem_ptr(words, 0))[3] = nvshmem_my_pe();
}"""
SIGNAL = """__global__ void tell(int* words, uint64_t* signal) {
  static_cast<int*>(nvshmem_ptr(words, 0))[3] = nvshmem_my_pe();
  __threadfence_system();
  if (nvshmem_my_pe() == 1) {
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 0);
  }
}
__global__ void listen(int* words, uint64_t* signal, int* out) {
  nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
  out[0] = words[3];
}"""

# Kernels and their launch: phrases about the race, or none. {0} is the first line of the kernels.
CASES = {
    "two stores": (STORE, "store<<<4, 1>>>(words);", ("race.cu:{0} stores to", "block (1,0,0)")),
    "a load and a store": (READ, "read<<<3, 32>>>(words, out);", ("race.cu:{1} ", "race.cu:{2} ")),
    "a part of a word": (WIDE, "wide<<<2, 1>>>((char*)words);", ("kernel wide",)),
    "two PEs": (PEERS, "peers<<<1, 1>>>(symmetric);", ("on PE 0 at", "on PE 1 at")),
    "two streams": (
        STORE,
        "cudaStream_t a, b; cudaStreamCreate(&a); cudaStreamCreate(&b);"
        "store<<<1, 1, 0, a>>>(words); store<<<1, 1, 0, b>>>(words);",
        ("kernel store",),
    ),
    "halves of a word": (HALF, "halves<<<2, 1>>>((short*)words);", None),
    "one stream": (STORE, "store<<<1, 1>>>(words); store<<<1, 1>>>(words);", None),
    "an atomic": (ATOMIC, "add<<<4, 32>>>(words);", None),
    "a flag": (FLAG, "flag<<<4, 1>>>(words, symmetric, out);", None),
    "a barrier of the grid": (
        GRID,
        "void* arguments[] = {&words, &out};"
        "cudaLaunchCooperativeKernel(grid, dim3(4), dim3(1), arguments);",
        None,
    ),
    "a signal": (
        SIGNAL,
        "if (me == 1) tell<<<1, 1>>>(symmetric, signal);"
        "if (me == 0) listen<<<1, 1>>>(symmetric, signal, out);",
        None,
    ),
}


WAITS = """__global__ void step(uint64_t* word, int how) {
  if (nvshmem_my_pe() == 0) {
    if (how == 2) nvshmem_uint64_p(word, 1, 1);
    else nvshmemx_signal_op(word, 1, NVSHMEM_SIGNAL_SET, 1);
  } else if (how == 0) {
    nvshmem_uint64_wait_until(word, NVSHMEM_CMP_EQ, 1);
  } else if (how == 1) {
    nvshmem_signal_wait_until(word, NVSHMEM_CMP_EQ, 1);
  } else {
    nvshmem_uint64_wait_until(word, NVSHMEM_CMP_EQ, 1);
  }
}"""

LAUNCHES = [
    *((kernels, launch) for kernels, launch, _ in CASES.values()),
    *((WAITS, f"step<<<1, 1>>>(signal, {how});") for how in range(3)),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """All launches in one source, to be compiled once."""
    file = tmp_path_factory.mktemp("races") / "race.cu"
    kernels = dict.fromkeys(kernels for kernels, _ in LAUNCHES)
    launches = "".join(
        f"    case {number}: {{ {launch} break; }}\n" for number, (_, launch) in enumerate(LAUNCHES)
    )
    file.write_text(HEAD + "\n".join(kernels) + MAIN.replace("LAUNCHES", launches))
    return towpath.kernel(file)


def with_lines(phrase: str, kernels: str, program) -> str:
    """The phrase about kernels with the numbers of their lines in the source."""
    text = Path(program.file).read_text()
    first = text.count("\n", 0, text.index(kernels)) + 1
    return phrase.format(*range(first, first + kernels.count("\n") + 1))


@pytest.mark.parametrize("name", CASES)
def test_a_race_is_found_on_request(program, name):
    kernels, _, phrases = CASES[name]
    arguments = [str(list(CASES).index(name))]
    assert program.run(MACHINE, 2, arguments=arguments).status == 0
    if phrases is None:
        assert program.run(MACHINE, 2, arguments=arguments, race_check=True).status == 0
        return
    with pytest.raises(towpath.HazardError, match="race of blocks") as raised:
        program.run(MACHINE, 2, arguments=arguments, race_check=True)
    assert raised.value.hazard == "block_race"
    for phrase in phrases:
        assert with_lines(phrase, kernels, program) in str(raised.value)


def test_the_example_races():
    kernel = towpath.kernel(ROOT / "examples" / "gpu" / "hazards" / "block_race.cu")
    with pytest.raises(towpath.HazardError, match=r"race\.cu:9 loads.*race\.cu:9 stores"):
        kernel.run(MACHINE, 1, race_check=True)


def test_the_example_misses_a_fence():
    kernel = towpath.kernel(ROOT / "examples" / "gpu" / "hazards" / "missing_fence.cu")
    with pytest.raises(towpath.HazardError, match=r"fence\.cu:17 loads.*fence\.cu:11 stores"):
        kernel.run(MACHINE, 1, race_check=True)


def test_right_random_programs_race_for_nothing():
    compiled = GpuKernel(str(ROOT / "tests/e2e/gpu/interpreter.cu"), (), ()).compile()
    machine = towpath.load(MACHINE).spec.build(hosts=1)
    for seed in range(60):
        made = random_programs.program(seed)
        core = _core.SimulatedPes(machine, str(compiled), made.pes, 1, checks_races=True)
        assert random_programs.run(SimulatedGpus(core), made) == 0, seed


@pytest.mark.parametrize("how", [0, 1, 2])
def test_a_signal_awaited_like_a_put_is_a_remark(program, how):
    run = program.run(MACHINE, 2, arguments=[str(len(CASES) + how)])
    assert run.status == 0
    if how != 0:
        assert run.remarks == ()
        return
    (remark,) = run.remarks
    for phrase in ("nvshmem_uint64_wait_until at", "race.cu:{5} ", "nvshmemx_signal_op at",
                   "nvshmem_signal_wait_until"):  # fmt: skip
        assert with_lines(phrase, WAITS, program) in remark
