// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"

// Static routes as commands: every hop of a route is one command of the Ethernet core that sends
// and one of the core that receives. A core executes its commands in the order of its list, one per
// timestep; both ends of a hop are in the same timestep. A packet stays in a buffer of the core
// that received it until its next hop, at the end of which that buffer is free again; at the end of
// its route it is removed at once.
//
//   const auto routes = route_over_links(cluster, {{0, 1, 2}, {2, 3, 0}});
//   const Outcome outcome = execute(routes, commands_in_order(routes, given_order(routes)));
//
// Since every list has an order, each hop waits for a fixed set of others. The duration is the
// longest path through these waits, and the routes deadlock where the waits form a cycle.

namespace towpath::tenstorrent::routing {

// One link, from the core that sends to the core that receives.
struct Hop {
  machine::EthernetEnd from;
  machine::EthernetEnd to;
  bool operator==(const Hop&) const = default;
};

using Route = std::vector<Hop>;

// Name of a hop: its route, and its number in it.
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

// Reason why a hop waits for another one.
enum class WaitReason : std::uint8_t {
  route,   // the packet has not come that far
  order,   // it is behind the other one in a core's list
  buffer,  // the receiving core's buffers are full until the other one
};

struct Wait {
  HopName hop;
  HopName waits_for;
  WaitReason reason = WaitReason::route;
  machine::EthernetEnd core;  // of the list, or of the buffers; for reason route, the sender
};

struct Outcome {
  int timesteps = 0;
  std::vector<std::vector<int>> timestep_of;  // by route and hop, from 1; empty on a deadlock
  std::vector<Wait> deadlock;                 // each waits for the next, the last for the first
};

// A route over links for each list of chips. Among the links between two chips that the dispatcher
// has not taken, a hop gets one with the fewest hops so far, and of those the one of the lowest
// channel; so a revisited edge gets another link if there is one. Throws std::invalid_argument
// naming list and chips when a list has fewer than two chips or two consecutive ones are not
// joined.
std::vector<Route> route_over_links(const machine::ChipCluster& cluster,
                                    std::span<const std::vector<int>> chip_lists);

// 0, 1, 2, ...
std::vector<int> given_order(std::span<const Route> routes);

// The lists of all cores that take part, by core. Each route is added to the lists of all its cores
// before the next one, so no two routes ever wait for each other: these never deadlock. Throws
// std::invalid_argument when `order` is not a permutation of the routes.
std::vector<CoreCommands> commands_in_order(std::span<const Route> routes,
                                            std::span<const int> order);

// Outcome of any lists. Throws std::invalid_argument when a hop does not occur once in the list of
// its sender and once in that of its receiver, when a list contains anything else, or without a
// buffer.
Outcome execute(std::span<const Route> routes, std::span<const CoreCommands> lists,
                int buffers_per_core = 1);

// "hop 1 of route 0 (0/8 to 1/0) waits for hop 0 of route 1 (...), which is before it in the list
// of 0/8, which waits for ..."; long cycles are cut short.
std::string describe_deadlock(std::span<const Route> routes, const Outcome& outcome);

}  // namespace towpath::tenstorrent::routing
