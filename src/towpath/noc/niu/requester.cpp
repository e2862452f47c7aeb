// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/requester.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"

namespace towpath::noc {

Requester::Requester(const machine::Chip& chip, const NetworkTicks::Networks& networks,
                     const Transactions& transactions)
    : chip_(chip),
      networks_(networks),
      transactions_(transactions),
      request_interval_(flit_interval(chip.router.flit_bytes, chip.niu.request_stream_rate)) {
  for (auto& of_noc : streams_) {
    of_noc.assign(chip.tiles.size(), {std::vector<PaceTime>(index(chip.niu.request_streams)), 0});
  }
}

// Everything except the destination.
Packet Requester::packet_of(const Tag& tag, Cycle now) {
  const Transaction& transaction = transactions_[tag.transaction];
  const Request& request = transaction.request;
  const int data_flits = request.kind == RequestKind::write
                             ? transactions_.sizes().data_flits(transactions_.bytes_of(tag))
                             : 0;
  Packet packet;
  packet.source = networks_[index(request.noc)]->torus().node_of(request.core);
  packet.flits = 1 + data_flits;
  packet.packet_class = static_cast<std::uint8_t>(request.vc >> 1);
  packet.buddy = request.vc & 1;
  packet.keeps_buddy = request.is_static_vc;
  packet.keeps_class = request.is_static_vc;
  packet.lane =
      static_cast<std::uint8_t>(request.is_multicast ? kMulticastLane : request.initiator);
  packet.header_at = now + chip_.niu.request_cycles;
  packet.tag = tag.pack();
  // The data of an off-chip initiator is not read from a memory first.
  if (data_flits == 0 || transaction.outside != nullptr) return packet;
  // A multicast that includes its source writes the L1 that it reads.
  const PaceTime interval =
      request_interval_ + (request.includes_source ? bank_conflict(chip_, request_interval_) : 0);
  Streams& streams = streams_[index(request.noc)][index(chip_.number_of(request.core))];
  PaceTime& stream = streams.ends[streams.next];
  streams.next = (streams.next + 1) % streams.ends.size();
  packet.data_at = std::max(stream, packet.header_at * kPaceCycle) + interval;
  packet.data_interval = interval;
  stream = packet.data_at + (data_flits - 1) * interval;
  return packet;
}

void Requester::send(std::uint32_t number, const std::vector<machine::Coordinate>& receivers,
                     Cycle now) {
  const Request request = transactions_[number].request;
  Network& network = *networks_[index(request.noc)];
  std::vector<int> nodes;
  for (const machine::Coordinate tile : receivers) nodes.push_back(network.torus().node_of(tile));
  const auto packets = static_cast<std::uint32_t>(transactions_[number].packets);
  for (std::uint32_t i = 0; i < packets; ++i) {
    Packet packet = packet_of({number, i, PacketRole::request}, now);
    if (request.is_multicast) {
      packet.keeps_path = request.is_linked;
      network.send_multicast(packet, nodes);
    } else {
      packet.destination = network.torus().node_of(request.remote.tile);
      network.send(packet);
    }
  }
}

}  // namespace towpath::noc
