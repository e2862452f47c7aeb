// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "towpath/gpu/include/towpath_gpu.h"

namespace towpath::gpu {

namespace abi = towpath_gpu;

using abi::MemoryKind;

// An allocation, and the calls that made and freed it.
struct Allocation {
  std::uintptr_t begin = 0;
  std::uint64_t size_bytes = 0;
  MemoryKind kind = MemoryKind::device;
  abi::Site made{};
  abi::Site freed{};  // without a call while it is in use

  bool holds(std::uintptr_t address, std::uint64_t size) const {
    return address >= begin && size <= size_bytes && address - begin <= size_bytes - size;
  }
  // "the 4096 bytes of cudaMalloc at FILE:LINE"
  std::string describe() const;
};

// The memory that kernels of a PE may use, by address. Freed allocations are kept for a while, so
// that errors can name them.
class MemoryMap {
 public:
  void add(const Allocation& allocation);
  // False if no allocation in use begins there.
  bool free(std::uintptr_t begin, const abi::Site& site);
  // The allocation in use that contains an address. Null if there is none.
  const Allocation* find(std::uintptr_t address) const;
  // The freed allocation that contained the address last, otherwise the nearest one in use within
  // the range. Null if there is none.
  const Allocation* nearest(std::uintptr_t address, const abi::Range& within) const;

 private:
  static constexpr std::size_t kFreedMax = 4096;

  std::map<std::uintptr_t, Allocation> used_;
  std::deque<Allocation> freed_;
  mutable const Allocation* last_ = nullptr;  // that was found
};

}  // namespace towpath::gpu
