// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "towpath/noc/memory/outside_memory.hpp"
#include "towpath/noc/memory/tile_memories.hpp"
#include "towpath/noc/niu/linked_paths.hpp"
#include "towpath/noc/niu/request.hpp"

namespace towpath::noc {

// Memory that is not on the chip, and the tile through which its cores reach it.
struct AttachedMemory {
  machine::Coordinate tile;
  OutsideMemory* memory = nullptr;

  // Null unless it is behind `at`.
  OutsideMemory* at(machine::Coordinate other) const { return other == tile ? memory : nullptr; }
};

// The tiles that a multicast reaches: workers of its rectangle.
std::vector<machine::Coordinate> receivers_of(const machine::Chip& chip, const Request& request);

// Refusal of requests that a chip cannot carry out, by std::invalid_argument: off the grid, a tile
// without memory or harvested, an address beyond the memory or misaligned, a wrong VC or
// transaction id, no bytes to move.
class RequestRules {
 public:
  RequestRules(const machine::Chip& chip, const TileMemories& memories,
               const AttachedMemory& attached, const LinkedPaths& linked)
      : chip_(chip), memories_(memories), attached_(attached), linked_(linked) {}

  // Checks a core's request.
  void check(const Request& request) const;
  // Checks a request of an off-chip initiator, behind a tile without memory.
  void check_outside(const Request& request) const;

 private:
  void check_place(const Request& request) const;
  void check_vc(const Request& request) const;
  void check_own_memory(const Request& request) const;
  void check_remote(const Request& request) const;
  void check_attached(const Request& request, const OutsideMemory& memory) const;
  void check_multicast(const Request& request) const;
  void check_alignment(const Request& request) const;

  const machine::Chip& chip_;
  const TileMemories& memories_;
  const AttachedMemory& attached_;
  const LinkedPaths& linked_;
};

}  // namespace towpath::noc
