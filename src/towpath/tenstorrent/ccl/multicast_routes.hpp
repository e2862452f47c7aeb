// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "towpath/tenstorrent/ccl/multicast_worker.hpp"
#include "towpath/tenstorrent/fabric/fabric_topology.hpp"

// Ranks that multicast packets reach in both directions of a line or ring.

namespace towpath::tenstorrent::ccl {

// Ranks that a packet reaches in one direction, from the nearest on.
struct Targets {
  std::vector<int> ranks;
  int skipped = 0;  // chips before the first
  // The last one is half way round, and each direction brings it half of the packets.
  bool shares_last = false;

  // An increment without data takes the first direction only to a rank half way round.
  bool reaches(int rank, int way, bool has_bytes) const;
};
using BothWays = std::array<Targets, kWays>;

// A rank, and its distance in the positive direction of the line. The distance may be negative.
struct Target {
  int steps = 0;
  int rank = 0;
};

// Each rank by the shorter direction. None if a chip between the targets would get the packet, too.
std::optional<BothWays> shorter_ways(const fabric::Dimension& line,
                                     std::span<const Target> targets);
// Each rank of a ring by both directions.
BothWays all_round(const fabric::Dimension& ring, std::span<const Target> targets);

}  // namespace towpath::tenstorrent::ccl
