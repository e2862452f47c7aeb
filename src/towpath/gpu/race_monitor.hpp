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
// between them: plain accesses of blocks without synchronization. An order by memory that a block
// polls needs a fence between the store to the word and the store to that memory. Optional, because
// each access is then looked up.
class RaceMonitor {
 public:
  // Throws KernelError if the access of the running thread races with an earlier one.
  void check(const MemoryAccess& access, bool is_store, const Block& block);
  // The stores of the block are ordered before its next stores, for its GPU or for all.
  void note_release(const Block& block, abi::FenceScope scope);
  // The block stores a word that others may poll, or changes it atomically.
  void note_flag(const Block& block, std::uintptr_t address, std::uint64_t size_bytes);
  // The block polls a word, or changes it atomically.
  void note_look(const Block& block, std::uintptr_t address, std::uint64_t size_bytes);

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
    std::uint64_t number;  // among all events
    std::uint8_t bytes;    // of the cell, a bit for each
    bool is_store;
  };
  // Events have numbers in the order of the run.
  struct Flag {
    const causality::History* of = nullptr;
    std::uint64_t number = 0;
  };
  struct Look {
    std::uint64_t number = 0;
    std::uint64_t flag = 0;  // the store that it saw
  };
  struct Order {
    std::vector<std::uint64_t> releases;                        // for the GPU or for all
    std::vector<std::uint64_t> system_releases;                 // for all
    std::unordered_map<const causality::History*, Look> looks;  // the last at flags of each block
  };
  void check_cell(std::vector<Seen>& cell, const Seen& now, const Block& block) const;
  bool has_looked(const Seen& before, const Seen& now) const;
  bool is_released(const Seen& before, const Seen& now) const;
  [[noreturn]] static void refuse(const Seen& before, const Seen& now, const Block& block);
  [[noreturn]] static void refuse_fence(const Seen& before, const Seen& now, const Block& block);

  std::uint64_t events_ = 0;
  std::unordered_map<const causality::History*, Order> orders_;
  std::unordered_map<std::uintptr_t, Flag> flags_;  // the last of each cell
  std::unordered_map<std::uintptr_t, std::vector<Seen>> cells_;
};

// Tells the monitor of the run, if there is one.
void note_release(const Block& block, abi::FenceScope scope);

}  // namespace towpath::gpu
