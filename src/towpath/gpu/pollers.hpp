// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/transport/remote_memory.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::gpu {

class Block;
class Pe;

// Threads of a PE that poll memory, and the stores that may end their polls.
class Pollers {
 public:
  explicit Pollers(Pe& pe) : pe_(pe) {}

  // The running thread waits until the memory changes, or until all threads poll again.
  void poll(Block& block, const volatile void* address, unsigned size_bytes);
  bool empty() const { return pollers_.empty(); }
  std::size_t count() const { return pollers_.size(); }
  // Threads with changed memory poll again.
  void look_again();
  // All threads poll again. Returns their number.
  std::size_t wake_all();
  // The running block is about to store these bytes.
  void note_store(const volatile void* address, std::uint64_t size_bytes);
  // The noted stores are done. Pollers check, on this PE and on the owners of the bytes.
  void notify_stores();

 private:
  struct Poller {
    Pollers* of;
    Block* block;
    int thread;
    unsigned size_bytes;
    bool is_shared;  // shared by a block
    transport::MemoryWait wait{};
    bool is_looking = false;
    bool has_changed() const;
  };
  struct StoredRange {
    int owner;
    transport::Offset first;
    std::uint64_t size_bytes;
  };
  void add(Block& block, int thread, unsigned size_bytes);
  void wake(const Poller& poller);
  void notice(Poller& poller);

  Pe& pe_;
  std::vector<std::unique_ptr<Poller>> pollers_;
  std::vector<StoredRange> stored_;
  bool has_stored_ = false;
};

}  // namespace towpath::gpu
