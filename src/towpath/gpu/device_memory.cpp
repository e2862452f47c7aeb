// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/device_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "towpath/os/shared_memory.hpp"

namespace towpath::gpu {

DeviceMemory::DeviceMemory(MemoryMap& map) : map_(map), ranges_(kGapBytes, kBytes, kGapBytes) {
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  os::leave_out_of_core_file(mapped, kBytes);
  bytes_ = static_cast<std::byte*>(mapped);
}

DeviceMemory::~DeviceMemory() { ::munmap(bytes_, kBytes); }

void DeviceMemory::release_oldest() {
  ranges_.release(freed_.front());
  freed_.pop_front();
}

void* DeviceMemory::allocate(std::uint64_t size_bytes, MemoryKind kind, const abi::Site& site) {
  if (size_bytes > kBytes) return nullptr;
  std::uint64_t gap = std::clamp(size_bytes, kGapBytes, kGapBytesMax);
  while (true) {
    try {
      std::byte* const address = bytes_ + ranges_.allocate(size_bytes + gap);
      map_.add({reinterpret_cast<std::uintptr_t>(address), size_bytes, kind, site, {}});
      return address;
    } catch (const std::bad_alloc&) {
      if (freed_.empty() && gap == kGapBytes) return nullptr;
      if (freed_.empty()) gap = kGapBytes;
      while (!freed_.empty()) release_oldest();
    }
  }
}

bool DeviceMemory::free(void* address, const abi::Site& site) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if (!range().contains(number) || !map_.free(number, site)) return false;
  freed_.push_back(number - range().begin);
  if (freed_.size() > kFreedMax) release_oldest();
  return true;
}

}  // namespace towpath::gpu
