// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/put.hpp"

#include <algorithm>
#include <cstring>

#include "towpath/transport/reduction.hpp"

namespace towpath::transport::shm {

namespace {

// A reduction that is also put reads its result while it is still in the cache.
constexpr std::uint64_t kBlockBytes = 64 << 10;

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

}  // namespace towpath::transport::shm
