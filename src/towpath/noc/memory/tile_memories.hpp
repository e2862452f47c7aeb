// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/memory/memory.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::noc {

inline constexpr std::uint64_t kWordBytes = 4;

// A memory that several tiles may share, and the processes that wait for writes to it.
struct TileMemory {
  struct WriteWaiting {
    std::uint64_t offset;
    std::uint64_t size_bytes;
    sim::Process* process;
  };

  explicit TileMemory(std::uint64_t size_bytes) : bytes(size_bytes) {}

  Memory bytes;
  std::vector<WriteWaiting> waiting;
  std::uint64_t writes = 0;
};

// The memories behind the tiles of a chip: the L1 of each core, and one memory for each DRAM group,
// which all of its tiles reach.
class TileMemories {
 public:
  explicit TileMemories(const machine::Chip& chip);

  // Null if the tile has none.
  TileMemory* of(machine::Coordinate tile) const {
    return of_tile_[static_cast<std::size_t>(chip_.number_of(tile))];
  }
  bool is_dram(machine::Coordinate tile) const {
    return chip_.tile(tile).kind == machine::TileKind::dram;
  }
  // Throw std::invalid_argument if there is no memory, or the range extends beyond its end.
  TileMemory& checked(machine::Coordinate tile) const;
  TileMemory& checked(machine::Coordinate core, std::uint64_t offset,
                      std::uint64_t size_bytes) const;
  // The same for a word, whose offset is a multiple of 4.
  TileMemory& checked_word(machine::Coordinate core, std::uint64_t offset) const;

  // Wakes the process once, when any of these bytes is written.
  void wake_on_write(machine::Coordinate core, const TileMemory::WriteWaiting& waiting) {
    of(core)->waiting.push_back(waiting);
  }
  // Cancels all waits of a process for its core's memory.
  void stop_waking(machine::Coordinate core, const sim::Process& process);
  // Bytes have been written: wakes the processes that wait for them.
  static void written(TileMemory& memory, std::uint64_t offset, std::uint64_t size_bytes,
                      sim::Simulation& simulation);

 private:
  const machine::Chip& chip_;
  std::vector<std::unique_ptr<TileMemory>> memories_;
  std::vector<TileMemory*> of_tile_;
};

}  // namespace towpath::noc
