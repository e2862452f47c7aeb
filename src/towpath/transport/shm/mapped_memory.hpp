// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "towpath/transport/remote_memory.hpp"
#include "towpath/transport/symmetric_heap.hpp"

// Remote memory if every rank maps every heap: accesses are copies and atomic operations, complete
// when start() returns.
//
// Memory order: a signal is a release after its payload. An atomic operation acquires and releases.
// A wait that holds acquires before `ready`. Stores of a rank before it raised a signal or changed
// a word are therefore visible to the rank that waited for it. MemoryWait::holds runs while peers
// store: it reads words through std::atomic_ref, or as volatile.

namespace towpath::transport::shm {

// Callbacks into the group.
struct MappedGroup {
  std::function<std::byte*(int rank)> heap_of;
  std::function<void()> check;         // throws if the group cannot continue
  std::function<void(int rank)> wake;  // called for a rank with a changed heap
};

class MappedMemory final : public RemoteMemory {
 public:
  MappedMemory(int rank, int ranks, const SymmetricHeap& heap, MappedGroup group);

  void start(Access& access) override;
  void wait(MemoryWait& wait) override;
  void cancel(MemoryWait& wait) override;
  void stored(Offset first, std::uint64_t size_bytes) override;
  std::byte* reach(int peer, Offset offset) override;

  // Checks every wait. Returns true if any was over.
  bool poll() { return !waits_.is_empty() && look(0, heap_.size_bytes()); }
  std::string pending() const { return waits_.pending(rank_); }

 private:
  void put(const Access& access);
  void change(Access& access);
  bool look(Offset first, std::uint64_t size_bytes);

  int rank_;
  int ranks_;
  const SymmetricHeap& heap_;
  MappedGroup group_;
  MemoryWaits waits_;
};

}  // namespace towpath::transport::shm
