# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA programs run without a GPU: semantics, launches by name, and mistakes by name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import towpath
from conftest import ROOT

EXAMPLES = ROOT / "examples" / "gpu"
MACHINE = "dgx-h100"


def source(tmp_path, text: str, **options):
    file = tmp_path / "program.cu"
    file.write_text("#include <nvshmem.h>\n#include <nvshmemx.h>\n" + text, encoding="utf-8")
    return towpath.kernel(file, **options)


def test_the_example_runs_on_a_machine_and_live():
    kernel = towpath.kernel(EXAMPLES / "ring_shift.cu")
    assert kernel.run(MACHINE, 16).status == 0
    assert kernel.run_live(2).status == 0


EXCHANGE = """
__global__ void send(char* to, char* from, int peer) {
  nvshmemx_putmem_block(to + blockIdx.x * 65536, from + blockIdx.x * 65536, 65536, peer);
}
int main() {
  nvshmem_init();
  char* to = (char*)nvshmem_malloc(32 << 20);
  char* from = (char*)nvshmem_malloc(32 << 20);
  send<<<512, 128>>>(to, from, (nvshmem_my_pe() + 8) % 16);
  nvshmemx_barrier_all_on_stream(nullptr);
  cudaDeviceSynchronize();
  nvshmem_finalize();
}
"""


def test_the_variables_of_nvshmem_select_who_drives_adapters_and_by_how_many_queues(
    tmp_path, monkeypatch
):
    kernel = source(tmp_path, EXCHANGE)
    by_proxy = kernel.run(MACHINE, 16).time_us
    monkeypatch.setenv("NVSHMEM_IB_ENABLE_IBGDA", "1")
    by_gpus = kernel.run(MACHINE, 16).time_us
    assert by_gpus < by_proxy
    few, many = "gpu_cost.kernel.queue_pairs=2", "gpu_cost.kernel.queue_pairs=32"
    monkeypatch.setenv("NVSHMEM_IBGDA_NUM_RC_PER_PE", "32")
    assert kernel.run(MACHINE, 16).time_us == kernel.run(MACHINE, 16, settings=[many]).time_us
    assert kernel.load(MACHINE, 2, settings=[few]) is not None
    monkeypatch.setenv("NVSHMEM_IBGDA_NUM_RC_PER_PE", "none")
    with pytest.raises(towpath.ConfigError, match="NUM_RC_PER_PE is 'none'; it must be 1 to 1024"):
        kernel.run(MACHINE, 2)
    monkeypatch.delenv("NVSHMEM_IBGDA_NUM_RC_PER_PE")
    monkeypatch.setenv("NVSHMEM_IB_ENABLE_IBGDA", "maybe")
    with pytest.raises(towpath.ConfigError, match="ENABLE_IBGDA is 'maybe'; it must be 0 or 1"):
        kernel.run(MACHINE, 2)


def test_memory_that_is_given_back_before_the_stream_has_used_it_is_named_with_its_line(tmp_path):
    text = """
    __global__ void send(char* to, char* from) {
      nvshmemx_putmem_block(to, from, 1024, (nvshmem_my_pe() + 1) % 2);
    }
    int main() {
      nvshmem_init();
      char* to = (char*)nvshmem_malloc(1024);
      char* from;
      cudaMalloc(&from, 1024);
      nvshmemx_buffer_register(from, 1024);
      send<<<1, 32>>>(to, from);
      nvshmemx_buffer_unregister(from);  // line 14
      cudaDeviceSynchronize();
      nvshmem_finalize();
    }
    """
    kernel = source(tmp_path, text)
    with pytest.raises(towpath.HazardError, match="was registered .* at .*program.cu:14 has given"):
        kernel.run(MACHINE, 2)


def test_a_kernel_is_launched_by_name(tmp_path):
    text = """
    template <typename T> __global__ void scale(T* values, T factor, int count) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        values[i] = values[i] * factor + nvshmem_my_pe();
    }
    """
    gpus = source(tmp_path, text, kernels=["scale<float>"]).load(MACHINE, 2)
    values = gpus.symmetric(1000, "float32")
    for array in values.on:
        array[:] = np.arange(1000)
    assert gpus.launch("scale<float>", 4, 128, [values, 2.0, 1000]) > 0
    for pe, array in enumerate(values.on):
        assert np.array_equal(array, np.arange(1000) * 2 + pe)


