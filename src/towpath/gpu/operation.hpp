// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/gpu/block.hpp"
#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/transport/remote_memory.hpp"

// What a block has under way at the transport: transfers, and waits for words.

namespace towpath::gpu {

// A transfer of a thread, or of a group of threads. It deletes itself once the transport has called
// all that it will call and nobody waits for it.
struct Operation {
  Operation(Pe& from, Block& by, const abi::Access& what, const abi::Site& where);

  void start();
  // Whether the threads may go on as soon as it is started.
  bool is_detached() const;

  Pe& pe;
  Block* block;  // null once nobody waits
  abi::Access call;
  abi::Site site;
  int thread = -1;         // that waits, or
  Group* group = nullptr;  // all of these
  transport::Access access;
  std::vector<std::byte> bytes;    // in place of memory that does not stay: stacks, shared memory
  std::uint64_t number = 0;        // among those whose end quiet() awaits; 0: none any more
  std::uint64_t first_number = 0;  // what it was at first
  bool is_done = false;
  bool is_visible = false;
  bool is_monitored = false;
  bool is_held = false;  // by the thread that reads its result
  Moment sender{};
  Signal* signal = nullptr;  // where something is timed
  Profile* profile = nullptr;
  std::uint64_t transfer = 0;  // its number in the profile

 private:
  void monitor_start();
  void start_signal();
  void start_profile();
  void finish_profile();
  Activity activity() const;
  void landed();
  void signal_landed();
  std::string describe() const;
  TransferIdentity identity() const;
  void release_threads();
  void finish();
};

// Words of the own heap that a thread waits for.
struct WaitRecord {
  WaitRecord(Pe& at, const abi::Wait& wait);

  // How many words hold, or the first that does, as the call returns it; -1: not yet.
  std::int64_t evaluate() const;
  // The word beside the value that is waited for, in the order of the wait's type.
  std::strong_ordering order_at(std::uint64_t index) const;
  bool holds_at(std::uint64_t index) const;
  std::uint64_t value_at(std::uint64_t index) const;
  bool counts(std::uint64_t index) const { return status.empty() || status[index] == 0; }
  std::string describe() const;

  Pe& pe;
  abi::Wait call;
  abi::Site site{};
  std::vector<std::uint64_t> values;
  std::vector<int> status;
  Block* block = nullptr;
  int thread = 0;
  transport::MemoryWait wait;
};

}  // namespace towpath::gpu
