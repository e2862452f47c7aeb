// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vector.cuh"

// Where a PE sits in a ring. PEs of a node have consecutive numbers, and every node has as many.
//
// One ring goes through the PEs in the order of their numbers, and crosses from node to node by one
// adapter. With several, rings 2i and 2i+1 cross at PEs 2i and 2i+1 of the nodes, so that each
// adapter carries one of them. A ring enters an even node at PE 2i+1, goes up through all of it and
// leaves at PE 2i; the next node it enters at PE 2i, goes down, and leaves at PE 2i+1: a
// rail-optimised network is crossed on one leaf. Odd rings go the same way backwards. The way from
// the last of an odd number of nodes to the first one crosses rails.

namespace penny {

struct Seat {
  int position;
  int next;      // the PE that this one sends to
  int previous;  // the PE that it receives from
};

// The PE at a position of a ring, and the position of a PE: each undoes the other.
__host__ __device__ inline int pe_at(int position, int ring, int pes_per_node) {
  const int node = position / pes_per_node;
  const int step = position % pes_per_node;
  const int first = ring / 2 * 2;
  const int place = node % 2 == 0 ? first + 1 + step : first - step + pes_per_node;
  return node * pes_per_node + place % pes_per_node;
}
__host__ __device__ inline int position_of(int pe, int ring, int pes_per_node) {
  const int node = pe / pes_per_node;
  const int place = pe % pes_per_node;
  const int first = ring / 2 * 2;
  const int step = node % 2 == 0 ? place - first - 1 + pes_per_node : first - place + pes_per_node;
  return node * pes_per_node + step % pes_per_node;
}

__host__ __device__ inline Seat seat_in_one_ring(int pe, int pes) {
  return {pe, (pe + 1) % pes, (pe + pes - 1) % pes};
}

// A seat in ring `ring` of several.
__host__ __device__ inline Seat seat_in_ring(int pe, int pes, int pes_per_node, int ring) {
  const int position = position_of(pe, ring, pes_per_node);
  const int next = pe_at((position + 1) % pes, ring, pes_per_node);
  const int previous = pe_at((position + pes - 1) % pes, ring, pes_per_node);
  if (ring % 2 == 0) return {position, next, previous};
  return {pes - 1 - position, previous, next};
}

// The running block's: its ring is blockIdx.y.
__device__ inline Seat own_seat(int pes_per_node) {
  const int pe = nvshmem_my_pe(), pes = nvshmem_n_pes();
  if (gridDim.y == 1) return seat_in_one_ring(pe, pes);
  return seat_in_ring(pe, pes, pes_per_node, static_cast<int>(blockIdx.y));
}

}  // namespace penny
