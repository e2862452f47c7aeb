// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu/include/towpath_gpu.h"

namespace towpath::gpu {

namespace abi = towpath_gpu;

class Block;

// The fences of a block. In simulated time, threads that arrive together share one fence.
class Fences {
 public:
  explicit Fences(Block& block) : block_(block) {}

  // The running thread waits in nvshmem_fence or nvshmem_quiet.
  void fence(bool is_quiet, const abi::Site& site);
  // The running thread waits in __threadfence or __threadfence_system, for stores without the
  // library.
  void thread_fence(abi::FenceScope scope, const abi::Site& site);
  // All threads have run until they wait. Starts the fence that they wait in. A fence that ends
  // immediately makes threads ready, and the other fence then waits for them.
  void flush_library_fence();
  void flush_thread_fence();

 private:
  struct LibraryFence {
    std::vector<std::uint16_t> threads{};
    bool is_quiet = false;
    Time from{};
  };
  struct ThreadFence {
    std::vector<std::uint16_t> threads{};
    bool is_of_system = false;
    Time from{};
  };
  void start_library_fence();

  Block& block_;
  LibraryFence library_fence_;
  ThreadFence thread_fence_;
};

}  // namespace towpath::gpu
