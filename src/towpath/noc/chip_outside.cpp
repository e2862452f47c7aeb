// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/noc/chip_network.hpp"

// What is behind a tile without memory: requests that come from there, and memory that cores reach
// there.

namespace towpath::noc {

// --- requests from outside ----------------------------------------------------------------------

void ChipNetwork::issue(const Request& request, const OutsideRequest& outside) {
  check_outside(request, outside);
  const std::uint32_t number = add_transaction(request, packets_of(request), 1);
  Transaction& transaction = transactions_[number];
  transaction.outside = &outside.owner;
  transaction.outside_number = outside.number;
  if (!outside.carries_data) transaction.data.clear();
  if (carries(transaction) && request.kind == RequestKind::write) {
    std::ranges::copy(outside.data, transaction.data.begin());
  }
  start(number, {});
}

void ChipNetwork::tell_outside(const Transaction& transaction) const {
  const bool is_over =
      transaction.request.is_posted ? transaction.to_receive == 0 : transaction.answers_left == 0;
  if (!is_over) return;
  const bool is_read = transaction.request.kind == RequestKind::read;
  transaction.outside->request_completed(
      transaction.outside_number,
      is_read ? std::span<const std::byte>(transaction.data) : std::span<const std::byte>());
}

// --- memory that is not on the chip -------------------------------------------------------------

void ChipNetwork::attach(machine::Coordinate tile, OutsideMemory& memory) {
  TOWPATH_CHECK(group_of(tile) == nullptr && attached_ == nullptr,
                "tile ({}, {}) has memory already, or another tile has one that is not on the chip",
                tile.x, tile.y);
  attached_tile_ = tile;
  attached_ = &memory;
  for (const auto& network : networks_) {
    network->hold_up_by_endpoint(network->torus().node_of(tile));
  }
}

void ChipNetwork::request_received_for_attached(const Tag& tag, Transaction& transaction, int node,
                                                int vc, Cycle now) {
  const Request& request = transaction.request;
  const std::uint64_t offset = request.remote.offset + tag.packet * packet_bytes_max();
  if (request.kind == RequestKind::read) {
    networks_[index(request.noc)]->hold(node, vc, kNever);
    return attached_->read(
        {offset, bytes_of(request, tag.packet), tag.pack(), request.noc, node, vc});
  }
  const Time later =
      attached_->write(offset, carries(transaction) ? data_of(transaction, tag.packet)
                                                    : std::span<const std::byte>());
  const Cycle ready = clock_.cycle_at(clock_.edge(Cycles(now)) + later).count();
  if (!request.is_posted)
    acknowledge(tag, transaction, node, ready + chip_->niu.acknowledge_cycles);
}

void ChipNetwork::give(const OutsideMemory::Read& read, std::uint64_t at,
                       std::span<const std::byte> data) {
  const Tag tag = Tag::unpack(read.tag);
  Transaction& transaction = transactions_[tag.transaction];
  if (!carries(transaction)) return;
  const std::span<std::byte> to = data_of(transaction, tag.packet).subspan(at, data.size());
  std::ranges::copy(data, to.begin());
}

// The interface collects bytes that come more slowly than it sends, then sends without a gap, as
// that of a DRAM tile does.
void ChipNetwork::answer(const OutsideMemory::Read& read, Time first, Time last) {
  const Tag tag = Tag::unpack(read.tag);
  Network& network = *networks_[index(read.noc)];
  if (network.now() < cycle()) network.skip_to(cycle());
  Packet packet = response_packet(tag, transactions_[tag.transaction], read.node, read.vc);
  const auto ready = [&](Time time) {
    return clock_.cycle_at(time).count() + chip_->niu.read_response_cycles;
  };
  packet.header_at = std::max(ready(first), ready(last) - (packet.flits - 1));
  network.send(packet);
  ++niu(read.noc, attached_tile_).counters.read_responses_sent;
  network.release(read.node, read.vc, network.now());
  work_at_[index(read.noc)] = network.now();
  request_tick(network.now());
}

}  // namespace towpath::noc
