// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/transport/remote_memory.hpp"
#include "towpath/transport/transport.hpp"

// The symmetric heap of a PE: its allocations, the heaps of the peers, and the memory that
// transfers may use.

namespace towpath::gpu {

namespace abi = towpath_gpu;

class Block;
class ThreadStack;

class Heap {
 public:
  // `heap_bytes` is the size of the transport's heap.
  Heap(transport::Transport& transport, const ThreadStack& stack, std::uint64_t heap_bytes);

  // Local calls, but all PEs must make the same calls in the same order.
  std::byte* allocate(std::uint64_t size_bytes, std::uint64_t alignment);
  struct Allocation {
    transport::Offset offset = 0;
    std::uint64_t size_bytes = 0;
    transport::Offset allocated = 0;  // from the transport, before alignment
  };
  // The allocation at an address. Throws KernelError if there is none.
  Allocation allocation_at(const void* address) const;
  void release(const Allocation& allocation);
  // Memory of this PE only, allowed in transfers.
  void register_buffer(const void* address, std::uint64_t size_bytes);
  bool unregister_buffer(const void* address, const abi::Site& site);
  void unregister_all(const abi::Site& site);
  bool is_registered(std::uintptr_t address, std::uint64_t size_bytes) const;

  bool contains(const void* address) const;
  transport::Offset offset_of(const void* address) const;
  // An address in the heap of a peer for loads and stores. Null if it is not reachable by them.
  void* reach(const void* address, int peer) const;
  std::uint64_t* team_words(int team) const;
  const abi::Range& own() const { return heaps_[static_cast<std::size_t>(rank_)]; }
  const abi::Range& of(int rank) const { return heaps_[static_cast<std::size_t>(rank)]; }
  // The range of all heaps reachable by loads and stores.
  const abi::Range& all() const { return all_; }
  // The rank whose heap holds the address, or kNoPeer.
  int owner_of(const void* address) const;

  // Throw KernelError for memory that is not allowed in transfers.
  void check_local(const abi::Access& access, const Block& block, const abi::Site& site) const;
  void check_remote(const abi::Access& access, const Block& block, const abi::Site& site) const;

 private:
  // After each allocation, so that an access beyond it is not inside the next one.
  static constexpr std::uint64_t kGapBytes = 256;

  struct Size {
    std::uint64_t size_bytes;
    transport::Offset allocated;
  };
  void find_heaps(std::uint64_t heap_bytes);
  bool is_allocated(const void* address, std::uint64_t size_bytes) const;

  transport::Transport& transport_;
  const ThreadStack& stack_;
  int rank_;
  std::map<transport::Offset, Size> allocations_;
  struct Returned {
    std::uint64_t size_bytes;
    std::string place;
  };
  // The line that unregistered the memory of these bytes. Empty if none did.
  std::string returned_at(std::uintptr_t address, std::uint64_t size_bytes) const;
  std::map<std::uintptr_t, std::uint64_t> registered_;
  std::map<std::uintptr_t, Returned> returned_;  // registered before, and given back
  std::vector<abi::Range> heaps_;  // by rank, empty beyond the reach of loads and stores
  abi::Range all_{};
  std::byte* words_ = nullptr;  // of the teams
};

}  // namespace towpath::gpu
