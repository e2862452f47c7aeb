// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/remote_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/transport/symmetric_heap.hpp"

namespace towpath::transport {

namespace {

constexpr std::uint64_t kSignalBytes = 8;

void check_word(const SymmetricHeap& heap, Offset at, std::uint64_t size_bytes) {
  heap.check_range(at, size_bytes);
  if (at % size_bytes == 0) return;
  throw std::invalid_argument(fmt::format(
      "a word of {} bytes at offset {} is not aligned; its offset must be a multiple of {}",
      size_bytes, at, size_bytes));
}

}  // namespace

std::uint64_t changed_word(const Access& access, std::uint64_t before) {
  switch (access.operation) {
    case AtomicOperation::fetch: return before;
    case AtomicOperation::set:
    case AtomicOperation::swap: return access.operand;
    case AtomicOperation::add: return before + access.operand;
    case AtomicOperation::bit_and: return before & access.operand;
    case AtomicOperation::bit_or: return before | access.operand;
    case AtomicOperation::bit_xor: return before ^ access.operand;
    case AtomicOperation::compare_swap: return before == access.expected ? access.operand : before;
  }
  throw std::invalid_argument(
      fmt::format("there is no atomic operation {}", static_cast<int>(access.operation)));
}

void check_access(const Access& access, const SymmetricHeap& heap, int ranks) {
  if (access.kind == AccessKind::fence || access.kind == AccessKind::thread_fence) return;
  check_rank(access.peer, ranks);
  if (access.kind == AccessKind::atomic) {
    if (access.size_bytes != 4 && access.size_bytes != 8) {
      throw std::invalid_argument(fmt::format(
          "an atomic operation on {} bytes is not possible; use 4 or 8 bytes", access.size_bytes));
    }
    check_word(heap, access.remote, access.size_bytes);
    return;
  }
  if (access.size_bytes > 0) heap.check_range(access.remote, access.size_bytes);
  if (access.has_signal) check_word(heap, access.signal_at, kSignalBytes);
}

void MemoryWaits::add(MemoryWait& wait) {
  wait.is_waiting = true;
  places_.push_back({wait.first, wait.first + wait.size_bytes, &wait});
}

void MemoryWaits::remove(MemoryWait& wait) {
  const auto place = std::find_if(places_.begin(), places_.end(),
                                  [&](const Place& each) { return each.wait == &wait; });
  if (place == places_.end()) return;
  if (static_cast<std::size_t>(place - places_.begin()) < next_) --next_;
  places_.erase(place);
  wait.is_waiting = false;
}

std::string MemoryWaits::pending(int rank) const {
  std::string lines;
  for (const Place& place : places_) {
    const MemoryWait* const wait = place.wait;
    lines += fmt::format("rank {} waits for {}\n", rank,
                         wait->describe != nullptr
                             ? wait->describe(*wait)
                             : fmt::format("{} bytes at offset {}", wait->size_bytes, wait->first));
  }
  return lines;
}

}  // namespace towpath::transport
