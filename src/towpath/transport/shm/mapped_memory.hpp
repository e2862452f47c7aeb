// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "towpath/transport/remote_memory.hpp"
#include "towpath/transport/symmetric_heap.hpp"

// Remote memory where every rank maps every heap: accesses are copies and atomic operations, over
// when start() returns.
//
// Memory order: a signal is a release after its payload; an atomic operation acquires and releases;
// a wait that holds acquires before `ready`. So what a rank stored before it raised a signal, or
// changed a word, is seen by the rank that waited for it. MemoryWait::holds runs while peers store:
// it reads words through std::atomic_ref, or as volatile.

namespace towpath::transport::shm {

// What the memories need of their group.
struct MappedGroup {
  std::function<std::byte*(int rank)> heap_of;
  std::function<void()> check;         // throws where the group can not go on
  std::function<void(int rank)> wake;  // is called for a rank whose heap was changed
};

class MappedMemory final : public RemoteMemory {
 public:
  MappedMemory(int rank, int ranks, const SymmetricHeap& heap, MappedGroup group);

  void start(Access& access) override;
  void wait(MemoryWait& wait) override;
  void cancel(MemoryWait& wait) override;
  void stored(Offset first, std::uint64_t size_bytes) override;
  std::byte* reach(int peer, Offset offset) override;

  // Looks at every wait; whether one was over.
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