def test_arguments_that_do_not_fit_a_kernel_are_refused(tmp_path):
    gpus = source(tmp_path, "__global__ void f(int a) {}").load(MACHINE, 1)
    with pytest.raises(towpath.ConfigError, match="takes 1 arguments"):
        gpus.launch("f", 1, 1, [1, 2])
    with pytest.raises(towpath.ConfigError, match="argument 0 of kernel 'f'"):
        gpus.launch("f", 1, 1, ["word"])
    with pytest.raises(towpath.ConfigError, match="no kernel 'g'"):
        gpus.launch("g", 1, 1, [])


WARPS = """
__global__ void check(int* wrong) {
  __shared__ int sums[4];
  extern __shared__ int dynamic[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = threadIdx.x;
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (lane == 0) sums[warp] = sum;
  dynamic[threadIdx.x] = lane;
  __syncthreads();
  if (sums[(warp + 1) % 4] != 32 * 32 * ((warp + 1) % 4) + 496) atomicAdd(wrong, 1);
  if (dynamic[127 - threadIdx.x] != 31 - lane) atomicAdd(wrong, 1);
  if (__shfl_down_sync(0xffffffffu, lane, 1) != (lane == 31 ? 31 : lane + 1)) atomicAdd(wrong, 1);
  if (__shfl_up_sync(0xffffffffu, lane, 2) != (lane < 2 ? lane : lane - 2)) atomicAdd(wrong, 1);
  if (__ballot_sync(0xffffffffu, lane % 2) != 0xaaaaaaaau) atomicAdd(wrong, 1);
  if (__any_sync(0xffffffffu, lane == 7) != 1) atomicAdd(wrong, 1);
  if (__all_sync(0xffffffffu, lane >= 0) != 1) atomicAdd(wrong, 1);
  if (__syncthreads_count(threadIdx.x < 5) != 5) atomicAdd(wrong, 1);
  if (lane < 16 && __shfl_sync(0xffffu, lane, 3) != 3) atomicAdd(wrong, 1);
  if (threadIdx.x >= 64) return;
  __syncthreads();
}
"""


@pytest.mark.parametrize("threads", [128])
def test_warps_exchange_and_blocks_share(tmp_path, threads):
    gpus = source(tmp_path, WARPS).load(MACHINE, 1)
    wrong = gpus.symmetric(1, "int32")
    gpus.launch("check", 3, threads, [wrong], shared_bytes=4 * threads)
    assert wrong.on[0][0] == 0


def test_a_grid_constant_is_one_object_for_all_threads(tmp_path):
    text = """
    struct Words { int word[1000]; };
    __global__ void note(const Words** places, int* sum, const __grid_constant__ Words words) {
      places[64 * blockIdx.x + threadIdx.x] = &words;
      atomicAdd(sum, words.word[threadIdx.x]);
    }
    int main() {
      const Words** places; int* sum; Words words;
      cudaMallocManaged(&places, 128 * sizeof *places); cudaMallocManaged(&sum, sizeof *sum);
      *sum = 0;
      for (int i = 0; i < 1000; ++i) words.word[i] = i;
      note<<<2, 64>>>(places, sum, words);
      cudaDeviceSynchronize();
      for (int i = 1; i < 128; ++i) if (places[i] != places[0]) return 1;
      return *sum == 64 * 63 ? 0 : 2;
    }
    """
    assert source(tmp_path, text).run(MACHINE, 1).status == 0


def test_a_thread_that_polls_volatile_memory_lets_others_go_on(tmp_path):
    text = """
    __global__ void poll(volatile int* flag, int* seen) {
      if (blockIdx.x == 0) {
        if (threadIdx.x == 1) { while (flag[0] == 0) continue; *seen = flag[0]; }
      } else if (threadIdx.x == 0) {
        __nanosleep(5000);
        flag[0] = 7;
      }
    }
    """
    gpus = source(tmp_path, text).load(MACHINE, 1)
    flag, seen = gpus.symmetric(1, "int32"), gpus.symmetric(1, "int32")
    assert gpus.launch("poll", 2, 32, [flag, seen]) > 5
    assert seen.on[0][0] == 7


