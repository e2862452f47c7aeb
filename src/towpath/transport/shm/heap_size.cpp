// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>

#include "towpath/transport/shm/shm_transport.hpp"

namespace towpath::transport::shm {
namespace {

constexpr std::uint64_t kHeapBytesMost = std::uint64_t{64} << 30;
constexpr std::uint64_t kBytesBesideHeap = 12 << 20;  // control page and signals

}  // namespace

// A process maps the heap of each rank, and its local one twice while it connects. Half of the
// address space is left to the program.
std::uint64_t default_heap_bytes(int ranks) {
  constexpr std::uint64_t kUnit = 2 << 20;
  std::uint64_t most = kHeapBytesMost;
  const auto limit = [&most](std::uint64_t file_bytes) {
    most = std::min(most, file_bytes - std::min(file_bytes, kBytesBesideHeap));
  };
  rlimit found{};
  if (::getrlimit(RLIMIT_AS, &found) == 0 && found.rlim_cur != RLIM_INFINITY) {
    limit(found.rlim_cur / 2 / (static_cast<std::uint64_t>(ranks) + 1));
  }
  if (::getrlimit(RLIMIT_FSIZE, &found) == 0 && found.rlim_cur != RLIM_INFINITY) {
    limit(found.rlim_cur);
  }
  return std::max(most / kUnit * kUnit, kUnit);
}

}  // namespace towpath::transport::shm
