// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/agenda.hpp"

#include <algorithm>

namespace towpath::collective::time_only {

void Agenda::begin_invocation(Time now, Time deadline) {
  deadline_ = deadline;
  for (Partition& each : partitions_) each.reached = now;
}

void Agenda::set_horizon(Time horizon) {
  horizon_ = horizon;
  limit_ = std::min(limit_, horizon_);
}

bool Agenda::take_ready(std::uint32_t partition, std::vector<std::uint32_t>& blocks) {
  blocks.clear();
  std::swap(blocks, partitions_[partition].ready);
  ready_count_ -= blocks.size();
  return !blocks.empty();
}

void Agenda::unpark() {
  for (const std::uint32_t number : std::exchange(parked_, {})) make_ready(table_[number]);
}

void Agenda::open(std::uint32_t partition) {
  limit_ = until();
  std::erase_if(partitions_[partition].stalled,
                [&](std::uint32_t block) { return !stays_stalled(block); });
}

void Agenda::close(std::uint32_t partition, Time first) {
  partitions_[partition].reached = std::min(limit_, first);
}

void Agenda::stall(const Block& block) {
  partitions_[block.partition].stalled.push_back(block.number);
  limit_ = std::min(limit_, earliest_resumption(block));
}

bool Agenda::stays_stalled(std::uint32_t number) {
  const Block& block = table_[number];
  if (block.state == State::ready) return false;
  limit_ = std::min(limit_, earliest_resumption(block));
  return true;
}

Time Agenda::earliest_resumption(const Block& block) const {
  const bool is_receiver = block.state == State::data;
  const Block& peer = table_[is_receiver ? block.receive_from : block.send_to];
  const Time lookahead = is_receiver ? peer.lookahead : peer.credit_delay;
  return std::max(block.at, partitions_[peer.partition].reached + lookahead);
}

void Agenda::reach(Time first) {
  for (Partition& each : partitions_) each.reached = std::max(each.reached, first);
}

void Agenda::shift(Time by) {
  for (Partition& each : partitions_) each.reached += by;
}

}  // namespace towpath::collective::time_only
