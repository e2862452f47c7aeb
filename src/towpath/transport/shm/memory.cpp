// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace towpath::transport::shm {
namespace {

constexpr std::uint64_t kControlBytes = 4096;
constexpr std::uint64_t kCacheLineBytes = 64;
// The heap begins where a huge page may.
constexpr std::uint64_t kHeapAlignment = 2 << 20;

void* map_file(int file, std::uint64_t size_bytes) {
  return ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
}

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer knows memory by its address. Where it tests ranks that are threads of one
// process, each memory is mapped once, until the last of them unmaps it.
struct Mapping {
  std::pair<dev_t, ino_t> file;
  void* address;
  int users;
};
std::mutex mappings_mutex;
std::vector<Mapping> mappings;

void* map(int file, std::uint64_t size_bytes) {
  const std::lock_guard lock(mappings_mutex);
  struct stat status {};
  if (::fstat(file, &status) != 0) return MAP_FAILED;
  const std::pair key{status.st_dev, status.st_ino};
  for (Mapping& mapping : mappings) {
    if (mapping.file == key) return ++mapping.users, mapping.address;
  }
  void* address = map_file(file, size_bytes);
  if (address != MAP_FAILED) mappings.push_back({key, address, 1});
  return address;
}

void unmap(void* address, std::uint64_t size_bytes) {
  const std::lock_guard lock(mappings_mutex);
  for (auto mapping = mappings.begin(); mapping != mappings.end(); ++mapping) {
    if (mapping->address != address || --mapping->users > 0) continue;
    mappings.erase(mapping);
    ::munmap(address, size_bytes);
    return;
  }
}
#else
void* map(int file, std::uint64_t size_bytes) { return map_file(file, size_bytes); }
void unmap(void* address, std::uint64_t size_bytes) { ::munmap(address, size_bytes); }
#endif

}  // namespace

std::uint64_t MemoryLayout::heap_begin() const {
  const std::uint64_t end_of_words = kControlBytes + words * kCacheLineBytes;
  return (end_of_words + kHeapAlignment - 1) / kHeapAlignment * kHeapAlignment;
}

os::FileDescriptor create_memory(const MemoryLayout& layout) {
  os::FileDescriptor file(::memfd_create("towpath", MFD_CLOEXEC));
  if (!file.is_open() || ::ftruncate(file.number(), static_cast<off_t>(layout.size_bytes())) != 0) {
    throw std::system_error(
        errno, std::generic_category(),
        fmt::format("cannot create {} bytes of shared memory", layout.size_bytes()));
  }
  return file;
}

Memory::Memory(const os::FileDescriptor& file, const MemoryLayout& layout)
    : size_bytes_(layout.size_bytes()) {
  void* address = map(file.number(), size_bytes_);
  if (address == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(),
                            fmt::format("cannot map {} bytes of shared memory", size_bytes_));
  }
  base_ = static_cast<std::byte*>(address);
  heap_ = base_ + layout.heap_begin();
  // Fewer page faults where the system allows it; where it does not, nothing is lost.
  ::madvise(heap_, layout.heap_bytes, MADV_HUGEPAGE);
}

Memory::Memory(Memory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      heap_(other.heap_),
      size_bytes_(other.size_bytes_) {}

Memory::~Memory() {
  if (base_ != nullptr) unmap(base_, size_bytes_);
}

std::atomic_ref<std::uint64_t> Memory::word(std::uint64_t index) const {
  std::byte* place = base_ + kControlBytes + index * kCacheLineBytes;
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(place));
}

}  // namespace towpath::transport::shm
