// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/shared_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace towpath::os {

void leave_out_of_core_file(void* address, std::uint64_t size_bytes) {
  ::madvise(address, size_bytes, MADV_DONTDUMP);
}

namespace {

void* map_file(int file, std::uint64_t size_bytes) {
  void* const mapped =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (mapped != MAP_FAILED) leave_out_of_core_file(mapped, size_bytes);
  return mapped;
}

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer identifies memory by its address. In tests whose ranks are threads of one
// process, each memory is mapped once, until the last user unmaps it.
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

[[noreturn]] void throw_refused(const char* what, std::uint64_t size_bytes) {
  throw std::system_error(errno, std::generic_category(),
                          fmt::format("cannot {} {} bytes of shared memory", what, size_bytes));
}

}  // namespace

FileDescriptor create_shared_memory(const std::string& name, std::uint64_t size_bytes) {
  FileDescriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!file.is_open() || ::ftruncate(file.number(), static_cast<off_t>(size_bytes)) != 0) {
    throw_refused("create", size_bytes);
  }
  return file;
}

SharedMapping::SharedMapping(const FileDescriptor& file, std::uint64_t size_bytes)
    : size_bytes_(size_bytes) {
  void* const address = map(file.number(), size_bytes);
  if (address == MAP_FAILED) throw_refused("map", size_bytes);
  data_ = static_cast<std::byte*>(address);
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(other.size_bytes_) {}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) unmap(data_, size_bytes_);
}

}  // namespace towpath::os
