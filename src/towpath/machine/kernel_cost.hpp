// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"

// What a GPU costs a kernel that is programmed thread by thread: what is resident on it, what its
// threads take to reach memory, and what the calls of a communication library take on the device.
// ProtocolCost in machine.hpp is the coarser account, of the thread blocks of a collective library.

namespace towpath::machine {

struct KernelCost {
  // What is resident.
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
