// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdint>

// What all kernels share: 16 bytes as the unit of loads and stores, the part of an array that a
// block works on, and the words by which blocks tell each other how far they are.

namespace penny {

// The most that one load or store of a thread moves.
constexpr uint32_t kVectorBytes = 16;
// Blocks of a kernel, over all its rings, and PEs: they bound the number of signals.
constexpr int kBlocksMax = 8192;
constexpr int kPesMax = 64;

template <typename T>
struct alignas(kVectorBytes) Vector {
  static constexpr int size = kVectorBytes / sizeof(T);
  T data[size];
};

// Sums are those of float, whatever the type, and rounded once for each addition. Vectors come by
// value: each is then one load of 16 bytes.
template <typename T>
__device__ inline Vector<T> sum(Vector<T> a, Vector<T> b) {
  Vector<T> result;
  for (int i = 0; i < Vector<T>::size; ++i) {
    result.data[i] = static_cast<T>(static_cast<float>(a.data[i]) + static_cast<float>(b.data[i]));
  }
  return result;
}

// Some vectors of an array, from the first to before the last.
struct Slice {
  uint64_t first;
  uint64_t count;
};

// The running block's slice of one part of an array that is cut into `parts` for each of
// gridDim.y rings. All blocks together cover the array; the last slices may be short or empty.
__device__ inline Slice own_slice(uint64_t vectors, int parts, int part) {
  const uint64_t all = uint64_t(parts) * gridDim.y;
  const uint64_t part_vectors = (vectors + all - 1) / all;
  const uint64_t block_vectors = (part_vectors + gridDim.x - 1) / gridDim.x;
  const uint64_t part_first = (uint64_t(blockIdx.y) * parts + part) * part_vectors;
  const uint64_t part_end = part_first + part_vectors < vectors ? part_first + part_vectors : vectors;
  const uint64_t first = part_first + blockIdx.x * block_vectors;
  const uint64_t end = first + block_vectors < part_end ? first + block_vectors : part_end;
  return {first, end > first ? end - first : 0};
}

// The word in which the running block hears of a PE's block with the same index. Words are set to
// ever higher stages, call after call. A word for each sender: another one, which is already in the
// next call, must not answer for it.
__device__ inline uint64_t* signal_from(uint64_t* signals, int pe) {
  return signals + uint64_t(pe) * kBlocksMax + blockIdx.y * gridDim.x + blockIdx.x;
}

// The block sends a slice with its signal, and does not wait until its source may change. What its
// threads have stored to the source is there when the put reads it.
template <typename T>
__device__ inline void send(Vector<T>* to, const Vector<T>* from, uint64_t count, uint64_t* signal,
                            uint64_t value, int operation, int peer) {
  __syncthreads();
  if (count == 0) {
    if (threadIdx.x == 0) nvshmemx_signal_op(signal, value, operation, peer);
    return;
  }
  nvshmemx_putmem_signal_nbi_block(to, from, count * kVectorBytes, signal, value, operation, peer);
}

// By all threads of a block: once thread 0 is through, the sources of its puts may change. One
// thread asks, since calls of all would queue at the adapter.
__device__ inline void finish() {
  if (threadIdx.x == 0) nvshmem_quiet();
}

// All threads of the block go on once the word is there: one thread looks, the others wait for it.
__device__ inline void wait_for(uint64_t* signal, uint64_t stage) {
  if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, stage);
  __syncthreads();
}

// Calls function(i) for the block's share of 0 to count. A block of one thread, as processors of a
// host run it best, gets a loop that compilers turn into vector instructions.
template <typename Function>
__device__ inline void for_each(uint64_t count, const Function& function) {
  if (blockDim.x == 1) {
    for (uint64_t i = 0; i < count; ++i) function(i);
  } else {
    for (uint64_t i = threadIdx.x; i < count; i += blockDim.x) function(i);
  }
}

}  // namespace penny
