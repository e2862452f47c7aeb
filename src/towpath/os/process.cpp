// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/process.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace towpath::os {

int count_cores(std::span<const pid_t> processes) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const pid_t process : processes) {
    cpu_set_t own;
    if (::sched_getaffinity(process, sizeof(own), &own) == 0) CPU_OR(&all, &all, &own);
  }
  return std::max(CPU_COUNT(&all), 1);
}

std::optional<std::uint64_t> last_level_cache_bytes() {
  const int core = ::sched_getcpu();
  std::optional<std::uint64_t> largest;
  for (int level = 0;; ++level) {
    std::ifstream file(
        fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/size", core, level));
    std::uint64_t kibibytes = 0;  // format "32768K"
    if (!(file >> kibibytes)) return largest;
    largest = std::max(largest.value_or(0), kibibytes << 10);
  }
}

bool is_stopped(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // Format "PID (NAME) STATE ...". The name may contain any character.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  const char state = text[name_end + 2];
  return state == 'T' || state == 't';
}

bool is_mapped(const void* address, std::uint64_t size_bytes) {
  constexpr std::uint64_t kPagesPerCall = 4096;
  std::array<unsigned char, kPagesPerCall> pages;
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = number + size_bytes;
  if (end < number) return false;
  for (std::uintptr_t at = number / page_bytes * page_bytes; at < end;) {
    const std::uint64_t size = std::min(end - at, kPagesPerCall * page_bytes);
    if (::mincore(reinterpret_cast<void*>(at), size, pages.data()) == 0) {
      at += size;
    } else if (errno != EAGAIN) {
      return false;
    }
  }
  return true;
}

bool read_process_memory(pid_t process, const std::byte* there, std::byte* here,
                         std::uint64_t size_bytes) {
  std::uint64_t done = 0;
  while (done < size_bytes) {
    const iovec to{here + done, size_bytes - done};
    const iovec from{const_cast<std::byte*>(there) + done, size_bytes - done};
    const ssize_t read = ::process_vm_readv(process, &to, 1, &from, 1, 0);
    if (read <= 0) return false;
    done += static_cast<std::uint64_t>(read);
  }
  return true;
}

namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

[[noreturn]] void refuse(int code) {
  throw std::system_error(code, std::generic_category(), "a page that a fork wipes");
}

}  // namespace

ForkMark::ForkMark()
    : page_(::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0)) {
  if (page_ == MAP_FAILED) refuse(errno);
  if (::madvise(page_, page_bytes(), MADV_WIPEONFORK) != 0) {
    const int code = errno;
    ::munmap(page_, page_bytes());
    refuse(code);
  }
  *static_cast<char*>(page_) = 1;
}

ForkMark::~ForkMark() { ::munmap(page_, page_bytes()); }

}  // namespace towpath::os
