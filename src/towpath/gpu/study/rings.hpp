// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/machine.hpp"

// All-reduce by all GPUs of a machine, as handwritten kernels of puts with signals.

namespace towpath::gpu::study {

enum class RingKernel : std::uint8_t {
  ring,         // in chunks: reduce-scatter, then all-gather
  simple_ring,  // the whole buffer goes along the ring twice: reduced, then broadcast
};

struct RingOptions {
  RingKernel kernel = RingKernel::ring;
  std::uint64_t size_bytes = 0;
  int threads = 512;          // of a block
  int bytes_per_thread = 16;  // per send of a block and thread
  // One ring over all GPUs in the order of their numbers, or one ring for each GPU of a host, two
  // for each pair of neighbors. These cross between hosts at the GPUs of the pair, from even hosts
  // at the first GPU and from odd hosts at the second, and every second ring runs in the opposite
  // direction.
  bool alternates = false;
};

// The GPUs of a ring, in its order.
std::vector<int> ring_order(const machine::Machine& machine, bool alternates, int ring);

// The time of the slowest kernel. Throws std::invalid_argument as exchange_time() does.
Time all_reduce_time(std::shared_ptr<const machine::Machine> machine, const RingOptions& options);

}  // namespace towpath::gpu::study
