// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/memory/outside_memory.hpp"
#include "towpath/noc/memory/tile_memories.hpp"
#include "towpath/noc/niu/request.hpp"

namespace towpath::noc {

// The destinations to which cores keep paths reserved, by linked multicasts.
class LinkedPaths {
 public:
  struct Rectangle {
    machine::Coordinate first;
    machine::Coordinate last;
    bool includes_source = false;
    bool operator==(const Rectangle&) const = default;
  };
  static Rectangle rectangle_of(const Request& request) {
    return {request.remote.tile, request.last_tile, request.includes_source};
  }

  explicit LinkedPaths(const machine::Chip& chip) : chip_(chip), paths_(2 * chip.tiles.size()) {}

  // The required destination of a multicast after an earlier one with a kept path, if any.
  const std::optional<Rectangle>& before(const Request& multicast) const {
    return paths_[place_of(multicast.noc, multicast.core)][multicast.vc & 1];
  }
  // A multicast has been issued, which keeps its path or releases it.
  void update(const Request& multicast);
  // The reserved path of a core. Empty if there is none.
  std::string describe(int noc, machine::Coordinate core) const;
  // The path of the first core with a reserved one, as the same text.
  std::string describe_any() const;

 private:
  std::size_t place_of(int noc, machine::Coordinate core) const {
    return static_cast<std::size_t>(noc) * chip_.tiles.size() +
           static_cast<std::size_t>(chip_.number_of(core));
  }

  const machine::Chip& chip_;
  std::vector<std::array<std::optional<Rectangle>, 2>> paths_;  // per NIU and buddy bit
};

// Memory outside the chip, and the tile through which the cores reach it.
struct AttachedMemory {
  machine::Coordinate tile;
  OutsideMemory* memory = nullptr;

  // Null unless it is behind `at`.
  OutsideMemory* at(machine::Coordinate other) const { return other == tile ? memory : nullptr; }
};

// The tiles that a multicast reaches: workers of its rectangle, row by row.
std::vector<machine::Coordinate> receivers_of(const machine::Chip& chip, const Request& request);

// Rejection of requests that a chip cannot carry out, by std::invalid_argument: off the grid, a
// tile without memory or harvested, an address beyond the memory or misaligned, a wrong VC or
// transaction id, no bytes to move.
class RequestRules {
 public:
  RequestRules(const machine::Chip& chip, const TileMemories& memories,
               const AttachedMemory& attached, const LinkedPaths& linked)
      : chip_(chip), memories_(memories), attached_(attached), linked_(linked) {}

  // Checks a core's request.
  void check(const Request& request) const;
  // Checks a request of an initiator outside the chip. Its tile has no memory.
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
