// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/chip_network.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"

namespace towpath::noc {

namespace {

// Ticks run last in their cycle, so that the network sees what software did in it.
constexpr int kTickPriority = sim::EventQueue::kPriorityMax;
// Lanes of a NIU beyond those of the initiators. Multicasts leave in order of issue, from all
// initiators: the last one of a linked path releases the path. Answers overtake requests that are
// blocked.
constexpr int kMulticastLane = kInitiatorsMax;
constexpr int kAcknowledgementLane = kMulticastLane + 1;
constexpr int kResponseLane = kAcknowledgementLane + 1;

}  // namespace

std::uint64_t ChipNetwork::Tag::pack() const {
  return std::uint64_t{transaction} << 32 | std::uint64_t{packet} << 2 |
         static_cast<std::uint64_t>(role);
}

ChipNetwork::Tag ChipNetwork::Tag::unpack(std::uint64_t bits) {
  return {static_cast<std::uint32_t>(bits >> 32),
          static_cast<std::uint32_t>(bits & 0xffffffffu) >> 2, static_cast<PacketRole>(bits & 3)};
}

ChipNetwork::ChipNetwork(sim::Simulation& simulation, std::shared_ptr<const machine::Chip> chip,
                         Options options)
    : simulation_(simulation),
      chip_(std::move(chip)),
      options_(options),
      clock_(chip_->clock),
      group_of_tile_(chip_->tiles.size(), nullptr),
      request_interval_(flit_interval(chip_->router.flit_bytes, chip_->niu.request_stream_rate)),
      response_interval_(flit_interval(chip_->router.flit_bytes, chip_->niu.response_stream_rate)) {
  TOWPATH_CHECK(
      chip_->niu.initiators <= kInitiatorsMax && chip_->niu.transaction_ids <= kTransactionIdsMax,
      "a NIU has {} initiators and {} transaction ids; {} and {} are possible",
      chip_->niu.initiators, chip_->niu.transaction_ids, kInitiatorsMax, kTransactionIdsMax);
  const std::uint64_t seed = simulation.random("on-chip network").bits();
  for (int noc = 0; noc < 2; ++noc) {
    networks_[index(noc)] =
        make_network(options_.model, *chip_, noc, static_cast<Endpoint&>(*this), seed);
    networks_[index(noc)]->watch_counted_flits(response_flits_max());
    nius_[index(noc)].resize(chip_->tiles.size());
    for (Niu& niu : nius_[index(noc)]) niu.request_stream.resize(index(chip_->niu.request_streams));
  }
  for (std::size_t number = 0; number < chip_->tiles.size(); ++number) {
    const machine::TileKind kind = chip_->tiles[number].kind;
    const bool is_worker = kind == machine::TileKind::worker;
    if (!is_worker && kind != machine::TileKind::ethernet) continue;
    groups_.push_back(
        std::make_unique<Group>(is_worker ? chip_->l1_bytes : chip_->ethernet_l1_bytes, 0));
    group_of_tile_[number] = groups_.back().get();
  }
  const int channels = chip_->dram.channels_per_group;
  if (channels == 0) return;
  channel_interval_ = flit_interval(chip_->router.flit_bytes, chip_->dram.channel_rate);
  for (const auto& tiles : chip_->dram_groups) {
    groups_.push_back(std::make_unique<Group>(
        chip_->dram.channel_bytes * static_cast<std::uint64_t>(channels), channels));
    for (const machine::Coordinate tile : tiles) {
      group_of_tile_[index(chip_->number_of(tile))] = groups_.back().get();
      for (const auto& network : networks_) {
        network->pace_by_endpoint(network->torus().node_of(tile));
      }
    }
  }
}

ChipNetwork::Niu& ChipNetwork::niu(int noc, machine::Coordinate core) {
  return nius_[index(noc)][index(chip_->number_of(core))];
}
const ChipNetwork::Niu& ChipNetwork::niu(int noc, machine::Coordinate core) const {
  return nius_[index(noc)][index(chip_->number_of(core))];
}
ChipNetwork::Group* ChipNetwork::group_of(machine::Coordinate tile) const {
  return group_of_tile_[index(chip_->number_of(tile))];
}

std::uint64_t ChipNetwork::packet_bytes_max() const {
  return static_cast<std::uint64_t>(chip_->router.packet_data_flits_max) *
         static_cast<std::uint64_t>(chip_->router.flit_bytes);
}

// Size of one packet of a request that is split.
std::uint64_t ChipNetwork::bytes_of(const Request& request, std::uint32_t packet) const {
  return std::min(packet_bytes_max(), request.size_bytes - packet * packet_bytes_max());
}

std::size_t ChipNetwork::channel_of(const Request& request, std::uint32_t packet) const {
  return static_cast<std::size_t>((request.remote.offset + packet * packet_bytes_max()) /
                                  chip_->dram.channel_bytes);
}

bool ChipNetwork::is_ready(int noc, machine::Coordinate core, int initiator) const {
  return niu(noc, core).counters.packets_to_start[index(initiator)] == 0;
}

const NiuCounters& ChipNetwork::counters(int noc, machine::Coordinate core) const {
  return niu(noc, core).counters;
}

std::int64_t ChipNetwork::unfinished() const { return unfinished_; }

void ChipNetwork::clear_outstanding(int noc, machine::Coordinate core, std::uint32_t ids) {
  NiuCounters& counters = niu(noc, core).counters;
  for (int id = 0; id < kTransactionIdsMax; ++id) {
    if ((ids >> id & 1) != 0) counters.outstanding[index(id)] = 0;
  }
  counters.multicast_ids &= ~ids;
}

void ChipNetwork::wake_when(int noc, machine::Coordinate core, Condition condition,
                            sim::Process& process) {
  niu(noc, core).waiting.push_back({condition, &process});
}

// Conditions are tested here: reading a counter is cheaper than waking a process.
void ChipNetwork::wake(Niu& niu) {
  std::erase_if(niu.waiting, [&](const Waiting& waiting) {
    if (!waiting.condition.holds(niu.counters, waiting.condition.argument)) return false;
    simulation_.wake(*waiting.process);
    return true;
  });
}

// --- time ---------------------------------------------------------------------------------------

void ChipNetwork::request_tick(Cycle cycle) {
  if (is_stepping_ || cycle >= tick_at_) return;
  tick_at_ = cycle;
  tick_time_ = clock_.edge(Cycles(cycle));
  simulation_.at(tick_time_, &ChipNetwork::tick, this, kTickPriority);
}

void ChipNetwork::tick(void* self) { static_cast<ChipNetwork*>(self)->run_cycle(); }

void ChipNetwork::run_cycle() {
  if (simulation_.now() != tick_time_) return;  // a later call asked for an earlier tick
  const Cycle now = tick_at_;
  is_stepping_ = true;
  for (std::size_t noc = 0; noc < networks_.size(); ++noc) {
    if (work_at_[noc] > now) continue;
    Network& network = *networks_[noc];
    if (network.now() < now) network.skip_to(now);
    network.step();
    work_at_[noc] = network.next_work();
  }
  is_stepping_ = false;
  tick_at_ = kNever;
  tick_time_ = Time::max();
  const Cycle next = std::min(work_at_[0], work_at_[1]);
  if (next != kNever) request_tick(std::max(next, now + 1));
}

// --- issuing ------------------------------------------------------------------------------------

// Workers that a multicast reaches.
std::vector<int> ChipNetwork::receivers_of(const Request& request) const {
  const Torus& torus = networks_[index(request.noc)]->torus();
  std::vector<int> nodes;
  for (int y = request.remote.tile.y; y <= request.last_tile.y; ++y) {
    for (int x = request.remote.tile.x; x <= request.last_tile.x; ++x) {
      const machine::Coordinate at{x, y};
      if (chip_->tile(at).kind != machine::TileKind::worker) continue;
      if (at == request.core && !request.includes_source) continue;
      nodes.push_back(torus.node_of(at));
    }
  }
  return nodes;
}

std::uint32_t ChipNetwork::add_transaction(const Request& request, int packets, int receivers) {
  std::uint32_t number;
  if (free_transactions_.empty()) {
    number = static_cast<std::uint32_t>(transactions_.size());
    transactions_.emplace_back();
  } else {
    number = free_transactions_.back();
    free_transactions_.pop_back();
  }
  Transaction& transaction = transactions_[number];
  transaction.request = request;
  transaction.issued = cycle();
  transaction.packets = packets;
  transaction.to_leave = packets;
  transaction.to_receive = packets * receivers;
  transaction.answers_left = request.is_posted ? 0 : packets * receivers;
  transaction.uses_left = transaction.to_receive + transaction.answers_left;
  transaction.data.clear();
  if (moves_data(request.kind) && may_carry(request)) transaction.data.resize(request.size_bytes);
  transaction.outside = nullptr;
  transaction.record = -1;
  if (options_.records_requests) {
    transaction.record = static_cast<std::int32_t>(records_.size());
    records_.push_back({request, transaction.issued, -1, -1, -1, -1});
  }
  Group* own = group_of(request.core);
  if (options_.checks_sources && request.kind == RequestKind::write && carries(transaction) &&
      own != nullptr) {
    std::vector<Source>& sources = own->sources;
    for (std::uint32_t packet = 0; packet < static_cast<std::uint32_t>(packets); ++packet) {
      sources.push_back({number, packet, request.local_offset + packet * packet_bytes_max(),
                         bytes_of(request, packet)});
    }
  }
  count_issued(transaction);
  return number;
}

void ChipNetwork::count_issued(const Transaction& transaction) {
  const Request& request = transaction.request;
  NiuCounters& counters = niu(request.noc, request.core).counters;
  const auto packets = static_cast<std::uint32_t>(transaction.packets);
  const auto answers = static_cast<std::uint32_t>(transaction.answers_left);
  counters.packets_to_start[index(request.initiator)] += packets;
  if (request.kind == RequestKind::read) {
    counters.reads_issued += packets;
  } else if (request.kind == RequestKind::atomic_increment) {
    counters.atomics_issued += packets;
    counters.atomic_responses_awaited += answers;
  } else if (request.is_posted) {
    counters.posted_writes_issued += packets;
  } else {
    counters.writes_issued += packets;
    counters.write_acks_awaited += answers;
  }
  const std::size_t id = index(request.transaction_id);
  if (!request.is_posted) {
    counters.outstanding[id] += transaction.packets;
    if (request.is_multicast) counters.multicast_ids |= 1u << id;
  }
  if (request.kind == RequestKind::write) counters.outgoing[id] += transaction.packets;
}

// Everything but the destination. Data is read from memory in overlapping streams.
Packet ChipNetwork::request_packet(const Transaction& transaction, Niu& own,
                                   std::uint64_t size_bytes) const {
  const Request& request = transaction.request;
  const auto flit = static_cast<std::uint64_t>(chip_->router.flit_bytes);
  const int data_flits =
      request.kind == RequestKind::write ? static_cast<int>((size_bytes + flit - 1) / flit) : 0;
  Packet packet;
  packet.source = networks_[index(request.noc)]->torus().node_of(request.core);
  packet.flits = 1 + data_flits;
  packet.packet_class = static_cast<std::uint8_t>(request.vc >> 1);
  packet.buddy = request.vc & 1;
  packet.keeps_buddy = request.is_static_vc;
  packet.keeps_class = request.is_static_vc;
  packet.lane =
      static_cast<std::uint8_t>(request.is_multicast ? kMulticastLane : request.initiator);
  packet.header_at = cycle() + chip_->niu.request_cycles;
  // What comes from outside the chip is not read from a memory first.
  if (data_flits > 0 && transaction.outside == nullptr) {
    // A multicast to its own source writes the L1 that it reads.
    const PaceTime interval =
        request_interval_ + (request.includes_source ? meeting(request_interval_) : 0);
    PaceTime& stream = own.request_stream[own.next_stream];
    own.next_stream = (own.next_stream + 1) % own.request_stream.size();
    packet.data_at = std::max(stream, packet.header_at * kPaceCycle) + interval;
    packet.data_interval = interval;
    stream = packet.data_at + (data_flits - 1) * interval;
  }
  return packet;
}

// `receivers` are a multicast's; empty otherwise.
void ChipNetwork::send_packets(std::uint32_t number, const std::vector<int>& receivers) {
  const Request& request = transactions_[number].request;
  const int packets = transactions_[number].packets;
  Network& network = *networks_[index(request.noc)];
  for (int i = 0; i < packets; ++i) {
    const auto part = static_cast<std::uint32_t>(i);
    Packet packet = request_packet(transactions_[number], niu(request.noc, request.core),
                                   bytes_of(request, part));
    packet.tag = Tag{number, part, PacketRole::request}.pack();
    if (request.is_multicast) {
      packet.keeps_path = request.is_linked;
      network.send_multicast(packet, receivers);
    } else {
      packet.destination = network.torus().node_of(request.remote.tile);
      network.send(packet);
    }
  }
}

int ChipNetwork::packets_of(const Request& request) const {
  if (!moves_data(request.kind)) return 1;
  return static_cast<int>((request.size_bytes + packet_bytes_max() - 1) / packet_bytes_max());
}

void ChipNetwork::start(std::uint32_t number, const std::vector<int>& receivers) {
  const int noc = transactions_[number].request.noc;
  ++unfinished_;
  Network& network = *networks_[index(noc)];
  if (network.now() < cycle()) network.skip_to(cycle());
  send_packets(number, receivers);
  work_at_[index(noc)] = network.now();
  request_tick(network.now());
}

void ChipNetwork::issue(const Request& request) {
  check(request);
  std::vector<int> receivers;
  if (request.is_multicast) {
    receivers = receivers_of(request);
    auto& linked = niu(request.noc, request.core).linked[index(request.vc & 1)];
    linked.reset();
    if (request.is_linked) linked = rectangle_of(request);
  }
  start(add_transaction(request, packets_of(request),
                        request.is_multicast ? static_cast<int>(receivers.size()) : 1),
        receivers);
}

// --- packets under way --------------------------------------------------------------------------

void ChipNetwork::packet_started(const Packet& packet, Cycle now) {
  const Tag tag = Tag::unpack(packet.tag);
  if (tag.role != PacketRole::request) return;
  const Transaction& transaction = transactions_[tag.transaction];
  const Request& request = transaction.request;
  Niu& own = niu(request.noc, request.core);
  --own.counters.packets_to_start[index(request.initiator)];
  if (transaction.record >= 0 && tag.packet == 0) {
    records_[index(transaction.record)].started = now;
  }
  wake(own);
}

std::span<std::byte> ChipNetwork::data_of(Transaction& transaction, std::uint32_t packet) {
  return std::span(transaction.data)
      .subspan(packet * packet_bytes_max(), bytes_of(transaction.request, packet));
}

// The last flit has left. Until now the source could still change what is sent.
void ChipNetwork::packet_sent(const Packet& packet, Cycle now) {
  const Tag tag = Tag::unpack(packet.tag);
  if (tag.role == PacketRole::acknowledgement) return;
  Transaction& transaction = transactions_[tag.transaction];
  const Request& request = transaction.request;
  const std::uint64_t first = tag.packet * packet_bytes_max();
  if (tag.role == PacketRole::read_response) {
    if (OutsideMemory* attached = attached_to(request.remote.tile); attached != nullptr) {
      return attached->answer_left(bytes_of(request, tag.packet));
    }
    if (!carries(transaction)) return;
    group_of(request.remote.tile)
        ->memory.read(request.remote.offset + first, data_of(transaction, tag.packet));
    return;
  }
  if (--transaction.to_leave == 0 && transaction.record >= 0) {
    records_[index(transaction.record)].sent = now;
  }
  Niu& own = niu(request.noc, request.core);
  if (request.kind == RequestKind::write) {
    if (transaction.outside == nullptr) take_source(tag, transaction);
    --own.counters.outgoing[index(request.transaction_id)];
  }
  if (request.kind == RequestKind::write || request.kind == RequestKind::inline_write) {
    ++(request.is_posted ? own.counters.posted_writes_sent : own.counters.writes_sent);
  }
  wake(own);
  if (transaction.outside != nullptr && transaction.to_leave == 0) {
    transaction.outside->request_left(transaction.outside_number);
  }
}

// The bytes that a packet of a write takes from its core's memory.
void ChipNetwork::take_source(const Tag& tag, Transaction& transaction) {
  const Request& request = transaction.request;
  Group& group = *group_of(request.core);
  if (carries(transaction)) {
    group.memory.read(request.local_offset + tag.packet * packet_bytes_max(),
                      data_of(transaction, tag.packet));
  }
  std::erase_if(group.sources, [&](const Source& source) {
    return source.transaction == tag.transaction && source.packet == tag.packet;
  });
}

void ChipNetwork::packet_received(const Packet& packet, int node, int vc, Cycle now) {
  const Tag tag = Tag::unpack(packet.tag);
  Transaction& transaction = transactions_[tag.transaction];
  if (tag.role == PacketRole::request) {
    if (--transaction.to_receive == 0 && transaction.record >= 0) {
      records_[index(transaction.record)].received = now;
    }
    request_received(tag, transaction, node, vc, now);
  } else {
    answer_received(tag, transaction, now);
  }
  if (transaction.outside != nullptr) tell_outside(transaction);
  release(tag.transaction);
}

void ChipNetwork::request_received(const Tag& tag, Transaction& transaction, int node, int vc,
                                   Cycle now) {
  const Request& request = transaction.request;
  if (attached_to(request.remote.tile) != nullptr) {
    return request_received_for_attached(tag, transaction, node, vc, now);
  }
  if (request.kind == RequestKind::read) {
    read_received(tag, transaction, node, vc, now);
    return;
  }
  const machine::Coordinate at = networks_[index(request.noc)]->torus().coordinate_of(node);
  const std::uint64_t offset = request.remote.offset + tag.packet * packet_bytes_max();
  Cycle ready = now + chip_->niu.acknowledge_cycles;
  if (request.kind == RequestKind::write) {
    if (carries(transaction)) {
      change(at, offset, data_of(transaction, tag.packet), {.request = &request});
    } else {
      changed(*group_of(at), offset, bytes_of(request, tag.packet));
    }
  } else {
    std::uint32_t word = request.value;
    if (request.kind == RequestKind::atomic_increment) {
      ready += chip_->niu.atomic_cycles;
      word += group_of(at)->memory.load_word(offset);
    }
    change(at, offset, std::as_bytes(std::span(&word, 1)), {.request = &request});
  }
  // The PCIe tile's writes are acknowledged when the tile has them: measured, DRAM is no slower
  // than L1 (validation/DEVIATIONS.md). Those of cores have what is assumed for them.
  if (is_dram(at) && transaction.outside == nullptr) ready += chip_->dram.write_cycles;
  if (!request.is_posted) acknowledge(tag, transaction, node, ready);
}

void ChipNetwork::acknowledge(const Tag& tag, const Transaction& transaction, int node,
                              Cycle ready) {
  Packet answer;
  answer.source = node;
  answer.destination =
      networks_[index(transaction.request.noc)]->torus().node_of(transaction.request.core);
  answer.packet_class = static_cast<std::uint8_t>(PacketClass::response);
  answer.keeps_buddy = false;
  answer.lane = kAcknowledgementLane;
  answer.header_at = ready;
  answer.tag = Tag{tag.transaction, tag.packet, PacketRole::acknowledgement}.pack();
  networks_[index(transaction.request.noc)]->send(answer);
}

Packet ChipNetwork::response_packet(const Tag& tag, const Transaction& transaction, int node,
                                    int vc) const {
  const Request& request = transaction.request;
  const auto flit = static_cast<std::uint64_t>(chip_->router.flit_bytes);
  const std::uint64_t size_bytes = bytes_of(request, tag.packet);
  Packet answer;
  answer.source = node;
  answer.destination = networks_[index(request.noc)]->torus().node_of(request.core);
  answer.flits = 1 + static_cast<int>((size_bytes + flit - 1) / flit);
  const int dateline = (vc >> 1) >= chip_->router.classes ? 1 : 0;
  answer.lane = static_cast<std::uint8_t>(kResponseLane + dateline);
  answer.packet_class = static_cast<std::uint8_t>(PacketClass::response);
  answer.keeps_buddy = false;
  answer.tag = Tag{tag.transaction, tag.packet, PacketRole::read_response}.pack();
  return answer;
}

// Responses read their data one after the other, and longer while the other NoC's read the same L1.
// Those of a DRAM channel, and those to requests on the same side of the dateline, leave in order.
// Until a response has read its data, the VC of its request is held, and the next request waits in
// the network.
void ChipNetwork::respond_with_data(const Tag& tag, const Transaction& transaction, int node,
                                    int vc, Cycle now) {
  const Request& request = transaction.request;
  const int noc = request.noc;
  const bool from_dram = is_dram(request.remote.tile);
  const machine::Coordinate at = networks_[index(noc)]->torus().coordinate_of(node);
  Niu& own = niu(noc, at);
  PaceTime interval =
      from_dram ? std::max(channel_interval_, response_interval_) : response_interval_;
  const bool is_shared = !from_dram && niu(1 - noc, at).response_stream > now * kPaceCycle;
  if (is_shared) interval += meeting(response_interval_);
  PaceTime& stream =
      from_dram ? group_of(request.remote.tile)->channel_free[channel_of(request, tag.packet)]
                : own.response_stream;
  int wait = from_dram ? chip_->dram.read_cycles : chip_->niu.read_response_cycles;
  // Measured from the host, the memory's time comes on top of the interface's (host_link/accesses);
  // for cores both together are what is assumed.
  if (from_dram && transaction.outside != nullptr) wait += chip_->niu.read_response_cycles;
  Packet answer = response_packet(tag, transaction, node, vc);
  const int data_flits = answer.flits - 1;
  const PaceTime start = std::max(stream, now * kPaceCycle);
  stream = start + (1 + data_flits) * interval;
  if (from_dram) {
    const std::size_t queue = channel_of(request, tag.packet) % 2;
    answer.lane = static_cast<std::uint8_t>(kResponseLane + static_cast<int>(queue));
  }
  answer.header_at = (start + kPaceCycle - 1) / kPaceCycle + wait;
  answer.data_at = answer.header_at * kPaceCycle + interval;
  answer.data_interval = interval;
  // the NIU collects data that arrives slower than it sends, then sends without a gap
  if (from_dram) {
    answer.header_at += data_flits * (interval - kPaceCycle) / kPaceCycle;
    answer.data_at = answer.data_interval = 0;
  }
  ++own.counters.read_responses_sent;
  if (from_dram) {  // which serves many reads at once
    networks_[index(noc)]->send(answer);
    return;
  }
  answer.is_counted = true;
  networks_[index(noc)]->send(answer);
  networks_[index(noc)]->hold(node, vc, std::max(now + 1, stream / kPaceCycle));
}

// A NIU answers no read of an L1 while more flits of responses stand in it than its way from memory
// holds. The read waits there, and requests behind it on its VC wait in the network.
void ChipNetwork::read_received(const Tag& tag, const Transaction& transaction, int node, int vc,
                                Cycle now) {
  const Request& request = transaction.request;
  Network& network = *networks_[index(request.noc)];
  if (is_dram(request.remote.tile) || network.counted_flits(node) <= response_flits_max()) {
    respond_with_data(tag, transaction, node, vc, now);
    return;
  }
  niu(request.noc, request.remote.tile).waiting_reads.push_back({tag, vc});
  network.hold(node, vc, kNever);
}

void ChipNetwork::counted_flits_fell(const Packet& packet, Cycle now) {
  const Request& request = transactions_[Tag::unpack(packet.tag).transaction].request;
  Network& network = *networks_[index(request.noc)];
  std::deque<WaitingRead>& reads = niu(request.noc, request.remote.tile).waiting_reads;
  while (!reads.empty() && network.counted_flits(packet.source) <= response_flits_max()) {
    const auto [tag, vc] = reads.front();
    reads.pop_front();
    network.release(packet.source, vc, now + 1);
    respond_with_data(tag, transactions_[tag.transaction], packet.source, vc, now);
  }
}

void ChipNetwork::answer_received(const Tag& tag, Transaction& transaction, Cycle now) {
  const Request& request = transaction.request;
  Niu& own = niu(request.noc, request.core);
  --own.counters.outstanding[index(request.transaction_id)];
  if (tag.role == PacketRole::read_response) {
    ++own.counters.read_responses_received;
    const std::uint64_t offset = request.local_offset + tag.packet * packet_bytes_max();
    if (transaction.outside != nullptr) {
      // the data stays with the request
    } else if (carries(transaction)) {
      change(request.core, offset, data_of(transaction, tag.packet), {.request = &request});
    } else {
      changed(*group_of(request.core), offset, bytes_of(request, tag.packet));
    }
  } else if (request.kind == RequestKind::atomic_increment) {
    ++own.counters.atomic_responses_received;
  } else {
    ++own.counters.write_acks_received;
  }
  if (--transaction.answers_left == 0 && transaction.record >= 0) {
    records_[index(transaction.record)].completed = now;
  }
  wake(own);
}

void ChipNetwork::release(std::uint32_t number) {
  if (--transactions_[number].uses_left > 0) return;
  free_transactions_.push_back(number);
  --unfinished_;
}

// A DRAM channel takes the data of writes at its own rate, through whichever NIU it arrives.
Cycle ChipNetwork::flit_received(const Packet& packet, int, Cycle now) {
  const Tag tag = Tag::unpack(packet.tag);
  const Request& request = transactions_[tag.transaction].request;
  if (tag.role != PacketRole::request || request.kind != RequestKind::write) return now + 1;
  if (OutsideMemory* attached = attached_to(request.remote.tile); attached != nullptr) {
    const Time next = attached->take_flit(bytes_of(request, tag.packet), packet.flits);
    return std::max(now + 1, clock_.cycle_at(next).count());
  }
  PaceTime& free = group_of(request.remote.tile)->channel_free[channel_of(request, tag.packet)];
  // A header is no data, which counts in the host's short packets: all flits of one together take
  // what its data takes. With packets of cores the channel's rate was fitted, headers included.
  const bool is_outside = transactions_[tag.transaction].outside != nullptr;
  const PaceTime interval =
      is_outside ? channel_interval_ * (packet.flits - 1) / packet.flits : channel_interval_;
  free = std::max(free, (now - 1) * kPaceCycle + 1) + interval;
  return std::max(now + 1, (free + kPaceCycle - 1) / kPaceCycle);
}

}  // namespace towpath::noc
