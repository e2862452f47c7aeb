// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "towpath/noc/memory/tile_memories.hpp"
#include "towpath/noc/niu/transactions.hpp"
#include "towpath/sim/clock.hpp"

namespace towpath::noc {

// The bytes that writes in flight have not yet read from their cores' memories. These bytes must
// not change.
class SourceGuard {
 public:
  // Source of a change: a request, the core itself, or something outside the chip.
  struct Writer {
    const Request* request = nullptr;
    bool is_outside = false;
  };
  struct Change {
    machine::Coordinate tile;
    std::uint64_t offset;
    std::span<const std::byte> bytes;
  };

  SourceGuard(const TileMemories& memories, const Transactions& transactions,
              const sim::Simulation& simulation, const sim::Clock& clock)
      : memories_(memories), transactions_(transactions), simulation_(simulation), clock_(clock) {}

  void add(std::uint32_t transaction);
  // A packet has read its bytes.
  void remove(const Tag& tag);
  // Throws std::runtime_error if bytes change before a write has read them. Bytes that keep their
  // value are allowed.
  void check(const Change& change, const Writer& writer) const {
    if (!sources_.empty()) check_all(change, writer);
  }

 private:
  struct Source {
    Tag tag;
    std::uint64_t offset;
    std::uint64_t size_bytes;
  };
  void check_all(const Change& change, const Writer& writer) const;
  std::string name_of(const Writer& writer, machine::Coordinate tile) const;

  const TileMemories& memories_;
  const Transactions& transactions_;
  const sim::Simulation& simulation_;
  const sim::Clock& clock_;
  std::unordered_map<const TileMemory*, std::vector<Source>> sources_;
};

}  // namespace towpath::noc
