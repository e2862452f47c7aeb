// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/mapped_memory.hpp"

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace towpath::transport::shm {

namespace {

constexpr std::uint64_t kSignalBytes = 8;

std::atomic_ref<std::uint64_t> signal_at(std::byte* place) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(place));
}

// Applies the operation to the word atomically. Returns the old value.
template <typename Word>
std::uint64_t changed(std::byte* place, const Access& access) {
  std::atomic_ref word(*reinterpret_cast<Word*>(place));
  if (access.operation == AtomicOperation::fetch) return word.load(std::memory_order_acquire);
  Word before = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(before, static_cast<Word>(changed_word(access, before)),
                                     std::memory_order_acq_rel, std::memory_order_relaxed)) {
    continue;
  }
  return before;
}

}  // namespace

MappedMemory::MappedMemory(int rank, int ranks, const SymmetricHeap& heap, MappedGroup group)
    : rank_(rank), ranks_(ranks), heap_(heap), group_(std::move(group)) {}

void MappedMemory::start(Access& access) {
  group_.check();
  check_access(access, heap_, ranks_);
  const bool copies = access.kind == AccessKind::put || access.kind == AccessKind::get;
  if (copies && access.size_bytes > 0 && access.local == nullptr) {
    throw std::invalid_argument("a put or get of mapped memory needs a local address");
  }
  switch (access.kind) {
    case AccessKind::put: put(access); break;
    case AccessKind::get:
      std::atomic_thread_fence(std::memory_order_acquire);
      std::memmove(access.local, group_.heap_of(access.peer) + access.remote, access.size_bytes);
      break;
    case AccessKind::atomic: change(access); break;
    case AccessKind::fence:
    case AccessKind::thread_fence: std::atomic_thread_fence(std::memory_order_seq_cst); break;
  }
  const auto visible = access.visible;  // `done` may end the access if there is no other callback
  if (access.done != nullptr) access.done(access);
  if (visible != nullptr) visible(access);
}

void MappedMemory::put(const Access& access) {
  std::byte* const heap = group_.heap_of(access.peer);
  if (access.size_bytes > 0) {
    std::memmove(heap + access.remote, access.local, access.size_bytes);
  }
  if (access.has_signal) {
    const std::atomic_ref<std::uint64_t> word = signal_at(heap + access.signal_at);
    if (access.signal_operation == SignalOperation::set) {
      word.store(access.signal_value, std::memory_order_release);
    } else {
      word.fetch_add(access.signal_value, std::memory_order_release);
    }
  }
  if (access.peer != rank_) return group_.wake(access.peer);
  if (access.size_bytes > 0) look(access.remote, access.size_bytes);
  if (access.has_signal) look(access.signal_at, kSignalBytes);
}

void MappedMemory::change(Access& access) {
  std::byte* const place = group_.heap_of(access.peer) + access.remote;
  const std::uint64_t before = access.size_bytes == 4 ? changed<std::uint32_t>(place, access)
                                                      : changed<std::uint64_t>(place, access);
  access.result = before;
  if (access.peer != rank_) return group_.wake(access.peer);
  look(access.remote, access.size_bytes);
}

void MappedMemory::wait(MemoryWait& wait) {
  group_.check();
  if (!wait.holds(wait)) return waits_.add(wait);
  std::atomic_thread_fence(std::memory_order_acquire);
  wait.ready(wait);
}

void MappedMemory::cancel(MemoryWait& wait) {
  if (wait.is_waiting) waits_.remove(wait);
}

void MappedMemory::stored(Offset first, std::uint64_t size_bytes) { look(first, size_bytes); }

bool MappedMemory::look(Offset first, std::uint64_t size_bytes) {
  return waits_.look(first, size_bytes, [](MemoryWait& wait) {
    std::atomic_thread_fence(std::memory_order_acquire);
    wait.ready(wait);
  });
}

std::byte* MappedMemory::reach(int peer, Offset offset) {
  heap_.check_range(offset, 1);
  if (peer < 0 || peer >= ranks_) return nullptr;
  return group_.heap_of(peer) + offset;
}

}  // namespace towpath::transport::shm
