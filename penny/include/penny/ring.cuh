// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ring_seat.cuh"

// All-reduce in rings: the array is cut into a chunk for each PE and ring. In the first n-1 steps
// chunks are sent on and added to, in the next n-1 the sums go round. gridDim.y is the number of
// rings. `buffer` is symmetric or registered; `destination` and `signals` are symmetric, and the
// destination is not that of the call before: a PE may be one call ahead of the next one.
//
// The last stage of the call before is `stage`; a call uses the 2(n-1) that follow.

namespace penny {

// The running block's way round: it sends a chunk on, waits for the next one and calls
// take(slice, is_sum) for it; `is_sum` is true while chunks are added to. `operation` says how
// signals change their words.
template <typename T, typename Take>
__device__ inline void go_round(T* destination, const T* buffer, uint64_t* signals,
                                uint64_t vectors, int pes_per_node, uint64_t stage, int operation,
                                const Take& take) {
  const int pes = nvshmem_n_pes();
  const Seat seat = own_seat(pes_per_node);
  auto* const to = reinterpret_cast<Vector<T>*>(destination);
  const auto* const from = reinterpret_cast<const Vector<T>*>(buffer);
  uint64_t* const sent = signal_from(signals, nvshmem_my_pe());
  uint64_t* const received = signal_from(signals, seat.previous);
  int send_chunk = seat.position;
  for (int step = 0; step < 2 * (pes - 1); ++step) {
    const int receive_chunk = (send_chunk + pes - 1) % pes;
    const Slice out = own_slice(vectors, pes, send_chunk);
    ++stage;
    send(to + out.first, from + out.first, out.count, sent,
         operation == NVSHMEM_SIGNAL_ADD ? 1 : stage, operation, seat.next);
    wait_for(received, stage);
    take(own_slice(vectors, pes, receive_chunk), step < pes - 1);
    send_chunk = receive_chunk;
  }
  finish();
}

// Element by element, each signal added to what is there. Every call on the same signals must have
// the same grid, since words count the puts of a block; `signals` are used by nothing else.
template <typename T>
__global__ void ring(T* destination, T* buffer, uint64_t* signals, uint64_t vectors,
                     int pes_per_node, uint64_t stage) {
  go_round(destination, buffer, signals, vectors, pes_per_node, stage, NVSHMEM_SIGNAL_ADD,
           [&](const Slice& in, bool is_sum) {
             const uint64_t first = in.first * Vector<T>::size;
             const uint64_t count = in.count * Vector<T>::size;
             if (is_sum) {
               for_each(count, [&](uint64_t i) {
                 buffer[first + i] = static_cast<T>(static_cast<float>(buffer[first + i]) +
                                                    static_cast<float>(destination[first + i]));
               });
             } else {
               for_each(count, [&](uint64_t i) { buffer[first + i] = destination[first + i]; });
             }
           });
}

// By 16 bytes, each signal set to its stage: an addition would be an atomic operation, and nobody
// else changes the word.
template <typename T>
__global__ void vectorised_ring(T* destination, T* buffer, uint64_t* signals, uint64_t vectors,
                                int pes_per_node, uint64_t stage) {
  auto* const from = reinterpret_cast<Vector<T>*>(destination);
  auto* const own = reinterpret_cast<Vector<T>*>(buffer);
  go_round(destination, buffer, signals, vectors, pes_per_node, stage, NVSHMEM_SIGNAL_SET,
           [&](const Slice& in, bool is_sum) {
             if (is_sum) {
               for_each(in.count, [&](uint64_t i) {
                 own[in.first + i] = sum(own[in.first + i], from[in.first + i]);
               });
             } else {
               for_each(in.count, [&](uint64_t i) { own[in.first + i] = from[in.first + i]; });
             }
           });
}

// Few, large steps for small arrays: the whole of it is summed along the ring, and the sum goes
// round. Each PE sends twice at most. A call uses two stages.
template <typename T>
__global__ void simple_ring(T* destination, T* buffer, uint64_t* signals, uint64_t vectors,
                            int pes_per_node, uint64_t stage) {
  const int pes = nvshmem_n_pes();
  const Seat seat = own_seat(pes_per_node);
  const Slice slice = own_slice(vectors, 1, 0);
  auto* const from = reinterpret_cast<Vector<T>*>(destination) + slice.first;
  auto* const own = reinterpret_cast<Vector<T>*>(buffer) + slice.first;
  uint64_t* const sent = signal_from(signals, nvshmem_my_pe());
  uint64_t* const received = signal_from(signals, seat.previous);
  if (pes == 1) return;
  // The last PE has the sum when it has added its own part, and starts the second round.
  const bool is_last = seat.position == pes - 1;
  if (seat.position > 0) {
    wait_for(received, stage + 1);
    for_each(slice.count, [&](uint64_t i) { own[i] = sum(own[i], from[i]); });
  }
  send(from, own, slice.count, sent, stage + (is_last ? 2 : 1), NVSHMEM_SIGNAL_SET, seat.next);
  if (is_last) return finish();
  wait_for(received, stage + 2);
  if (seat.position < pes - 2) {
    send(from, from, slice.count, sent, stage + 2, NVSHMEM_SIGNAL_SET, seat.next);
  }
  for_each(slice.count, [&](uint64_t i) { own[i] = from[i]; });
  finish();
}

}  // namespace penny
