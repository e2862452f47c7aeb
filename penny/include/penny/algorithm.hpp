// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// The all-reduces of this library by name, and which of them is fastest for a size on a machine.

namespace penny {

enum class Algorithm : int { automatic, ring, vectorised_ring, simple_ring, one_shot, two_shot };
inline constexpr const char* kAlgorithmNames[] = {"automatic",   "ring",     "vectorised_ring",
                                                  "simple_ring", "one_shot", "two_shot"};

// How a kernel is launched.
struct Shape {
  Algorithm algorithm;
  int threads;  // of a block
  int blocks;   // of a ring, or of all
  int rings;    // 1, or one for each PE of a node
};

// Where the PEs are.
struct Place {
  int pes;
  int pes_per_node;
  bool is_host;  // PEs are processes that run on processors, not on GPUs
};

inline uint64_t divided_up(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

// Blocks of a part of the array, so that each thread has `packet_bytes` of it.
inline int blocks_for(uint64_t part_bytes, int threads, int packet_bytes, int blocks_max) {
  const uint64_t blocks = divided_up(part_bytes, uint64_t(threads) * packet_bytes);
  return blocks < 1 ? 1 : blocks > uint64_t(blocks_max) ? blocks_max : int(blocks);
}

// What is launched for a size. In one node `towpath bench penny` has one-shot ahead to 256 KiB on
// eight GPUs of dgx-h100, and two-shot from 512 KiB on; vLLM's custom all-reduce has the same limit
// there. Over two nodes the limit is the same: at it, one-shot is ahead of rings where GPUs hand
// puts to adapters, and a little behind by way of a proxy. Its threads put 64 bytes, because each
// put is work for a proxy. On processors of a host it is the one form that
// benchmarks/penny/all_reduce.py times.
inline Shape choose(uint64_t size_bytes, const Place& place) {
  const int nodes = place.pes / place.pes_per_node;
  const int rings = place.pes_per_node / 2 * 2;
  if (place.is_host) return {Algorithm::two_shot, 1, 1, 1};
  if (nodes == 1) {
    if (size_bytes <= 256u << 10) {
      return {Algorithm::one_shot, 512, blocks_for(size_bytes, 512, 16, 128), 1};
    }
    const uint64_t part = divided_up(size_bytes, place.pes);
    return {Algorithm::two_shot, 512, blocks_for(part, 512, 16, 264), 1};
  }
  if (size_bytes <= 256u << 10) {
    return {Algorithm::one_shot, 512, blocks_for(size_bytes, 512, 64, 32), 1};
  }
  const uint64_t part = divided_up(size_bytes, uint64_t(place.pes) * rings);
  return {Algorithm::vectorised_ring, 512, blocks_for(part, 512, 64, 64), rings < 2 ? 1 : rings};
}

}  // namespace penny
