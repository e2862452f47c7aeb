// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/gpu/memory_map.hpp"
#include "towpath/transport/symmetric_heap.hpp"

namespace towpath::gpu {

// The memory of cudaMalloc. There are gaps between allocations, and freed memory is reused late, so
// that a wrong access is not inside another allocation.
class DeviceMemory {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{64} << 30;  // of the GPU

  // Notes allocations in the map, which outlives this.
  explicit DeviceMemory(MemoryMap& map);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Null if there is not enough memory.
  void* allocate(std::uint64_t size_bytes, MemoryKind kind, const abi::Site& site);
  // False if nothing was allocated there.
  bool free(void* address, const abi::Site& site);
  abi::Range range() const { return {reinterpret_cast<std::uintptr_t>(bytes_), kBytes}; }

 private:
  static constexpr std::uint64_t kGapBytes = 256;
  static constexpr std::uint64_t kGapBytesMax = 1 << 20;
  // Freed allocations that have not been reused.
  static constexpr std::size_t kFreedMax = 1024;

  void release_oldest();

  MemoryMap& map_;
  std::byte* bytes_;
  transport::RangeAllocator ranges_;
  std::deque<std::uint64_t> freed_;
};

}  // namespace towpath::gpu
