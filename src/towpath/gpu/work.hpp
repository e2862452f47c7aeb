// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/base/units.hpp"
#include "towpath/machine/kernel_cost.hpp"
#include "towpath/machine/machine.hpp"

// The memory accesses of the threads of a block between two of its calls, and their duration on a
// described GPU. A block is limited by the bytes that its threads keep in flight, by the rate of
// its multiprocessor, which resident blocks share, and by the memory behind it.

namespace towpath::gpu {

// Loads or stores of one kind. An access is one instruction of one thread.
struct Accesses {
  std::uint64_t count = 0;           // of all threads
  std::uint64_t bytes = 0;           // of all threads
  std::uint64_t most_of_thread = 0;  // maximum over threads
};

struct Work {
  int threads = 0;                    // of the block
  Accesses loads{};                   // from the memory of the GPU
  Accesses stores{};                  // to it
  Accesses peer_loads{};              // from another GPU's memory, by address
  Accesses peer_stores{};             // to it
  std::uint64_t shared_accesses = 0;  // to the block's shared memory, maximum over threads
  std::uint64_t barriers = 0;         // of all threads of the block
};

// The load on the GPU during the block's work, and its links to the GPUs of its host.
struct Residency {
  int blocks_on_multiprocessor = 1;
  int busy_multiprocessors = 1;
  Rate peer_rate{};  // of all these links in one direction, zero: no limit
};

// Duration of the work of the block's threads. Zero without work.
//
// Loads wait: a thread issues its loads in groups of KernelCost::loads_in_flight, each of which
// takes the latency of the memory. Stores are posted. In addition, all accesses pass the
// multiprocessor, warp by warp and byte by byte, and their bytes pass the memory, or the links to
// peers: loads in one direction, stores in the other.
Time duration(const Work& work, const Residency& residency, const machine::KernelCost& cost);

// The costs of kernels on a machine. Throws std::invalid_argument if it has none.
const machine::KernelCost& kernel_cost(const machine::Machine& machine);

// Resources of a multiprocessor that a block needs.
struct BlockShape {
  int threads = 1;
  int registers_per_thread = 32;
  std::uint64_t shared_bytes = 0;
};

// Number of such blocks that one multiprocessor holds.
int resident_blocks(const BlockShape& shape, const machine::KernelCost& cost);

inline constexpr int kWarpThreads = 32;

// Number of warps.
constexpr int warps_of(int threads) { return (threads + kWarpThreads - 1) / kWarpThreads; }

}  // namespace towpath::gpu
