// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/network.hpp"

#include <fmt/format.h>

#include "towpath/base/invariant.hpp"

namespace towpath::noc {

void Network::check(const Packet& packet) const {
  TOWPATH_CHECK(packet.flits >= 1 && packet.flits <= parameters_.packet_data_flits_max + 1,
                "a packet has {} flits; 1 to {} are possible", packet.flits,
                parameters_.packet_data_flits_max + 1);
  TOWPATH_CHECK(packet.packet_class < routing_.classes(),
                "a packet has class {}; 0 to {} are possible", packet.packet_class,
                routing_.classes() - 1);
  TOWPATH_CHECK(packet.lane < kLanes, "a packet has lane {}; 0 to {} are possible", packet.lane,
                kLanes - 1);
}

void Network::check_multicast(const Packet& packet, const std::vector<int>& destinations) const {
  TOWPATH_CHECK(!destinations.empty(), "a multicast from node {} has no destination",
                packet.source);
  TOWPATH_CHECK(routing_.classes() > static_cast<int>(PacketClass::broadcast),
                "a NoC of {} classes has none for multicasts", routing_.classes());
}

void Network::skip_to(Cycle cycle) {
  TOWPATH_CHECK(cycle >= now_ && cycle <= next_work(),
                "cycles {} to {} may not be skipped; there is work in cycle {}", now_, cycle,
                next_work());
  now_ = cycle;
}

std::int64_t Network::flit_hops() const {
  std::int64_t hops = 0;
  for (int node = 0; node < torus().nodes(); ++node) {
    for (int port = kX; port < kPorts; ++port) hops += link_flits(node, port);
  }
  return hops;
}

std::string Network::describe_deadlock() const {
  const std::vector<std::string> cycle = deadlock_cycle();
  if (cycle.empty()) return "";
  std::string text = fmt::format("deadlock of {} packets: ", cycle.size());
  for (const std::string& packet : cycle) text += packet + " waits for ";
  return text + "the first";
}

}  // namespace towpath::noc
