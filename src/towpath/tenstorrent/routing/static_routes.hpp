// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"

// Static routes as commands: each hop is one command of the sending and one of the receiving
// Ethernet core. A core executes its list in order, one command per timestep. Both ends of a hop
// share the timestep. A packet occupies a buffer of the receiving core until the end of its next
// hop. At the end of its route it is removed immediately.
//
//   const auto routes = route_over_links(cluster, {{0, 1, 2}, {2, 3, 0}});
//   const Outcome outcome = execute(routes, commands_in_order(routes, given_order(routes)));
//
// Every list has an order, so each hop waits for a fixed set of other hops. The duration is the
// longest path through these waits. The routes deadlock if the waits form a cycle.

namespace towpath::tenstorrent::routing {

// One link, from the sending to the receiving core.
struct Hop {
  machine::EthernetEnd from;
  machine::EthernetEnd to;
  bool operator==(const Hop&) const = default;
};

using Route = std::vector<Hop>;

// Identifies a hop by route and position.
struct HopName {
  int route = 0;
  int hop = 0;
  auto operator<=>(const HopName&) const = default;
};

struct Command {
  enum class Kind : std::uint8_t { send, receive };
  Kind kind = Kind::send;
  HopName of;
  bool operator==(const Command&) const = default;
};

struct CoreCommands {
  machine::EthernetEnd core;
  std::vector<Command> commands;
};

// Reason for the wait of one hop for another.
enum class WaitReason : std::uint8_t {
  route,   // the packet has not arrived
  order,   // the other hop is earlier in a core's list
  buffer,  // the receiving core has no free buffer
};

struct Wait {
  HopName hop;
  HopName waits_for;
  WaitReason reason = WaitReason::route;
  machine::EthernetEnd core;  // owner of the list or buffers; for reason route, the sender
};

struct Outcome {
  int timesteps = 0;
  std::vector<std::vector<int>> timestep_of;  // by route and hop, from 1; empty on a deadlock
  std::vector<Wait> deadlock;                 // each waits for the next, the last for the first
};

// A route for each list of chips. Each hop takes the link with the fewest hops, then the lowest
// channel, among the links between its two chips that the dispatcher leaves free. A revisited edge
// therefore uses another link if possible. Throws std::invalid_argument that names list and chips
// if a list has fewer than two chips or two consecutive chips have no link.
std::vector<Route> route_over_links(const machine::ChipCluster& cluster,
                                    std::span<const std::vector<int>> chip_lists);

// 0, 1, 2, ...
std::vector<int> given_order(std::span<const Route> routes);

// The lists of all participating cores. Routes are added one at a time to all their cores, so no
// two routes wait for each other and the lists never deadlock. Throws std::invalid_argument if
// `order` is not a permutation of the routes.
std::vector<CoreCommands> commands_in_order(std::span<const Route> routes,
                                            std::span<const int> order);

// Result of arbitrary lists. Throws std::invalid_argument unless each hop occurs exactly once in
// the list of its sender and once in the list of its receiver, with no other commands, and there is
// at least one buffer.
Outcome execute(std::span<const Route> routes, std::span<const CoreCommands> lists,
                int buffers_per_core = 1);

// "hop 1 of route 0 (0/8 to 1/0) waits for hop 0 of route 1 (...), which is before it in the list
// of 0/8, which waits for ...". Long cycles are truncated.
std::string describe_deadlock(std::span<const Route> routes, const Outcome& outcome);

}  // namespace towpath::tenstorrent::routing
