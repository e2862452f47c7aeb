// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <utility>

#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/gpu/pe.hpp"

// The functions of a compiled source's table. Each finds its PE and, on the device, the block of
// the running thread. An exception on the device ends the run and the thread.

namespace towpath::gpu {

inline Pe& pe_of(void* self) { return *static_cast<Pe*>(self); }

// Calls function(block) for the running thread.
template <typename Function>
auto on_thread(void* self, Function function) -> decltype(function(std::declval<Block&>())) {
  Pe& pe = pe_of(self);
  if (pe.running_block == nullptr) {
    throw KernelError(
        KernelError::Kind::usage,
        "the host program called a function that only a kernel may call, such as __syncthreads");
  }
  try {
    return function(*pe.running_block);
  } catch (...) {
    pe.run().failure = std::current_exception();
  }
  pe.running_block->halt();
}

// The loads and stores that the compiler reports.
void fill_accesses(abi::Table& table);

}  // namespace towpath::gpu