PING = """
__global__ void ping(volatile int* turns, int rounds) {
  if (threadIdx.x != 0) return;
  volatile int* const own = turns + 64 * blockIdx.x;
  volatile int* const other = turns + 64 * (1 - blockIdx.x);
  for (int round = 1; round <= rounds; ++round) {
    if (blockIdx.x == 0) *other = round;
    while (*own < round) {
    }
    if (blockIdx.x == 1) *other = round;
  }
}
int main(int, char**) {
  int *words, last[65];
  cudaMalloc(reinterpret_cast<void**>(&words), sizeof last);
  cudaMemset(words, 0, sizeof last);
  ping<<<2, 32>>>(words, 200);
  cudaDeviceSynchronize();
  cudaMemcpy(last, words, sizeof last, cudaMemcpyDeviceToHost);
  return last[0] == 200 && last[64] == 200 ? 0 : 1;
}
"""


def test_a_store_while_a_thread_turns_to_polling_is_seen(tmp_path):
    # A store was missed that came between the thread's look and the time of its waiting: each
    # round then took one of the 64 looks after which a run is stuck.
    kernel = source(tmp_path, PING)
    assert kernel.run(MACHINE, 1).status == 0
    assert kernel.run_live(1).status == 0


def test_a_peer_is_stored_to_by_its_address(tmp_path):
    text = """
    __global__ void send(int* data, volatile int* flag, int peer) {
      int* remote = (int*)nvshmem_ptr(data, peer);
      volatile int* remote_flag = (volatile int*)nvshmem_ptr((int*)flag, peer);
      remote[threadIdx.x] = 100 * nvshmem_my_pe() + threadIdx.x;
      __syncthreads();
      if (threadIdx.x == 0) {
        __threadfence_system();
        *remote_flag = 1;
        while (*flag == 0) continue;
      }
      __syncthreads();
      data[threadIdx.x] += 1;
    }
    """
    gpus = source(tmp_path, text).load(MACHINE, 2)
    data, flag = gpus.symmetric(64, "int32"), gpus.symmetric(1, "int32")
    gpus.launch("send", 1, 64, [data, flag, [1, 0]])
    assert np.array_equal(data.on[0], 101 + np.arange(64))
    assert np.array_equal(data.on[1], 1 + np.arange(64))


def test_stores_to_a_peer_pass_the_links(tmp_path):
    text = """
    __global__ void store(float4* data, int vectors, int peer) {
      float4* const remote = (float4*)nvshmem_ptr(data, peer);
      const float4 value = {1, 2, 3, 4};
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += gridDim.x * blockDim.x)
        remote[i] = value;
    }
    """
    gpus = source(tmp_path, text).load(MACHINE, 2)
    vectors = 2 * 132 * 512
    data = gpus.symmetric(8 * vectors, "float32")
    times = [gpus.launch("store", 132, 512, [data, count, 1], on=[0])
             for count in (vectors, 2 * vectors)]  # fmt: skip
    rate = 16 * vectors / (times[1] - times[0]) / 1e3
    assert rate == pytest.approx(370, rel=0.02)  # dgx-h100's NVLinks, GB/s
    assert np.all(data.on[1].reshape(-1, 4) == [1, 2, 3, 4])


FENCES = """
__global__ void fence(int* word, int count, int scope, int peer) {
  int* const remote = (int*)nvshmem_ptr(word, peer);
  for (int i = 0; i < count; ++i) {
    if (threadIdx.x == 0) *(peer == nvshmem_my_pe() ? word : remote) = i;
    if (scope == 1) __threadfence();
    if (scope == 2) __threadfence_system();
  }
}
"""


def test_a_fence_waits_for_the_stores_of_its_threads(tmp_path):
    gpus = source(tmp_path, FENCES).load(MACHINE, 2)
    cost = {"memory": 0.273, "peer": 1.209, "fence": 0.575}  # dgx-h100, in microseconds
    word = gpus.symmetric(1, "int32")
    count = 10

    def fence_us(scope: int, peer: int, threads: int = 32) -> float:
        without, fenced = (
            gpus.launch("fence", 1, threads, [word, count, each, peer], on=[0])
            for each in (0, scope)
        )
        return (fenced - without) / count

    assert fence_us(1, 0) == pytest.approx(cost["memory"], rel=0.02)
    assert fence_us(2, 0) == pytest.approx(cost["memory"] + cost["fence"], rel=0.02)
    assert fence_us(2, 1) == pytest.approx(cost["peer"] + cost["fence"], rel=0.02)
    # The fences of several warps overlap, as measured on an H100 (benchmarks/gpu/README.md).
    assert fence_us(2, 1, 128) == pytest.approx(cost["peer"] + cost["fence"], rel=0.02)


