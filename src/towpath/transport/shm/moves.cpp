// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/moves.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "towpath/transport/reduction.hpp"

namespace towpath::transport::shm {

namespace {

// A combined block is stored or read again while it is still in the cache.
constexpr std::uint64_t kBlockBytes = 64 << 10;

// Calls visit(address of the operand at that rank).
template <typename Visit>
void for_each_place(const std::vector<Location>& locations,
                    const std::function<std::byte*(int rank)>& heap_of, const Visit& visit) {
  for (const Location& location : locations) {
    if (location.group.empty()) visit(heap_of(location.rank) + location.offset);
    for (const int rank : location.group) visit(heap_of(rank) + location.offset);
  }
}

}  // namespace

void carry(const Move& move, std::byte* heap) {
  if (!move.has_source || move.size_bytes == 0) return;
  std::byte* const remote = heap == nullptr ? nullptr : heap + move.remote;
  std::byte* const local = move.has_destination ? move.destination : nullptr;
  if (!move.has_addend) {
    if (local != nullptr) std::memmove(local, move.source, move.size_bytes);
    if (remote != nullptr) std::memmove(remote, move.source, move.size_bytes);
    return;
  }
  if (local == nullptr || remote == nullptr) {
    std::byte* const result = local == nullptr ? remote : local;
    if (result == nullptr) return;
    reduce(result, move.source, move.addend, move.size_bytes, move.reduction);
    return;
  }
  for (std::uint64_t done = 0; done < move.size_bytes; done += kBlockBytes) {
    const std::uint64_t size = std::min(kBlockBytes, move.size_bytes - done);
    reduce(local + done, move.source + done, move.addend + done, size, move.reduction);
    std::memcpy(remote + done, local + done, size);
  }
}

void raise(const Move& move, std::atomic_ref<std::uint64_t> word) {
  if (move.signal_operation == SignalOperation::set) {
    word.store(move.signal_value, std::memory_order_release);
  } else {
    word.fetch_add(move.signal_value, std::memory_order_release);
  }
}

void check_direct(const DirectMove& move, const SymmetricHeap& heap, int ranks) {
  for (const auto* locations : {&move.sources, &move.destinations}) {
    for (const Location& location : *locations) {
      heap.check_range(location.offset, move.size_bytes);
      if (location.group.empty()) check_rank(location.rank, ranks);
      for (const int rank : location.group) check_rank(rank, ranks);
    }
  }
  for (const Raise& raise : move.raises) {
    check_rank(raise.rank, ranks);
    heap.check_signal(raise.signal);
  }
}

void carry(const DirectMove& move, const std::function<std::byte*(int rank)>& heap_of) {
  std::vector<std::byte> block(std::min(kBlockBytes, move.size_bytes));
  for (std::uint64_t from = 0; from < move.size_bytes; from += kBlockBytes) {
    const std::uint64_t size = std::min(kBlockBytes, move.size_bytes - from);
    bool is_first = true;
    for_each_place(move.sources, heap_of, [&](const std::byte* source) {
      if (is_first) {
        std::memcpy(block.data(), source + from, size);
      } else {
        reduce(block.data(), block.data(), source + from, size, move.reduction);
      }
      is_first = false;
    });
    for_each_place(move.destinations, heap_of, [&](std::byte* destination) {
      std::memcpy(destination + from, block.data(), size);
    });
  }
}

}  // namespace towpath::transport::shm
