// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vector.cuh"

// All-reduces in one or two steps, by loads and stores at the addresses that nvshmem_ptr gives for
// peers of the same node. They add in the order of the PEs: every PE gets the same bits.

namespace penny {

// Threads 0 to n-1 tell one peer each that the block is at `stage`: what any of its threads stored
// before, here or at a peer, is there first.
__device__ inline void signal_all(uint64_t* signals, uint64_t stage) {
  const int pes = nvshmem_n_pes();
  __syncthreads();
  for (int peer = threadIdx.x; peer < pes; peer += blockDim.x) {
    if (peer == nvshmem_my_pe()) continue;
    __threadfence_system();
    nvshmemx_signal_op(signal_from(signals, nvshmem_my_pe()), stage, NVSHMEM_SIGNAL_SET, peer);
  }
}
__device__ inline void wait_for_all(uint64_t* signals, uint64_t stage) {
  for (int peer = threadIdx.x; peer < nvshmem_n_pes(); peer += blockDim.x) {
    if (peer == nvshmem_my_pe()) continue;
    nvshmem_signal_wait_until(signal_from(signals, peer), NVSHMEM_CMP_GE, stage);
  }
  __syncthreads();
}

// Every PE gives all of its data to each other one, and adds what it gets. `slots` is symmetric
// and has room for one array of each PE; it is not that of the call before. `input` and `output`
// are any memory, and may be the same; beyond a node, `input` is symmetric or registered. A call
// uses one stage.
template <typename T>
__global__ void one_shot(T* slots, const T* input, T* output, uint64_t* signals, uint64_t vectors,
                         uint64_t stage) {
  __shared__ Vector<T>* own_slot_at[kPesMax];
  const int pe = nvshmem_my_pe(), pes = nvshmem_n_pes();
  const Slice slice = own_slice(vectors, 1, 0);
  auto* const slot = reinterpret_cast<Vector<T>*>(slots) + slice.first;
  const auto* const in = reinterpret_cast<const Vector<T>*>(input) + slice.first;
  auto* const out = reinterpret_cast<Vector<T>*>(output) + slice.first;
  ++stage;
  for (int peer = threadIdx.x; peer < pes; peer += blockDim.x) {
    own_slot_at[peer] = static_cast<Vector<T>*>(nvshmem_ptr(slot + pe * vectors, peer));
  }
  __syncthreads();
  bool has_put = false;
  for (int step = 1; step < pes; ++step) {
    const int peer = (pe + step) % pes;
    if (own_slot_at[peer] != nullptr) continue;
    has_put = true;
    send(slot + pe * vectors, in, slice.count, signal_from(signals, pe), stage, NVSHMEM_SIGNAL_SET,
         peer);
  }
  for_each(slice.count, [&](uint64_t i) {
    const Vector<T> value = in[i];
    for (int step = 1; step < pes; ++step) {
      Vector<T>* const to = own_slot_at[(pe + step) % pes];
      if (to != nullptr) to[i] = value;
    }
  });
  // Peers beyond the node hear of it by their puts.
  __syncthreads();
  for (int peer = threadIdx.x; peer < pes; peer += blockDim.x) {
    if (peer == pe || own_slot_at[peer] == nullptr) continue;
    __threadfence_system();
    nvshmemx_signal_op(signal_from(signals, pe), stage, NVSHMEM_SIGNAL_SET, peer);
  }
  wait_for_all(signals, stage);
  if (has_put) {
    // The output may be the source of these puts.
    finish();
    __syncthreads();
  }
  for_each(slice.count, [&](uint64_t i) {
    Vector<T> total = pe == 0 ? in[i] : slot[i];
    for (int other = 1; other < pes; ++other) {
      total = sum(total, other == pe ? in[i] : slot[other * vectors + i]);
    }
    out[i] = total;
  });
}

// Every PE adds one part of the array, which it loads from all, and stores the sum to all: in
// place, and each byte crosses the links once in each direction. `buffer` is symmetric and every
// PE must be reached by nvshmem_ptr. A call uses two stages.
template <typename T>
__global__ void two_shot(T* buffer, uint64_t* signals, uint64_t vectors, uint64_t stage) {
  __shared__ Vector<T>* buffer_at[kPesMax];
  const int pes = nvshmem_n_pes();
  const Slice slice = own_slice(vectors, pes, nvshmem_my_pe());
  for (int peer = threadIdx.x; peer < pes; peer += blockDim.x) {
    auto* const part = reinterpret_cast<Vector<T>*>(buffer) + slice.first;
    buffer_at[peer] = static_cast<Vector<T>*>(nvshmem_ptr(part, peer));
  }
  signal_all(signals, stage + 1);
  wait_for_all(signals, stage + 1);
  if (pes == 2) {
    // Two pointers that a compiler sees: it makes vector instructions of the loop.
    const Vector<T>* const first = buffer_at[0];
    const Vector<T>* const second = buffer_at[1];
    Vector<T>* const here = buffer_at[nvshmem_my_pe()];
    Vector<T>* const there = buffer_at[1 - nvshmem_my_pe()];
    for_each(slice.count, [&](uint64_t i) {
      const Vector<T> total = sum(first[i], second[i]);
      here[i] = total;
      there[i] = total;
    });
  } else {
    for_each(slice.count, [&](uint64_t i) {
      Vector<T> total = buffer_at[0][i];
      for (int peer = 1; peer < pes; ++peer) total = sum(total, buffer_at[peer][i]);
      for (int peer = 0; peer < pes; ++peer) buffer_at[peer][i] = total;
    });
  }
  signal_all(signals, stage + 2);
  wait_for_all(signals, stage + 2);
}

}  // namespace penny