LATE_FENCE = """
__global__ void late(int* word, int is_fenced) {
  int* const remote = (int*)nvshmem_ptr(word, 1);
  if (threadIdx.x >= 32) __nanosleep(600);  // while the other warp is in its fence
  if (threadIdx.x % 32 == 0) remote[threadIdx.x] = 1;
  if (is_fenced) __threadfence_system();
}
"""


def test_who_comes_to_a_fence_later_leaves_it_later(tmp_path):
    gpus = source(tmp_path, LATE_FENCE).load(MACHINE, 2)
    word = gpus.symmetric(64, "int32")
    without_us, fenced_us = (
        gpus.launch("late", 1, 64, [word, is_fenced], on=[0]) for is_fenced in (0, 1)
    )
    # dgx-h100: the late warp's store is acknowledged after 1.209 us, then its fence takes 0.575.
    assert fenced_us - without_us == pytest.approx(1.209 + 0.575, rel=0.02)


POLLS = """
__device__ volatile int* at(volatile int* flag, int pe) {
  return (volatile int*)nvshmem_ptr((int*)flag, pe);
}
// PE 0 polls; block 1 of it, or PE 1, stores.
__global__ void poll(volatile int* flag, int polls) {
  const bool is_storing = nvshmem_my_pe() == 1 || blockIdx.x == 1;
  if (is_storing) __nanosleep(5000);
  if (is_storing) *at(flag, 0) = 1;
  while (!is_storing && polls && *flag == 0) continue;
}
"""


@pytest.mark.parametrize("peer_stores", [False, True])
def test_a_poll_of_memory_takes_as_long_as_a_wait(tmp_path, peer_stores):
    gpus = source(tmp_path, POLLS).load(MACHINE, 2)
    flag = gpus.symmetric(1, "int32")
    times = []
    for polls in (0, 1):
        flag.on[0][0] = 0
        on = [0, 1] if peer_stores else [0]
        times.append(gpus.launch("poll", 1 if peer_stores else 2, 1, [flag, polls], on=on))
    assert times[1] - times[0] == pytest.approx(0.225, rel=0.01)  # poll_ns of dgx-h100


COLLECTIVES = """
#include <cstdio>
#include <vector>
__global__ void count(unsigned long long* counter) {
  nvshmem_ulonglong_atomic_add(counter, 1, 0);
}
// The elements of device memory.
template <typename T> std::vector<T> copy_of(const T* from, int count) {
  std::vector<T> values(count);
  cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost);
  return values;
}
int main() {
  nvshmem_init();
  const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
  int* a = (int*)nvshmem_malloc(64 * n * sizeof(int));
  // A part for each call: a peer may begin the next one before this PE has looked.
  int* b = (int*)nvshmem_malloc(5 * 64 * n * sizeof(int));
  int wrong = 0;
  std::vector<int> own(64 * n);
  for (int i = 0; i < 64 * n; ++i) own[i] = me + i;
  cudaMemcpy(a, own.data(), own.size() * sizeof(int), cudaMemcpyHostToDevice);
  nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, b, a, 64);
  auto got = copy_of(b, 64);
  for (int i = 0; i < 64; ++i) wrong += got[i] != n * i + n * (n - 1) / 2;
  b += 64 * n;
  nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, b, a, 64, 1);
  got = copy_of(b, 64);
  for (int i = 0; i < 64; ++i) wrong += got[i] != 1 + i;
  b += 64 * n;
  nvshmem_int_fcollect(NVSHMEM_TEAM_WORLD, b, a, 64);
  got = copy_of(b, 64 * n);
  for (int i = 0; i < 64 * n; ++i) wrong += got[i] != i / 64 + i % 64;
  b += 64 * n;
  nvshmem_int_alltoall(NVSHMEM_TEAM_WORLD, b, a, 64);
  got = copy_of(b, 64 * n);
  for (int i = 0; i < 64 * n; ++i) wrong += got[i] != i / 64 + 64 * me + i % 64;
  nvshmem_team_t half;
  nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, n / 2, nullptr, 0, &half);
  if (me % 2 == 0) {
    b += 64 * n;
    nvshmem_int_max_reduce(half, b, a, 64);
    got = copy_of(b, 64);
    for (int i = 0; i < 64; ++i) wrong += got[i] != n - 2 + i;
  }
  auto* counter = (unsigned long long*)nvshmem_calloc(1, 8);
  count<<<2, 32>>>(counter);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  if (me == 0) wrong += copy_of(counter, 1)[0] != 64ull * n;
  if (wrong) printf("PE %d: %d wrong\\n", me, wrong);
  nvshmem_finalize();
  return wrong != 0;
}
"""


