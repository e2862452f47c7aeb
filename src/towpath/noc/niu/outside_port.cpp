// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/outside_port.hpp"

#include <algorithm>

namespace towpath::noc {

void OutsidePort::request_received(const Received& received, Network& network) {
  const Tag& tag = received.tag;
  const Transaction& transaction = transactions_[tag.transaction];
  const Request& request = transaction.request;
  const std::uint64_t offset = request.remote.offset + transactions_.sizes().offset_of(tag.packet);
  if (request.kind == RequestKind::read) {
    network.hold(received.node, received.vc, kNever);
    return attached_.memory->read(
        {offset, transactions_.bytes_of(tag), tag.pack(), request.noc, received.node, received.vc});
  }
  const Time later =
      attached_.memory->write(offset, transaction.carries_data() ? transactions_.data_of(tag)
                                                                 : std::span<const std::byte>());
  if (request.is_posted) return;
  const sim::Clock& clock = ticks_.clock();
  const Cycle ready = clock.cycle_at(clock.edge(Cycles(received.now)) + later).count();
  responder_.acknowledge(received, ready + chip_.niu.acknowledge_cycles);
}

Cycle OutsidePort::flit_received(const Packet& packet, Cycle now) {
  const Time next =
      attached_.memory->take_flit(transactions_.bytes_of(Tag::unpack(packet.tag)), packet.flits);
  return std::max(now + 1, ticks_.clock().cycle_at(next).count());
}

void OutsidePort::give(const OutsideMemory::Read& read, std::uint64_t at,
                       std::span<const std::byte> data) {
  const Tag tag = Tag::unpack(read.tag);
  if (!transactions_[tag.transaction].carries_data()) return;
  std::ranges::copy(data, transactions_.data_of(tag).subspan(at, data.size()).begin());
}

// The interface collects bytes that arrive more slowly than it sends, and then sends without a gap,
// as a DRAM tile does.
void OutsidePort::answer(const OutsideMemory::Read& read, Time first, Time last) {
  Network& network = ticks_.present(read.noc);
  Packet packet = responder_.response_packet({Tag::unpack(read.tag), read.node, read.vc, 0});
  const auto ready = [&](Time time) {
    return ticks_.clock().cycle_at(time).count() + chip_.niu.read_response_cycles;
  };
  packet.header_at = std::max(ready(first), ready(last) - (packet.flits - 1));
  network.send(packet);
  ++nius_.counters(read.noc, attached_.tile).read_responses_sent;
  network.release(read.node, read.vc, network.now());
  ticks_.resume(read.noc);
}

}  // namespace towpath::noc
