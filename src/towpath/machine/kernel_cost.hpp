// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"

// Costs of a GPU for kernels programmed thread by thread: residency limits, memory latencies, and
// device calls of communication libraries. ProtocolCost in machine.hpp is a coarser model of the
// thread blocks of a collective library.

namespace towpath::machine {

struct KernelCost {
  // Residency.
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int blocks_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;
  int shared_memory_kib = 0;

  // Memory.
  Time memory_latency{};
  Time peer_latency{};
  Rate memory_rate{};
  Rate multiprocessor_rate{};
  Time warp_access{};
  int loads_in_flight = 0;

  // Calls.
  int put_loads_in_flight = 0;
  Time thread_put_overhead{};
  Time warp_put_overhead{};
  Time block_put_overhead{};
  Time signal{};
  Time fence{};
  Time poll{};
  Time barrier{};

  // Adapters.
  bool gpu_initiated_adapters = false;
  Time proxy_overhead{};
  Time proxy_message{};
  Time initiation_overhead{};
  int queue_pairs = 0;
  Rate queue_pair_rate{};
  Time queue_pair_message{};
  Time queue_pair_poll{};
};

}  // namespace towpath::machine
