// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu/include/towpath_gpu.h"

namespace towpath::gpu {

namespace abi = towpath_gpu;

class Block;

// Threads that synchronize, the block or lanes of a warp: a barrier, a vote, a shuffle or a
// transfer.
struct Group {
  std::uint32_t mask = 0;     // of a warp's lanes, unused by the block
  std::uint32_t present = 0;  // lanes that have arrived
  int first_thread = 0;
  int size = 0;  // threads that must arrive
  int arrived = 0;
  Time latest{};     // arrival of the last thread
  abi::Site site{};  // of the first thread
  // The call's arguments, from the last thread.
  int reduction = 0;
  int sum = 0;
  bool all = true;
  bool any = false;
  abi::Exchange exchange = abi::Exchange::index;
  int width = abi::kWarpThreads;
};

// A vote or a shuffle, with the value of the running thread.
struct ExchangeRequest {
  abi::Exchange kind = abi::Exchange::index;
  std::uint32_t mask = 0;
  std::uint64_t value = 0;
  int operand = 0;
  int width = abi::kWarpThreads;
};

// A named barrier of a block, for a number of threads that the arrivals state.
struct NamedBarrier {
  int size = 0;
  bool is_of_all = false;  // threads that end are not missed
  int arrived = 0;
  Time latest{};     // arrival of the last thread
  abi::Site site{};  // of the first thread
  int votes = 0;     // other than zero
  std::vector<std::uint16_t> waiting{};
};

// An arrival of the running thread.
struct NamedArrival {
  unsigned id = 0;
  int threads = 0;  // zero: all of the block
  abi::NamedBarrier action = abi::NamedBarrier::sync;
  bool vote = false;
};

// Synchronization among a block's threads. All calls except release() are made by the running
// thread.
class ThreadGroups {
 public:
  ThreadGroups(Block& block, int threads) : block_(block) { whole_.size = threads; }

  int sync(int reduction, int predicate, const abi::Site& site);
  int sync_named(const NamedArrival& arrival, const abi::Site& site);
  void sync_warp(std::uint32_t mask, const abi::Site& site);
  std::uint64_t exchange(const ExchangeRequest& request, const abi::Site& site);

  // The group of a scope larger than a thread, for a transfer by all its threads.
  Group& of(abi::Scope scope, const abi::Site& site);
  // The thread arrives and waits. True if it is the last.
  bool arrive(Group& group, const abi::Site& site);
  // Its threads continue.
  void release(Group& group);
  // The thread has ended, which counts as an arrival, as on a GPU. `left` threads have not ended.
  void leave(int left);
  // Throws KernelError if all remaining threads wait in barriers that no thread will complete.
  void check_named() const;
  // The named barriers with arrivals: "barrier 2 has 64 of its 96 threads and misses 32". Empty if
  // there are none.
  std::string named_arrivals() const;

 private:
  Group& warp_group(std::uint32_t mask, const abi::Site& site);
  void complete(Group& group);
  void finish_exchange(Group& group);
  void complete_named(NamedBarrier& barrier);
  NamedBarrier& named(const NamedArrival& arrival, const abi::Site& site);
  [[noreturn]] void refuse_divergence(const Group& group, const abi::Site& site);

  Block& block_;
  Group whole_;
  std::list<Group> warps_;           // groups with waiting lanes
  std::vector<NamedBarrier> named_;  // by number, empty before the first use
  int completing_ = 0;               // complete groups whose threads have not yet been released
};

}  // namespace towpath::gpu
