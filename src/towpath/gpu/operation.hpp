// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/gpu/block.hpp"
#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/transport/remote_memory.hpp"

namespace towpath::gpu {

// A transfer of a thread, or of a group of threads, in progress at the transport. It deletes itself
// after the last callback, when no thread waits for it.
struct Operation {
  Operation(Pe& from, Block& by, const abi::Access& what, const abi::Site& where);

  void start();
  // True if the threads continue right after its start.
  bool is_detached() const;

  Pe& pe;
  Block* block;  // null if no thread waits
  abi::Access call;
  abi::Site site;
  int thread = -1;         // the waiting thread, or
  Group* group = nullptr;  // the waiting group
  transport::Access access;
  std::vector<std::byte> bytes;    // a copy of temporary memory: stacks, shared memory
  std::uint64_t number = 0;        // among the outstanding ones, 0 after that
  std::uint64_t first_number = 0;  // its first value
  bool is_done = false;
  bool is_visible = false;
  bool is_monitored = false;
  bool is_held = false;  // by the thread that reads its result
  Moment sender{};
  Signal* signal = nullptr;  // in timed runs
  Profile* profile = nullptr;
  std::uint64_t transfer = 0;  // its number in the profile

 private:
  void monitor_start();
  void forget_source();
  void start_signal();
  void start_profile();
  void finish_profile();
  Activity activity() const;
  void landed();
  void signal_landed();
  std::string describe() const;
  causality::Transfer identity() const;
  void release_threads();
  void finish();
};

// A transfer of the running thread, its warp or the block. Returns when its source may change, or
// its target is readable.
void access(Block& block, abi::Access& call, const abi::Site& site);

}  // namespace towpath::gpu
