// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "towpath/virtual_gpu/device/calls.hpp"
#include "towpath_gpu.h"

// Kernels of the program, and launches of them.

namespace towpath::virtual_gpu {

namespace abi = towpath_gpu;

// A kernel that runs: all its blocks.
struct Grid {
  abi::Launch launch;
  int device = 0;
  std::vector<Call> calls;         // of a library, which this kernel does
  std::function<void()> finished;  // called by the last block
  std::atomic<std::uint64_t> blocks_left = 0;

  std::uint64_t blocks() const {
    const abi::Index3& size = launch.configuration.grid;
    return std::uint64_t{size.x} * size.y * size.z;
  }
};

// The kernel at an address that the program took. Null if there is none.
const abi::Kernel* kernel_at(const void* function);

// A launch of it. The arguments are copied.
abi::Launch launch_of(const abi::Kernel& kernel, const abi::Configuration& configuration,
                      void** arguments);
// The same with all arguments in one buffer, each at the next multiple of its alignment.
abi::Launch launch_of_buffer(const abi::Kernel& kernel, const abi::Configuration& configuration,
                             void* buffer);

// The bytes of all __shared__ variables of the program.
std::uint64_t static_shared_bytes();

}  // namespace towpath::virtual_gpu
