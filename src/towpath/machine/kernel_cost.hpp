// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"
#include "towpath/machine/parameters.hpp"

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

inline constexpr Parameter<KernelCost> kKernelParameters[] = {
    {"multiprocessors", &KernelCost::multiprocessors, between(1, 4096), "of a GPU"},
    {"threads_per_multiprocessor", &KernelCost::threads_per_multiprocessor, kCount,
     "threads resident on a multiprocessor at most"},
    {"blocks_per_multiprocessor", &KernelCost::blocks_per_multiprocessor, kCount,
     "thread blocks resident on a multiprocessor at most"},
    {"registers_per_multiprocessor", &KernelCost::registers_per_multiprocessor, between(1, 1 << 24),
     "registers of 32 bits that its resident threads share"},
    {"shared_memory_kib", &KernelCost::shared_memory_kib, kCount,
     "shared memory of a multiprocessor, in KiB, that its resident blocks divide"},
    {"memory_latency_ns", &KernelCost::memory_latency, kDurationNs,
     "a load from the GPU's own memory"},
    {"peer_latency_ns", &KernelCost::peer_latency, kDurationNs,
     "a load from the memory of another GPU of the host"},
    {"memory_rate_gb_per_s", &KernelCost::memory_rate, kRateGbPerS,
     "loads and stores of all multiprocessors together"},
    {"multiprocessor_rate_gb_per_s", &KernelCost::multiprocessor_rate, kRateGbPerS,
     "loads, and stores, of a multiprocessor"},
    {"warp_access_ns", &KernelCost::warp_access, kDurationNs,
     "time for which a load or store of 32 threads occupies its multiprocessor, however few bytes "
     "it moves"},
    {"loads_in_flight", &KernelCost::loads_in_flight, between(1, 1024),
     "loads that a thread of a kernel waits for together"},
    {"put_loads_in_flight", &KernelCost::put_loads_in_flight, between(1, 1024),
     "loads of 16 bytes that a thread of the library's own copy loop waits for together"},
    {"thread_put_overhead_ns", &KernelCost::thread_put_overhead, kDurationNs,
     "starting a put or a get by one thread"},
    {"warp_put_overhead_ns", &KernelCost::warp_put_overhead, kDurationNs,
     "starting a put or a get by 32 threads together"},
    {"block_put_overhead_ns", &KernelCost::block_put_overhead, kDurationNs,
     "starting a put or a get by a whole block"},
    {"signal_ns", &KernelCost::signal, kDurationNs,
     "starting a signal or an atomic operation that is not part of a put"},
    {"fence_ns", &KernelCost::fence, kDurationNs,
     "a fence of one warp, on top of waiting for its stores; the library's fences of the warps of "
     "a "
     "multiprocessor come one after the other, __threadfence_system of several overlaps"},
    {"poll_ns", &KernelCost::poll, kDurationNs,
     "from the moment at which a word has its value until the threads that wait for it go on"},
    {"barrier_ns", &KernelCost::barrier, kDurationNs, "a barrier of the threads of a block"},
    {"gpu_initiated_adapters", &KernelCost::gpu_initiated_adapters, kYesOrNo,
     "threads of the GPU hand their puts to an adapter themselves, instead of to a CPU's proxy",
     Form::flag},
    {"proxy_overhead_ns", &KernelCost::proxy_overhead, kDurationNs,
     "what a put to another host takes beyond its links and its bytes where a proxy hands it over"},
    {"proxy_message_ns", &KernelCost::proxy_message, kDurationNs,
     "time for which a put or a signal occupies the proxy of a GPU"},
    {"initiation_overhead_ns", &KernelCost::initiation_overhead, kDurationNs,
     "what a put to another host takes beyond its links and its bytes where threads hand it over"},
    {"queue_pairs", &KernelCost::queue_pairs, between(1, 1024),
     "queue pairs of a GPU for each peer, where threads hand puts over; a proxy has one"},
    {"queue_pair_rate_gb_per_s", &KernelCost::queue_pair_rate, kRateGbPerS,
     "bytes that one queue pair moves"},
    {"queue_pair_message_ns", &KernelCost::queue_pair_message, kDurationNs,
     "time for which a put or a signal occupies its queue pair besides its bytes, where threads "
     "hand it over"},
    {"queue_pair_poll_ns", &KernelCost::queue_pair_poll, kDurationNs,
     "what a fence or quiet of one warp takes for each queue pair of the GPU, which it looks "
     "through one by one"},
};

}  // namespace towpath::machine
