// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vector.cuh"

// Two PEs swap a buffer, in four forms, each of which mends what is slow in the one before. `stage`
// is a number higher than in any call before; `destination` and `signals` are symmetric,
// `buffer` is symmetric or registered.

namespace penny {

// Only puts: the data is in `destination` after a barrier of the host.
template <typename T>
__global__ void exchange_plain(T* destination, T* buffer, uint64_t vectors, int peer) {
  const Slice slice = own_slice(vectors, 1, 0);
  nvshmemx_putmem_block(reinterpret_cast<Vector<T>*>(destination) + slice.first,
                        reinterpret_cast<Vector<T>*>(buffer) + slice.first,
                        slice.count * kVectorBytes, peer);
}

// The kernel goes on with the data: all threads fence, one signals, all wait, and each copies
// element by element.
template <typename T>
__global__ void exchange_separate_signal(T* destination, T* buffer, uint64_t* signals,
                                         uint64_t vectors, int peer, uint64_t stage) {
  const Slice slice = own_slice(vectors, 1, 0);
  const uint64_t first = slice.first * Vector<T>::size;
  nvshmemx_putmem_block(destination + first, buffer + first, slice.count * kVectorBytes, peer);
  nvshmem_fence();
  __syncthreads();
  if (threadIdx.x == 0) {
    nvshmemx_signal_op(signal_from(signals, nvshmem_my_pe()), stage, NVSHMEM_SIGNAL_SET, peer);
  }
  nvshmem_signal_wait_until(signal_from(signals, peer), NVSHMEM_CMP_GE, stage);
  for_each(slice.count * Vector<T>::size,
           [&](uint64_t i) { buffer[first + i] = destination[first + i]; });
}

// The signal travels with the data, and one thread waits for it.
template <typename T>
__global__ void exchange_fused_signal(T* destination, T* buffer, uint64_t* signals,
                                      uint64_t vectors, int peer, uint64_t stage) {
  const Slice slice = own_slice(vectors, 1, 0);
  const uint64_t first = slice.first * Vector<T>::size;
  nvshmemx_putmem_signal_block(destination + first, buffer + first, slice.count * kVectorBytes,
                               signal_from(signals, nvshmem_my_pe()), stage, NVSHMEM_SIGNAL_SET,
                               peer);
  wait_for(signal_from(signals, peer), stage);
  for_each(slice.count * Vector<T>::size,
           [&](uint64_t i) { buffer[first + i] = destination[first + i]; });
}

// Threads copy 16 bytes at a time.
template <typename T>
__global__ void exchange_vectorised(T* destination, T* buffer, uint64_t* signals, uint64_t vectors,
                                    int peer, uint64_t stage) {
  const Slice slice = own_slice(vectors, 1, 0);
  auto* const to = reinterpret_cast<Vector<T>*>(buffer) + slice.first;
  auto* const from = reinterpret_cast<Vector<T>*>(destination) + slice.first;
  nvshmemx_putmem_signal_block(from, to, slice.count * kVectorBytes,
                               signal_from(signals, nvshmem_my_pe()), stage, NVSHMEM_SIGNAL_SET,
                               peer);
  wait_for(signal_from(signals, peer), stage);
  for_each(slice.count, [&](uint64_t i) { to[i] = from[i]; });
}

}  // namespace penny
