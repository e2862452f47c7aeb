// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/mailbox/ring.hpp"

#include <algorithm>
#include <utility>

#include "towpath/sim/hardware_priority.hpp"

namespace towpath::mailbox {

Time Ring::wire_time(const Packet& packet) const {
  const std::size_t header = static_cast<std::size_t>(cluster_->ring.header_bytes);
  return transfer_time(Bytes(header + packet.payload.size()), cluster_->ring.line_rate);
}

void Ring::send(Packet packet) {
  if (free_flights_.empty()) free_flights_.push_back(&flights_.emplace_back());
  Flight& flight = *free_flights_.back();
  free_flights_.pop_back();
  const int nodes = cluster_->nodes;
  const int upwards = (packet.to.node - packet.from.node + nodes) % nodes;
  flight.ring = this;
  flight.at = packet.from.node;
  flight.step = upwards == 0 ? 0 : (2 * upwards <= nodes ? 1 : -1);
  flight.packet = std::move(packet);
  forward(flight);
}

// The header has reached `flight.at`. It ends there or takes the next link.
void Ring::forward(Flight& flight) {
  if (flight.at == flight.packet.to.node) {
    Packet packet = std::move(flight.packet);
    free_flights_.push_back(&flight);
    arrived_(packet, wire_time(packet));
    return;
  }
  const auto node = static_cast<std::size_t>(flight.at);
  Time& free_at = link_free_at_[2 * node + (flight.step > 0 ? 0 : 1)];
  const Time begin = std::max(free_at, simulation_.now());
  free_at = begin + wire_time(flight.packet);
  flight.at = (flight.at + flight.step + cluster_->nodes) % cluster_->nodes;
  simulation_.at(begin + cluster_->ring.hop_latency, &at_node, &flight, sim::kHardwarePriority);
}

void Ring::at_node(void* context) {
  Flight& flight = *static_cast<Flight*>(context);
  flight.ring->forward(flight);
}

}  // namespace towpath::mailbox
