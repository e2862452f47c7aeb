// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/memory.hpp"

#include <sys/mman.h>

namespace towpath::transport::shm {
namespace {

constexpr std::uint64_t kControlBytes = 4096;
constexpr std::uint64_t kCacheLineBytes = 64;
// The heap starts where a huge page may.
constexpr std::uint64_t kHeapAlignment = 2 << 20;

}  // namespace

std::uint64_t MemoryLayout::heap_begin() const {
  const std::uint64_t end_of_words = kControlBytes + words * kCacheLineBytes;
  return (end_of_words + kHeapAlignment - 1) / kHeapAlignment * kHeapAlignment;
}

Memory::Memory(const os::FileDescriptor& file, const MemoryLayout& layout)
    : mapping_(file, layout.size_bytes()), heap_(mapping_.data() + layout.heap_begin()) {
  // Fewer page faults if the system allows it.
  ::madvise(heap_, layout.heap_bytes, MADV_HUGEPAGE);
}

std::atomic_ref<std::uint64_t> Memory::word(std::uint64_t index) const {
  std::byte* const place = mapping_.data() + kControlBytes + index * kCacheLineBytes;
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(place));
}

}  // namespace towpath::transport::shm
