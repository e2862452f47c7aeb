// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Rings called back to back, without a barrier between the calls, as users call them. Signals grow
// from call to call, and alternate calls use alternate halves of the symmetric memory.
//
//   worklog_rows ring|simple|none BYTES CALLS
//
// "none" has only the barrier at the end.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <cstdlib>
#include <string>

// Adds a slice of 16-byte words.
__device__ void add(float* sum, const float* more, size_t words) {
  for (size_t i = threadIdx.x; i < words; i += blockDim.x) {
    const float4 a = reinterpret_cast<float4*>(sum)[i];
    const float4 b = reinterpret_cast<const float4*>(more)[i];
    reinterpret_cast<float4*>(sum)[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
  }
}

__device__ void copy(float* to, const float* from, size_t words) {
  for (size_t i = threadIdx.x; i < words; i += blockDim.x) {
    reinterpret_cast<float4*>(to)[i] = reinterpret_cast<const float4*>(from)[i];
  }
}

__device__ void wait(uint64_t* signal, uint64_t value) {
  if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, value);
  __syncthreads();
}

// 2 (n - 1) steps, each of a chunk. Chunks of one call have places of their own.
__global__ void ring(float* slots, float* buffer, uint64_t* signal, size_t chunk, uint64_t stage) {
  const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
  uint64_t* own = signal + blockIdx.x;
  const size_t slice = chunk / gridDim.x, at = blockIdx.x * slice, words = slice / 4;
  int sent = me;
  for (int step = 0; step < 2 * (n - 1); ++step) {
    float* slot = slots + step * chunk + at;
    nvshmemx_putmem_signal_nbi_block(slot, buffer + sent * chunk + at, slice * sizeof(float), own,
                                     stage + step, NVSHMEM_SIGNAL_SET, next);
    wait(own, stage + step);
    const int received = (sent + n - 1) % n;
    float* mine = buffer + received * chunk + at;
    if (step < n - 1) {
      add(mine, slot, words);
    } else {
      copy(mine, slot, words);
    }
    __syncthreads();
    sent = received;
  }
  nvshmem_quiet();
}

// The whole array along the ring, then its sum around the ring.
__global__ void simple(float* slots, float* buffer, uint64_t* signal, size_t count,
                       uint64_t stage) {
  const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
  uint64_t* own = signal + blockIdx.x;
  const size_t slice = count / gridDim.x, at = blockIdx.x * slice, words = slice / 4;
  float* mine = buffer + at;
  float* summed = slots + count + at;
  if (me > 0) {
    wait(own, stage);
    add(mine, slots + at, words);
    __syncthreads();
  }
  nvshmemx_putmem_signal_nbi_block(me == n - 1 ? summed : slots + at, mine, slice * sizeof(float),
                                   own, me == n - 1 ? stage + 1 : stage, NVSHMEM_SIGNAL_SET, next);
  if (me < n - 1) {
    wait(own, stage + 1);
    if (me < n - 2) {
      nvshmemx_putmem_signal_nbi_block(summed, summed, slice * sizeof(float), own, stage + 1,
                                       NVSHMEM_SIGNAL_SET, next);
    }
    copy(mine, summed, words);
  }
  nvshmem_quiet();
}

int main(int, char** arguments) {
  nvshmem_init();
  const std::string name = arguments[1];
  const size_t bytes = std::strtoul(arguments[2], nullptr, 0);
  const int calls = std::atoi(arguments[3]);
  const int n = nvshmem_n_pes(), me = nvshmem_my_pe();
  const size_t count = bytes / sizeof(float), chunk = count / n;
  const size_t half = name == "ring" ? 2 * (n - 1) * chunk : 2 * count;
  // 16 bytes for each of 256 threads.
  const size_t slices = (name == "ring" ? chunk : count) * sizeof(float) / 4096;
  const int blocks = slices > 0 ? static_cast<int>(slices) : 1;
  float* slots = static_cast<float*>(nvshmem_malloc(2 * half * sizeof(float)));
  float* buffer = static_cast<float*>(nvshmem_malloc(bytes));
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_calloc(blocks, sizeof(uint64_t)));
  float* host = static_cast<float*>(std::malloc(bytes));
  for (size_t i = 0; i < count; ++i) host[i] = me == 0 ? static_cast<float>(i % 7) : 0.0F;
  cudaMemcpy(buffer, host, bytes, cudaMemcpyHostToDevice);
  nvshmem_barrier_all();
  uint64_t stage = 1;
  for (int call = 0; call < calls; ++call) {
    float* own = slots + (call % 2) * half;
    if (name == "ring") {
      ring<<<blocks, 256>>>(own, buffer, signal, chunk, stage);
      stage += 2 * (n - 1);
    } else {
      simple<<<blocks, 256>>>(own, buffer, signal, count, stage);
      stage += 2;
    }
  }
  nvshmemx_barrier_all_on_stream(nullptr);
  cudaDeviceSynchronize();
  cudaMemcpy(host, buffer, bytes, cudaMemcpyDeviceToHost);
  int wrong = 0;
  float factor = 1;
  for (int call = 1; call < calls; ++call) factor *= n;
  for (size_t i = 0; i < count && calls > 0; ++i) {
    wrong += host[i] != factor * static_cast<float>(i % 7);
  }
  nvshmem_finalize();
  return wrong == 0 ? 0 : 1;
}
