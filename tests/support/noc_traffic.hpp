// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/flit_network.hpp"

// Traffic for a network, and its outcome: the same for Network and for ReferenceNetwork.

namespace towpath::noc {

// A grid of nodes with the default figures.
machine::Chip plain_chip(int width, int height);

struct Injection {
  Cycle at = 0;
  Packet packet;
  std::vector<int> destinations{};  // of a multicast
};

struct Hold {
  Cycle at = 0;
  int node = 0;
  int vc = 0;
  Cycle until = 0;
};

struct Traffic {
  machine::Chip chip;
  int noc = 0;
  std::vector<Injection> injections{};  // in order of time, as the holds
  std::vector<Hold> holds{};
  std::vector<int> paced_nodes{};  // where the endpoint says when the next flit may come
  bool answers = false;            // a packet is answered by another, and holds its VC for a while
};

// Random in everything: parameters, load, pattern, sizes, VCs, times. Where packets are answered
// nothing else is held, and no VC twice.
struct RandomTraffic {
  int width = 2;
  int height = 2;
  int packets = 1000;
  bool has_multicasts = false;
};
Traffic random_traffic(const RandomTraffic& options, std::uint64_t seed);

// A call to an endpoint. The order of calls in the same cycle is not significant.
struct Event {
  enum Kind : std::uint8_t { started, sent, received };
  Cycle at = 0;
  Kind kind = started;
  std::uint64_t tag = 0;
  int node = 0;  // where it was received, and on which VC
  int vc = 0;
  auto operator<=>(const Event&) const = default;
};
std::string to_string(const Event& event);
// The first difference, in words; empty if there is none.
std::string difference(std::vector<Event> left, std::vector<Event> right);

// Sends the traffic in time and records the calls.
template <typename SomeNetwork>
class Player final : public Endpoint {
 public:
  explicit Player(const Traffic& traffic)
      : traffic_(traffic), network_(network_of(traffic, *this)) {
    for (const int node : traffic.paced_nodes) network_.pace_by_endpoint(node);
  }

  SomeNetwork& network() { return network_; }
  const std::vector<Event>& events() const { return events_; }
  bool is_done() const {
    return next_injection_ == traffic_.injections.size() && network_.packets_in_flight() == 0;
  }
  // When the traffic itself has something to do next.
  Cycle next_action() const {
    Cycle next = kNever;
    if (next_injection_ < traffic_.injections.size()) {
      next = traffic_.injections[next_injection_].at;
    }
    if (next_hold_ < traffic_.holds.size()) next = std::min(next, traffic_.holds[next_hold_].at);
    return next;
  }

  void step() {
    const Cycle now = network_.now();
    for (; next_hold_ < traffic_.holds.size(); ++next_hold_) {
      const Hold& hold = traffic_.holds[next_hold_];
      if (hold.at > now) break;
      network_.hold(hold.node, hold.vc, hold.until);
    }
    for (; next_injection_ < traffic_.injections.size(); ++next_injection_) {
      const Injection& injection = traffic_.injections[next_injection_];
      if (injection.at > now) break;
      if (injection.destinations.empty()) {
        network_.send(injection.packet);
      } else {
        network_.send_multicast(injection.packet, injection.destinations);
      }
    }
    network_.step();
  }

  void packet_started(const Packet& packet, Cycle now) override {
    events_.push_back({now, Event::started, packet.tag});
  }
  void packet_sent(const Packet& packet, Cycle now) override {
    events_.push_back({now, Event::sent, packet.tag});
  }
  void packet_received(const Packet& packet, int node, int vc, Cycle now) override {
    events_.push_back({now, Event::received, packet.tag, node, vc});
    if (!traffic_.answers || (packet.tag & kAnswer) != 0) return;
    const std::uint64_t some = packet.tag * 0x9e3779b97f4a7c15 >> 32;
    Packet answer;
    answer.source = node;
    answer.destination = packet.source;
    answer.flits = 1 + static_cast<int>(some % 40);
    answer.packet_class = static_cast<std::uint8_t>(traffic_.chip.router.classes - 1);
    answer.keeps_buddy = false;
    answer.lane = kLanes - 1;
    answer.header_at = now + static_cast<Cycle>(some % 30);
    answer.data_at = answer.header_at * kPaceCycle;
    answer.data_interval = 1100;
    answer.tag = packet.tag | kAnswer;
    network_.send(answer);
    network_.hold(node, vc, now + 1 + static_cast<Cycle>(some % 50));
  }
  Cycle flit_received(const Packet& packet, int, Cycle now) override {
    return now + 1 + static_cast<Cycle>(packet.tag % 3);
  }

 private:
  static SomeNetwork network_of(const Traffic& traffic, Endpoint& endpoint) {
    if constexpr (std::is_constructible_v<SomeNetwork, const machine::Chip&, int, Endpoint&>) {
      return SomeNetwork(traffic.chip, traffic.noc, endpoint);  // nothing in it is random
    } else {
      return SomeNetwork(traffic.chip, traffic.noc, endpoint, 1);
    }
  }

  static constexpr std::uint64_t kAnswer = std::uint64_t{1} << 40;

  const Traffic& traffic_;
  std::vector<Event> events_;
  SomeNetwork network_;
  std::size_t next_injection_ = 0;
  std::size_t next_hold_ = 0;
};

// What each link has carried: those of node 0 first, and of a node as Port.
template <typename SomeNetwork>
std::vector<std::int64_t> link_flits(const SomeNetwork& network, int nodes) {
  std::vector<std::int64_t> flits;
  for (int node = 0; node < nodes; ++node) {
    for (int port = 0; port <= kFromNiu; ++port) {
      flits.push_back(network.link_flits(node, port));
    }
  }
  return flits;
}

}  // namespace towpath::noc