def test_collectives_and_atomics(tmp_path):
    kernel = source(tmp_path, COLLECTIVES)
    assert kernel.run(MACHINE, 4).status == 0
    assert kernel.run(MACHINE, 16).status == 0
    assert kernel.run_live(4).status == 0


def test_a_source_may_include_the_library_of_cpp_and_ask_the_clock(tmp_path):
    text = """
    #include <memory>
    #include <chrono>
    #include <thread>
    __global__ void wait(long* waited) {
      const long begin = clock();
      __nanosleep(3000);
      *waited = clock() - begin;
    }
    """
    gpus = source(tmp_path, text).load(MACHINE, 1)
    waited = gpus.symmetric(1, "int64")
    gpus.launch("wait", 1, 1, [waited])
    assert 3000 <= waited.on[0][0] < 3100


def test_the_1025th_kernel_is_refused(tmp_path):
    text = "".join(f"__global__ void kernel_{i}() {{}}\n" for i in range(1025))
    with pytest.raises(towpath.ConfigError, match="has 1025 kernels.* at most 1024"):
        source(tmp_path, text).load(MACHINE, 1)


def test_a_deadlock_of_many_polling_threads_is_named(tmp_path):
    text = """
    __global__ void poll(volatile int* flag) { while (*flag == 0) continue; }
    """
    gpus = source(tmp_path, text).load(MACHINE, 1)
    flag = gpus.symmetric(1, "int32")
    with pytest.raises(towpath.DeadlockError, match="polls memory"):
        gpus.launch("poll", 10, 1024, [flag])


def test_exit_and_the_end_of_main_give_the_status(tmp_path):
    assert source(tmp_path, "int main() { nvshmem_init(); }").run(MACHINE, 2).status == 0
    kernel = source(
        tmp_path,
        "int main(int, char** argv) {\n"
        "  nvshmem_init();\n"
        "  if (nvshmem_my_pe() == 1) exit(atoi(argv[1]));\n"
        "}",
    )
    for status in (5, -1, 256):
        assert kernel.run(MACHINE, 2, arguments=[str(status)]).status == status % 256
        assert kernel.run_live(2, arguments=[str(status)]).status == status % 256


