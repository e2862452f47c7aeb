// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "towpath/causality/history.hpp"
#include "towpath/gpu/memory_check.hpp"

namespace towpath::gpu {

class Block;

// Finds words of global memory that two blocks load and store, or both store, without an order
// between them: plain accesses of blocks without synchronization. Optional, because each access is
// then looked up.
class RaceMonitor {
 public:
  // Throws KernelError if the access of the running thread races with an earlier one.
  void check(const MemoryAccess& access, bool is_store, const Block& block);

 private:
  static constexpr std::uintptr_t kCellBytes = 8;
  // Accesses of different blocks in a cell. A new one replaces the oldest.
  static constexpr std::size_t kSeenMax = 16;

  struct Seen {
    const causality::History* of;
    causality::Moment moment;
    Time time;
    const char* kernel;
    abi::Index3 index;
    int pe;
    int thread;
    const void* where;
    std::uint8_t bytes;  // of the cell, a bit for each
    bool is_store;
  };
  void check_cell(std::vector<Seen>& cell, const Seen& now, const Block& block) const;
  [[noreturn]] static void refuse(const Seen& before, const Seen& now, const Block& block);

  std::unordered_map<std::uintptr_t, std::vector<Seen>> cells_;
};

}  // namespace towpath::gpu
