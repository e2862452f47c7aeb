// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/chip_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/noc/flit_network.hpp"
#include "towpath/noc/packet_network.hpp"

namespace towpath::noc {

ChipNetwork::ChipNetwork(sim::Simulation& simulation, std::shared_ptr<const machine::Chip> chip,
                         Options options)
    : simulation_(simulation),
      chip_(std::move(chip)),
      options_(options),
      clock_(chip_->clock),
      ticks_(simulation, clock_, networks_),
      memories_(*chip_),
      nius_(*chip_),
      transactions_(*chip_, options_.records_requests),
      sources_(memories_, transactions_, simulation_, clock_),
      linked_(*chip_),
      responder_(*chip_, networks_, transactions_, nius_),
      requester_(*chip_, networks_, transactions_),
      outside_(*chip_, ticks_, transactions_, responder_, nius_),
      rules_(*chip_, memories_, outside_.attached(), linked_) {
  TOWPATH_CHECK(
      chip_->niu.initiators <= kInitiatorsMax && chip_->niu.transaction_ids <= kTransactionIdsMax,
      "a NIU has {} initiators and {} transaction ids; {} and {} are possible",
      chip_->niu.initiators, chip_->niu.transaction_ids, kInitiatorsMax, kTransactionIdsMax);
  const std::uint64_t seed = simulation.random("on-chip network").bits();
  for (int noc = 0; noc < 2; ++noc) {
    networks_[index(noc)] =
        make_network(options_.model, *chip_, noc, static_cast<Endpoint&>(*this), seed);
    Network& network = *networks_[index(noc)];
    network.watch_counted_flits(responder_.response_flits_max());
    if (chip_->dram.channels_per_group == 0) continue;
    for (const auto& tiles : chip_->dram_groups) {
      for (const machine::Coordinate tile : tiles) {
        network.pace_by_endpoint(network.torus().node_of(tile));
      }
    }
  }
}

// --- issuing ------------------------------------------------------------------------------------

void ChipNetwork::issue(const Request& request) {
  rules_.check(request);
  TOWPATH_CHECK(is_ready(request.noc, request.core, request.initiator),
                "initiator {} of core ({}, {}) still has a request that has won no VC",
                request.initiator, request.core.x, request.core.y);
  std::vector<machine::Coordinate> receivers;
  if (request.is_multicast) {
    receivers = receivers_of(*chip_, request);
    linked_.update(request);
  }
  const std::uint32_t number = transactions_.add(
      request, request.is_multicast ? static_cast<int>(receivers.size()) : 1, cycle());
  Transaction& transaction = transactions_[number];
  if (moves_data(request.kind) && may_carry(request)) transaction.data.resize(request.size_bytes);
  if (options_.checks_sources && request.kind == RequestKind::write && transaction.carries_data()) {
    sources_.add(number);
  }
  start(number, receivers);
}

void ChipNetwork::issue(const Request& request, const OutsideRequest& outside) {
  rules_.check_outside(request);
  const bool is_write = request.kind == RequestKind::write;
  TOWPATH_CHECK(!is_write || !outside.carries_data || outside.data.size() == request.size_bytes,
                "a write of {} bytes is given {}", request.size_bytes, outside.data.size());
  const std::uint32_t number = transactions_.add(request, 1, cycle());
  Transaction& transaction = transactions_[number];
  transaction.outside = &outside.owner;
  transaction.outside_number = outside.number;
  if (outside.carries_data && may_carry(request)) {
    transaction.data.resize(request.size_bytes);
    if (is_write) std::ranges::copy(outside.data, transaction.data.begin());
  }
  start(number, {});
}

void ChipNetwork::start(std::uint32_t number, const std::vector<machine::Coordinate>& receivers) {
  const Transaction& transaction = transactions_[number];
  const Request& request = transaction.request;
  nius_.counters(request.noc, request.core)
      .count_issued(request, static_cast<std::uint32_t>(transaction.packets),
                    static_cast<std::uint32_t>(transaction.answers_left));
  const int noc = request.noc;
  ticks_.present(noc);
  requester_.send(number, receivers, cycle());
  ticks_.resume(noc);
}

// --- packets under way --------------------------------------------------------------------------

void ChipNetwork::packet_started(const Packet& packet, Cycle now) {
  const Tag tag = Tag::unpack(packet.tag);
  if (tag.role != PacketRole::request) return;
  const Transaction& transaction = transactions_[tag.transaction];
  const Request& request = transaction.request;
  --nius_.counters(request.noc, request.core).packets_to_start[index(request.initiator)];
  RequestTimes* const record = transactions_.record_of(transaction);
  if (record != nullptr && tag.packet == 0) record->started = now;
  nius_.wake(request.noc, request.core, simulation_);
}

// The last flit has left. Until now the source could still change the bytes of the flit.
void ChipNetwork::packet_sent(const Packet& packet, Cycle now) {
  const Tag tag = Tag::unpack(packet.tag);
  if (tag.role == PacketRole::acknowledgement) return;
  Transaction& transaction = transactions_[tag.transaction];
  const Request& request = transaction.request;
  const std::uint64_t first = transactions_.sizes().offset_of(tag.packet);
  if (tag.role == PacketRole::read_response) {
    OutsideMemory* const attached = outside_.attached().at(request.remote.tile);
    if (attached != nullptr) return attached->answer_left(transactions_.bytes_of(tag));
    if (!transaction.carries_data()) return;
    memories_.of(request.remote.tile)
        ->bytes.read(request.remote.offset + first, transactions_.data_of(tag));
    return;
  }
  RequestTimes* const record = transactions_.record_of(transaction);
  if (--transaction.to_leave == 0 && record != nullptr) record->sent = now;
  if (request.kind == RequestKind::write && transaction.outside == nullptr) {
    if (transaction.carries_data()) {
      memories_.of(request.core)
          ->bytes.read(request.local_offset + first, transactions_.data_of(tag));
    }
    sources_.remove(tag);
  }
  nius_.counters(request.noc, request.core).count_sent(request);
  nius_.wake(request.noc, request.core, simulation_);
  if (transaction.outside != nullptr && transaction.to_leave == 0) {
    transaction.outside->request_left(transaction.outside_number);
  }
}

void ChipNetwork::packet_received(const Packet& packet, int node, int vc, Cycle now) {
  const Tag tag = Tag::unpack(packet.tag);
  Transaction& transaction = transactions_[tag.transaction];
  if (tag.role == PacketRole::request) {
    RequestTimes* const record = transactions_.record_of(transaction);
    if (--transaction.to_receive == 0 && record != nullptr) record->received = now;
    request_received({tag, node, vc, now});
  } else {
    answer_received(tag, now);
  }
  if (transaction.outside != nullptr) transaction.report_completion();
  transactions_.release(tag.transaction);
}

void ChipNetwork::request_received(const Received& received) {
  const auto& [tag, node, vc, now] = received;
  const Transaction& transaction = transactions_[tag.transaction];
  const Request& request = transaction.request;
  Network& network = *networks_[index(request.noc)];
  if (outside_.attached().at(request.remote.tile) != nullptr) {
    return outside_.request_received(received, network);
  }
  if (request.kind == RequestKind::read) return responder_.read(received);
  const machine::Coordinate at = network.torus().coordinate_of(node);
  const std::uint64_t offset = request.remote.offset + transactions_.sizes().offset_of(tag.packet);
  Cycle ready = now + chip_->niu.acknowledge_cycles;
  if (request.kind == RequestKind::write) {
    write(tag, at, offset);
  } else {
    std::uint32_t word = request.value;
    if (request.kind == RequestKind::atomic_increment) {
      ready += chip_->niu.atomic_cycles;
      word += memories_.of(at)->bytes.load_word(offset);
    }
    change(at, offset, std::as_bytes(std::span(&word, 1)), {.request = &request});
  }
  // The PCIe tile acknowledges writes when it has received them: measurements show that DRAM is no
  // slower than L1 (validation/DEVIATIONS.md). A core's write takes the chip's assumed time.
  if (memories_.is_dram(at) && transaction.outside == nullptr) ready += chip_->dram.write_cycles;
  if (!request.is_posted) responder_.acknowledge(received, ready);
}

void ChipNetwork::answer_received(const Tag& tag, Cycle now) {
  Transaction& transaction = transactions_[tag.transaction];
  const Request& request = transaction.request;
  nius_.counters(request.noc, request.core).count_answer(request);
  // The data for an off-chip initiator stays with the request.
  if (tag.role == PacketRole::read_response && transaction.outside == nullptr) {
    write(tag, request.core, request.local_offset + transactions_.sizes().offset_of(tag.packet));
  }
  RequestTimes* const record = transactions_.record_of(transaction);
  if (--transaction.answers_left == 0 && record != nullptr) record->completed = now;
  nius_.wake(request.noc, request.core, simulation_);
}

void ChipNetwork::counted_flits_fell(const Packet& packet, Cycle now) {
  const Request& request = transactions_[Tag::unpack(packet.tag).transaction].request;
  responder_.resume(request.noc, packet.source, now);
}

Cycle ChipNetwork::flit_received(const Packet& packet, int, Cycle now) {
  const Tag tag = Tag::unpack(packet.tag);
  const Request& request = transactions_[tag.transaction].request;
  if (tag.role != PacketRole::request || request.kind != RequestKind::write) return now + 1;
  return outside_.attached().at(request.remote.tile) != nullptr
             ? outside_.flit_received(packet, now)
             : responder_.dram_flit_received(packet, now);
}

// --- memory -------------------------------------------------------------------------------------

void ChipNetwork::store(machine::Coordinate core, std::uint64_t offset,
                        std::span<const std::byte> from) {
  static_cast<void>(memories_.checked(core, offset, from.size()));
  if (options_.carries_data || from.size() == kWordBytes) change(core, offset, from, {});
}

void ChipNetwork::store_word(machine::Coordinate core, std::uint64_t offset, std::uint32_t value) {
  static_cast<void>(memories_.checked_word(core, offset));
  store(core, offset, std::as_bytes(std::span(&value, 1)));
}

void ChipNetwork::write(const Tag& tag, machine::Coordinate tile, std::uint64_t offset) {
  const Transaction& transaction = transactions_[tag.transaction];
  if (transaction.carries_data()) {
    change(tile, offset, transactions_.data_of(tag), {.request = &transaction.request});
  } else {
    TileMemories::written(*memories_.of(tile), offset, transactions_.bytes_of(tag), simulation_);
  }
}

void ChipNetwork::change(machine::Coordinate tile, std::uint64_t offset,
                         std::span<const std::byte> bytes, const SourceGuard::Writer& writer) {
  TileMemory& memory = *memories_.of(tile);
  sources_.check({tile, offset, bytes}, writer);
  memory.bytes.write(offset, bytes);
  TileMemories::written(memory, offset, bytes.size(), simulation_);
}

void ChipNetwork::attach(machine::Coordinate tile, OutsideMemory& memory) {
  TOWPATH_CHECK(memories_.of(tile) == nullptr && outside_.attached().memory == nullptr,
                "tile ({}, {}) has memory already, or another tile has one that is not on the chip",
                tile.x, tile.y);
  outside_.attached() = {tile, &memory};
  for (const auto& network : networks_) {
    network->hold_up_by_endpoint(network->torus().node_of(tile));
  }
}

// --- reports ------------------------------------------------------------------------------------

std::string ChipNetwork::describe_unanswered(int noc, machine::Coordinate core) const {
  const Transaction* const first = transactions_.oldest_open(noc, core);
  if (first == nullptr) return linked_.describe(noc, core);
  const std::string text =
      fmt::format("its {}, issued in cycle {},", describe(first->request), first->issued);
  if (first->to_leave > 0) {
    return text + fmt::format(" has {} of {} packets to send", first->to_leave, first->packets);
  }
  return text + fmt::format(" lacks {} answer{}", first->answers_left,
                            first->answers_left == 1 ? "" : "s");
}

std::string ChipNetwork::describe_deadlock() const {
  for (const auto& network : networks_) {
    const std::string cycle = network->describe_deadlock();
    if (!cycle.empty()) return cycle;
  }
  return linked_.describe_any();
}

std::vector<std::string> deadlock_cycle(const ChipNetwork& network) {
  for (const int noc : {0, 1}) {
    std::vector<std::string> cycle = network.network(noc).deadlock_cycle();
    if (!cycle.empty()) return cycle;
  }
  return {};
}

std::unique_ptr<Network> make_network(NetworkModel model, const machine::Chip& chip, int noc,
                                      Endpoint& endpoint, std::uint64_t seed) {
  if (model == NetworkModel::packets) return std::make_unique<PacketNetwork>(chip, noc, endpoint);
  return std::make_unique<FlitNetwork>(chip, noc, endpoint, seed);
}

}  // namespace towpath::noc