def test_the_command_passes_arguments_and_returns_the_status(tmp_path):
    text = """
    int main(int argc, char** argv) {
      nvshmem_init();
      return argc == 3 && argv[1][0] == '7' ? atoi(argv[2]) : 99;
    }
    """
    source(tmp_path, text)
    file = str(tmp_path / "program.cu")
    for status in (0, 4):
        done = subprocess.run(
            [sys.executable, "-m", "towpath", "kernel", "run", file, "--machine",
             MACHINE, "--pes", "2", "--", "7", str(status)],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        assert "2 PEs on dgx-h100" in done.stdout


def test_what_does_not_compile_says_what_the_compiler_says(tmp_path):
    with pytest.raises(towpath.CompilationError, match=r"program\.cu:3.*undeclared"):
        source(tmp_path, "int main() { return undeclared; }").run(MACHINE, 1)
    with pytest.raises(towpath.CompilationError, match="no multicast addresses"):
        source(tmp_path, "int main() { nvshmemx_mc_ptr(0, nullptr); }").run(MACHINE, 1)


HAZARDS = {
    "device_memory": ("PE 7 at", "device_memory.cu:16 loads 4 bytes", "device_memory.cu:13"),
    "divergent_barrier": ("divergent_barrier.cu:9", "thread 32"),
    "fence_for_quiet": ("fence_for_quiet.cu:11", "fence_for_quiet.cu:9"),
    "host_memory": ("thread 0 of block (0,0,0)", "host_memory.cu:8 stores 4 bytes"),
    "misaligned_access": ("misaligned_access.cu:9", "16 bytes", "4 bytes into the 4096 bytes"),
    "mismatched_allocation": ("1024 symmetric bytes", "4608 symmetric bytes"),
    "out_of_bounds": (
        "thread 104 of block (7,0,0)",
        "out_of_bounds.cu:9 stores 4 bytes",
        "end 4 bytes beyond the 4000 bytes of cudaMalloc",
        "out_of_bounds.cu:15",
    ),
    "overshot_wait": ("overshot_wait.cu:14", "its word is 1", "continued to 2"),
    "signal_reused": ("signal_reused.cu:10", "without proof that its peer has seen that signal"),
    "source_changed": ("source_changed.cu:10", "source_changed.cu:9"),
    "use_after_free": ("use_after_free.cu:8 loads", "cudaFree at", "use_after_free.cu:16"),
    "unawaited_data": ("unawaited_data.cu:10", "unawaited_data.cu:9"),
    "unregistered_buffer": ("unregistered_buffer.cu:9", "1024 bytes"),
}


@pytest.mark.parametrize("name", HAZARDS)
def test_a_hazard_is_named(name):
    kernel = towpath.kernel(EXAMPLES / "hazards" / f"{name}.cu")
    with pytest.raises(towpath.HazardError) as raised:
        kernel.run(MACHINE, 16)
    assert raised.value.hazard == name
    for phrase in HAZARDS[name]:
        assert phrase in str(raised.value)


FAULTS = {
    "p[threadIdx.x] = 1;": "follows a pointer to memory that is not there",
    "if (threadIdx.x == 5) volatile int q = 7 / int(threadIdx.y);": (
        "thread 5 of block (0,0,0) of kernel k on PE"
    ),
}


@pytest.mark.parametrize("statement", FAULTS)
def test_what_the_processor_refuses_is_an_error_of_the_thread(tmp_path, statement):
    text = (
        "__global__ void k(int* p) {\n"
        f"  {statement}\n}}\n"
        "int main() { nvshmem_init(); k<<<1, 32>>>(nullptr); cudaDeviceSynchronize(); }"
    )
    with pytest.raises(towpath.RunError, match=re.escape(FAULTS[statement])):
        source(tmp_path, text).run(MACHINE, 2)


def test_a_fault_of_the_host_program_names_its_pe(tmp_path):
    text = "int main() { nvshmem_init(); if (nvshmem_my_pe() == 1) *(volatile int*)8 = 1; }"
    with pytest.raises(towpath.RunError, match="the host program of PE 1"):
        source(tmp_path, text).run(MACHINE, 2)


def test_a_wait_for_equality_is_overshot_in_the_order_of_its_type(tmp_path):
    text = """
    __global__ void wait(int* word, int* result, int value) {
      if (threadIdx.x == 0 && blockIdx.x == 0) {
        nvshmem_int_wait_until(word, NVSHMEM_CMP_EQ, 1);
        *result = *word;
      }
    }
    """
    gpus = source(tmp_path, text).load(MACHINE, 1)
    word, result = gpus.symmetric(1, "int32"), gpus.symmetric(1, "int32")
    word.on[0][0] = -3  # a large number without a sign, but below 1
    with pytest.raises(towpath.DeadlockError, match="nvshmem_int_wait_until"):
        gpus.launch("wait", 1, 32, [word, result, 1])


def test_fences_of_two_multiprocessors_overlap(tmp_path):
    text = """
    __global__ void fences(int count) {
      for (int i = 0; i < count; ++i) nvshmem_fence();
    }
    """
    gpus = source(tmp_path, text).load(MACHINE, 1)
    times = [gpus.launch("fences", blocks, 256, [10]) for blocks in (1, 132)]
    assert times[1] < 1.01 * times[0]


DEADLOCKS = {
    "lost_signal": ("lost_signal.cu:9", "63 threads in __syncthreads"),
    "not_resident": ("72 of its 600 blocks have not started", "the GPU holds 528"),
}


@pytest.mark.parametrize("name", DEADLOCKS)
def test_a_deadlock_names_who_waits(name):
    kernel = towpath.kernel(EXAMPLES / "hazards" / f"{name}.cu")
    with pytest.raises(towpath.DeadlockError) as raised:
        kernel.run(MACHINE, 2)
    for phrase in DEADLOCKS[name]:
        assert phrase in str(raised.value)


PROGRAMS = [
    "collective-launch", "dev-guide-ring", "on-stream", "put-block", "ring-bcast", "thread-group",
]  # fmt: skip


def test_kernels_of_others_run_as_they_are():
    """NVSHMEM's examples: $TOWPATH_NVSHMEM_PROGRAMS names their folder."""
    folder = os.environ.get("TOWPATH_NVSHMEM_PROGRAMS")
    if folder is None:
        pytest.skip("$TOWPATH_NVSHMEM_PROGRAMS does not name the folder of NVSHMEM's examples")
    for name in PROGRAMS:
        result = towpath.kernel(Path(folder) / f"{name}.cu", flags=["-w"]).run(MACHINE, 4)
        assert result.status == 0, name
        assert result.time_us > 0, name
