// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/fabric/fabric_watch.hpp"

#include <vector>

#include "towpath/base/invariant.hpp"

namespace towpath::tenstorrent::fabric {

namespace {

std::size_t take(std::deque<std::size_t>& packets) {
  TOWPATH_CHECK(!packets.empty(), "a router takes a packet that was never sent");
  const std::size_t packet = packets.front();
  packets.pop_front();
  return packet;
}

int connection_of(const RouterPort& port) {
  constexpr int kChannelsMax = 64;
  return port.end.chip * kChannelsMax + port.end.channel;
}

// The work of a packet on a chip at which it is delivered.
Delivery delivery_of(const Header& header, const SegmentList& list) {
  Delivery delivery;
  const auto add = [&](std::uint64_t to, std::uint64_t size_bytes) {
    const noc::Address address = unpack(to);
    if (size_bytes > 0) delivery.bytes.push_back({address.tile, address.offset, size_bytes});
  };
  if (scatters(header.operation)) {
    for (std::size_t segment = 0; segment < kSegmentsMax; ++segment) {
      add(segment == 0 ? header.payload_to : list.to[segment - 1], list.bytes[segment]);
    }
  } else if (writes(header.operation)) {
    add(header.payload_to, header.payload_bytes);
  }
  if (increments(header.operation) || header.operation == Operation::inline_write) {
    const noc::Address word = unpack(header.word_at);
    delivery.word = {.tile = word.tile,
                     .offset = word.offset,
                     .value = header.increment,
                     .is_increment = increments(header.operation),
                     .is_behind_everything = flushes(header.operation)};
  }
  return delivery;
}

// Destination chips of a packet received at a place, now or after further hops.
void add_destinations(const Topology& topology, int place, const Header& header,
                      std::vector<int>& chips) {
  const Fate fate = fate_of(header);
  if (fate.is_delivered) chips.push_back(topology.chip_at(place));
  for (const Copy& copy : fate.copies) {
    const auto next = topology.neighbour(place, copy.direction);
    if (next) add_destinations(topology, *next, copy.header, chips);
  }
}

}  // namespace

void FabricWatch::opening(const DataMovementCore& core, const RouterPort& port) {
  core.observer().opening_connection(connection_of(port));
}

void FabricWatch::closed(const DataMovementCore& core, const RouterPort& port) {
  core.observer().closed_connection(connection_of(port));
}

void FabricWatch::sending(const DataMovementCore& core, const RouterPort& port,
                          const Header& header, const SegmentList& list) {
  std::vector<int> chips;
  add_destinations(topology_, *topology_.neighbour(port.place, port.direction), header, chips);
  std::vector<Delivery> deliveries;
  for (const int chip : chips) {
    deliveries.push_back(delivery_of(header, list));
    deliveries.back().chip = chip;
  }
  channels_[{port.end, kWorkerChannel}].push_back(
      core.observer().sending_packet(connection_of(port), std::move(deliveries)));
}

void FabricWatch::sent(machine::EthernetEnd router, int channel) {
  links_[router].push_back(take(channels_[{router, channel}]));
}

std::size_t FabricWatch::taken(machine::EthernetEnd far_router) { return take(links_[far_router]); }

void FabricWatch::passed(std::size_t packet, machine::EthernetEnd to, int channel) {
  channels_[{to, channel}].push_back(packet);
}

}  // namespace towpath::tenstorrent::fabric
