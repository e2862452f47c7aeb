// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "towpath/base/pool.hpp"
#include "towpath/tenstorrent/ccl/chips.hpp"
#include "towpath/tenstorrent/ccl/multicast_worker.hpp"
#include "towpath/tenstorrent/fabric/fabric_topology.hpp"
#include "towpath/transport/transport.hpp"

// Data and signals for several ranks at once. A packet goes in each direction along the line or
// ring, and each router on its route delivers it and forwards a copy.

namespace towpath::tenstorrent::ccl {

// Ranks that multicast packets reach in both directions of a line or ring.

// Ranks that a packet reaches in one direction, from the nearest on.
struct Targets {
  std::vector<int> ranks;
  int skipped = 0;  // chips before the first
  // The last rank is half way around, and each direction brings it half of the packets.
  bool shares_last = false;

  // An increment without data takes only the first direction to a rank half way around.
  bool reaches(int rank, int way, bool has_bytes) const;
};
using BothWays = std::array<Targets, kWays>;

// A rank, and its distance in the positive direction of the line. The distance may be negative.
struct Target {
  int steps = 0;
  int rank = 0;
};

// Each rank in the shorter direction. None if a chip between the targets would also get the packet.
std::optional<BothWays> shorter_ways(const fabric::Dimension& line,
                                     std::span<const Target> targets);
// Each rank of a ring in both directions.
BothWays all_round(const fabric::Dimension& ring, std::span<const Target> targets);

// Range of a broadcast on one plane.
struct Stretch : Multicast {
  Broadcast* broadcast = nullptr;
  std::uint64_t offset = 0;         // of its bytes
  std::uint64_t staged_pages = 0;   // at the source
  std::uint64_t landing_pages = 0;  // at all destinations
};

// Packet of a rendezvous in one direction.
struct Notice : Part {
  Broadcast* broadcast = nullptr;
};

// Pooled.
struct Broadcast {
  Broadcasts* broadcasts = nullptr;
  Endpoint* from = nullptr;
  transport::DirectMove* move = nullptr;  // until it is visible. Null for signals alone
  std::vector<std::byte> payload;         // until it has left
  std::deque<Stretch> stretches;          // one per plane, or one for a rendezvous
  std::deque<Notice> notices;             // of a rendezvous: one per direction
  std::vector<Delivery*> shares;          // one per rank
  std::vector<DeliveryPart*> parts;
  int to_leave = 0;    // stretches, or notices
  int to_deliver = 0;  // ranks
};

class Broadcasts {
 public:
  Broadcasts(Chips& chips, Unicasts& unicasts)
      : chips_(chips),
        unicasts_(unicasts),
        pools_(index(chips.topology().places())),
        landings_(index(chips.topology().places())) {}

  // Creates the workers. From now on Moves to single peers are rejected, since workers of both
  // kinds would share the channels of routers. Must be called before the simulation starts.
  void enable();
  bool is_enabled() const { return !landings_.front().empty(); }
  // Throws std::invalid_argument if it is enabled.
  void check_unicasts() const;

  // Reason why a place cannot reach all these ranks at once. Empty if it can.
  std::string refusal(int from, std::span<const int> ranks) const;
  bool reaches(int from, std::span<const int> ranks) const;

  // Stores to the ranks, unless `move` is null, and raises the signals.
  void send(Endpoint& from, std::span<const int> ranks, std::span<const transport::Raise> raises,
            transport::DirectMove* move);
  // Adds 1 to a signal of all other ranks: in the shorter direction or, if all around, in both
  // directions of a ring. The workers for single peers of the first plane send the packets.
  void notify_all(Endpoint& from, transport::Signal signal, bool is_all_round);

  void share_delivered(Broadcast& broadcast);

 private:
  std::vector<Target> targets(int from, std::span<const int> ranks) const;
  MulticastWay way_of(int from, int plane, int way, const Targets& targets, bool has_bytes) const;
  Broadcast& new_broadcast(Endpoint& from, transport::DirectMove* move);
  void add_stretch(Broadcast& broadcast, int plane, std::uint64_t first, std::uint64_t end,
                   const BothWays& targets);
  void take_pages_for(Stretch& stretch, int plane);
  void add_notice(Broadcast& broadcast, const MulticastWay& way, int number);
  void expect(Stretch& stretch, Delivery& share, int plane, int way);
  void stretch_left(Broadcast& broadcast);
  void finish(Broadcast& broadcast);

  Chips& chips_;
  Unicasts& unicasts_;
  std::vector<Pool<Broadcast>> pools_;  // by position
  // By place, then by plane: pages at all places for data from here. Empty unless enabled.
  std::vector<std::vector<PageRing>> landings_;
};

}  // namespace towpath::tenstorrent::ccl
