// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/responder.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"

namespace towpath::noc {

DramChannels::DramChannels(const machine::Chip& chip)
    : chip_(chip),
      channels_(index(chip.dram.channels_per_group)),
      channel_bytes_(chip.dram.channel_bytes),
      group_of_tile_(chip.tiles.size()),
      free_at_(chip.dram_groups.size() * channels_) {
  if (channels_ == 0) return;
  interval_ = flit_interval(chip.router.flit_bytes, chip.dram.channel_rate);
  for (std::size_t group = 0; group < chip.dram_groups.size(); ++group) {
    for (const machine::Coordinate tile : chip.dram_groups[group]) {
      group_of_tile_[index(chip.number_of(tile))] = group;
    }
  }
}

Responder::Responder(const machine::Chip& chip, const NetworkTicks::Networks& networks,
                     Transactions& transactions, NiuTable& nius)
    : chip_(chip),
      networks_(networks),
      transactions_(transactions),
      response_interval_(flit_interval(chip.router.flit_bytes, chip.niu.response_stream_rate)),
      dram_(chip),
      nius_(nius),
      responses_{std::vector<Responses>(chip.tiles.size()),
                 std::vector<Responses>(chip.tiles.size())} {}

Network& Responder::network_of(const Tag& tag) const {
  return *networks_[index(transactions_[tag.transaction].request.noc)];
}

void Responder::acknowledge(const Received& received, Cycle ready) {
  const Tag& tag = received.tag;
  Network& network = network_of(tag);
  Packet answer;
  answer.source = received.node;
  answer.destination = network.torus().node_of(transactions_[tag.transaction].request.core);
  answer.packet_class = static_cast<std::uint8_t>(PacketClass::response);
  answer.keeps_buddy = false;
  answer.lane = kAcknowledgementLane;
  answer.header_at = ready;
  answer.tag = Tag{tag.transaction, tag.packet, PacketRole::acknowledgement}.pack();
  network.send(answer);
}

Packet Responder::response_packet(const Received& received) const {
  const Tag& tag = received.tag;
  Packet answer;
  answer.source = received.node;
  answer.destination = network_of(tag).torus().node_of(transactions_[tag.transaction].request.core);
  answer.flits = 1 + transactions_.sizes().data_flits(transactions_.bytes_of(tag));
  const int dateline = (received.vc >> 1) >= chip_.router.classes ? 1 : 0;
  answer.lane = static_cast<std::uint8_t>(kResponseLane + dateline);
  answer.packet_class = static_cast<std::uint8_t>(PacketClass::response);
  answer.keeps_buddy = false;
  answer.tag = Tag{tag.transaction, tag.packet, PacketRole::read_response}.pack();
  return answer;
}

// A NIU does not answer a read of an L1 while more response flits wait in it than its path from
// memory can hold. The read waits in the NIU, and requests behind it on its VC wait in the network.
void Responder::read(const Received& received) {
  const Request& request = transactions_[received.tag.transaction].request;
  Network& network = network_of(received.tag);
  if (chip_.tile(request.remote.tile).kind == machine::TileKind::dram) {
    respond_from_dram(received);
  } else if (network.counted_flits(received.node) <= response_flits_max()) {
    respond_from_l1(received);
  } else {
    responses_of(request.noc, request.remote.tile).waiting.push_back({received.tag, received.vc});
    network.hold(received.node, received.vc, kNever);
  }
}

void Responder::resume(int noc, int node, Cycle now) {
  Network& network = *networks_[index(noc)];
  std::deque<WaitingRead>& reads = responses_of(noc, network.torus().coordinate_of(node)).waiting;
  while (!reads.empty() && network.counted_flits(node) <= response_flits_max()) {
    const auto [tag, vc] = reads.front();
    reads.pop_front();
    network.release(node, vc, now + 1);
    respond_from_l1({tag, node, vc, now});
  }
}

// Responses read their data one after the other, and take longer while responses on the other NoC
// read the same L1. Responses to requests on the same side of the dateline leave in order. Until a
// response has read its data, the VC of its request is held, and the next request waits in the
// network.
void Responder::respond_from_l1(const Received& received) {
  const auto& [tag, node, vc, now] = received;
  const Request& request = transactions_[tag.transaction].request;
  Network& network = network_of(tag);
  Responses& own = responses_of(request.noc, request.remote.tile);
  PaceTime interval = response_interval_;
  if (responses_of(1 - request.noc, request.remote.tile).stream_end > now * kPaceCycle) {
    interval += bank_conflict(chip_, response_interval_);
  }
  Packet answer = response_packet(received);
  const PaceTime start = std::max(own.stream_end, now * kPaceCycle);
  own.stream_end = start + answer.flits * interval;
  answer.header_at = (start + kPaceCycle - 1) / kPaceCycle + chip_.niu.read_response_cycles;
  answer.data_at = answer.header_at * kPaceCycle + interval;
  answer.data_interval = interval;
  answer.is_counted = true;
  ++nius_.counters(request.noc, request.remote.tile).read_responses_sent;
  network.send(answer);
  network.hold(node, vc, std::max(now + 1, own.stream_end / kPaceCycle));
}

// A DRAM tile serves many reads at once. Responses of a channel leave in order. The NIU collects
// data that arrives more slowly than it sends, and then sends without a gap.
void Responder::respond_from_dram(const Received& received) {
  const auto& [tag, node, vc, now] = received;
  const Transaction& transaction = transactions_[tag.transaction];
  const Request& request = transaction.request;
  const std::uint64_t offset = request.remote.offset + transactions_.sizes().offset_of(tag.packet);
  const PaceTime interval = std::max(dram_.interval(), response_interval_);
  PaceTime& stream = dram_.free_at(request.remote.tile, offset);
  int wait = chip_.dram.read_cycles;
  // For the host, the memory's time was measured in addition to the interface's
  // (host_link/accesses). For cores the assumed time covers both.
  if (transaction.outside != nullptr) wait += chip_.niu.read_response_cycles;
  Packet answer = response_packet(received);
  const PaceTime start = std::max(stream, now * kPaceCycle);
  stream = start + answer.flits * interval;
  answer.lane =
      static_cast<std::uint8_t>(kResponseLane + static_cast<int>(dram_.channel_of(offset) % 2));
  answer.header_at = (start + kPaceCycle - 1) / kPaceCycle + wait +
                     (answer.flits - 1) * (interval - kPaceCycle) / kPaceCycle;
  ++nius_.counters(request.noc, network_of(tag).torus().coordinate_of(node)).read_responses_sent;
  network_of(tag).send(answer);
}

// A DRAM channel takes the data of writes at one rate, through whichever NIU it arrives.
Cycle Responder::dram_flit_received(const Packet& packet, Cycle now) {
  const Tag tag = Tag::unpack(packet.tag);
  const Transaction& transaction = transactions_[tag.transaction];
  const Address& to = transaction.request.remote;
  PaceTime& free = dram_.free_at(to.tile, to.offset + transactions_.sizes().offset_of(tag.packet));
  // A header carries no data, which matters for the host's short packets: all flits of a packet
  // together take the time of its data. For packets of cores the channel's rate was fitted with
  // headers included.
  const PaceTime interval = transaction.outside != nullptr
                                ? dram_.interval() * (packet.flits - 1) / packet.flits
                                : dram_.interval();
  free = std::max(free, (now - 1) * kPaceCycle + 1) + interval;
  return std::max(now + 1, (free + kPaceCycle - 1) / kPaceCycle);
}

}  // namespace towpath::noc
