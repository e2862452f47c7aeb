// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/fabric/fabric_router.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/noc/router/torus.hpp"
#include "towpath/tenstorrent/fabric/fabric_packet.hpp"
#include "towpath/tenstorrent/fabric/fabric_watch.hpp"
#include "towpath/tenstorrent/fabric/router_costs.hpp"

namespace towpath::tenstorrent::fabric {

namespace {

const RouterCosts& costs_of(const EthernetCore& core) {
  return kRouterCosts.of(core.network().chip());
}

Header load_header(EthernetCore& core, std::uint64_t slot) {
  Header header;
  core.load(slot, bytes_of(header));
  return header;
}

void send(EthernetCore& core, int queue, std::uint64_t from, std::uint64_t to,
          std::uint64_t size_bytes) {
  core.eth_send_packet_bytes_unsafe(queue, from, to, size_bytes);
}

WriteOptions of_receiver(bool is_posted) { return {.is_posted = is_posted, .noc = kReceiverNoc}; }

// Notifies a client of released slots.
void write_word(EthernetCore& core, const noc::Address& to, std::uint32_t value) {
  core.noc_inline_dw_write(to, value, {.is_posted = true, .noc = kSenderNoc});
}

// The later of two counts. A resent answer is read from L1 again, which may already contain a newer
// one, so a following answer can be lower.
std::uint32_t later(std::uint32_t one, std::uint32_t other) {
  return static_cast<std::int32_t>(other - one) > 0 ? other : one;
}

// Moves packets from the channels to the far end.
class Sender {
 public:
  Sender(EthernetCore& core, const RouterConfig& config)
      : core_(core),
        config_(config),
        layout_(config.layout),
        sent_cycles_(costs_of(core).sent + (config.layout.channels - 1) * costs_of(core).channel),
        channels_(index(config.layout.channels)) {}

  // Each returns true if there was any work.
  bool take_answers();
  bool send_packet();

 private:
  struct Channel {
    std::uint32_t sent = 0;
    std::uint32_t released = 0;
    std::uint32_t told = 0;  // part of `released` already sent to its client
  };
  bool needs_bubble(int channel) const { return config_.is_ring && channel != kStraightChannel; }
  bool may_send(int channel);
  int first_channel() const;
  void tell_client(int channel);
  noc::Address worker_word(int channel);
  void close(int channel);

  EthernetCore& core_;
  const RouterConfig& config_;
  const Layout& layout_;
  noc::Cycle sent_cycles_;
  std::vector<Channel> channels_;
  std::deque<int> under_way_;  // channel of each packet with a slot that is not free yet
  std::uint32_t sent_ = 0;
  std::uint32_t released_ = 0;
  std::uint32_t arrived_ = 0;    // number at the far end
  std::uint32_t completed_ = 0;  // number completed there
};

bool Sender::take_answers() {
  arrived_ = later(arrived_, core_.load_word(layout_.answer_at()));
  completed_ = later(completed_, core_.load_word(layout_.answer_at() + 4));
  const std::uint32_t releasable = config_.is_ring ? arrived_ : completed_;
  for (; released_ != releasable; ++released_) {
    ++channels_[index(under_way_.front())].released;
    under_way_.pop_front();
  }
  bool did_anything = false;
  for (int channel = 0; channel < layout_.channels; ++channel) {
    if (channels_[index(channel)].told != channels_[index(channel)].released) {
      tell_client(channel);
      did_anything = true;
    }
    close(channel);
  }
  return did_anything;
}

void Sender::tell_client(int channel) {
  Channel& state = channels_[index(channel)];
  state.told = state.released;
  core_.store_word(layout_.released_at(channel), state.told);
  if (const auto& client = config_.clients[index(channel)]; client) {
    write_word(core_, {client->tile, layout_.credit_at(client->direction)}, state.told);
  } else if (core_.load_word(layout_.state_at(channel)) !=
             static_cast<std::uint32_t>(ChannelState::free)) {
    write_word(core_, worker_word(channel), state.told);
  }
}

noc::Address Sender::worker_word(int channel) {
  const std::uint32_t tile = core_.load_word(layout_.client_tile_at(channel));
  return {{static_cast<int>(tile & 0xff), static_cast<int>(tile >> 8)},
          core_.load_word(layout_.client_word_at(channel))};
}

// A worker that closes its channel waits for a word after its credits.
void Sender::close(int channel) {
  if (config_.clients[index(channel)]) return;
  if (core_.load_word(layout_.state_at(channel)) !=
      static_cast<std::uint32_t>(ChannelState::closing)) {
    return;
  }
  core_.store_word(layout_.state_at(channel), static_cast<std::uint32_t>(ChannelState::free));
  const noc::Address word = worker_word(channel);
  write_word(core_, {word.tile, word.offset + Layout::kCellBytes}, 1);
}

bool Sender::may_send(int channel) {
  const std::uint32_t produced = core_.load_word(layout_.produced_at(channel));
  if (produced == channels_[index(channel)].sent) return false;
  const auto free = static_cast<std::uint32_t>(layout_.receiver_slots) - (sent_ - completed_);
  return free >= (needs_bubble(channel) ? 2u : 1u);
}

// Transit has priority over injection. Otherwise a ring fills and only bubbles move.
int Sender::first_channel() const {
  return layout_.channels > kStraightChannel ? kStraightChannel : kWorkerChannel;
}

bool Sender::send_packet() {
  for (int i = 0; i < layout_.channels; ++i) {
    const int channel = (first_channel() + i) % layout_.channels;
    if (!may_send(channel)) continue;
    if (core_.eth_txq_is_busy()) return false;
    core_.work(costs_of(core_).send);
    const std::uint64_t slot = layout_.channel_slot(channel, channels_[index(channel)].sent++);
    const std::uint64_t trailer = layout_.trailer_in_slot(load_header(core_, slot));
    core_.store_word(slot + offsetof(Header, sequence), sent_ + 1);
    core_.store_word(slot + trailer, sent_ + 1);
    send(core_, 0, slot, layout_.receiver_slot(sent_++), trailer + Layout::kCellBytes);
    under_way_.push_back(channel);
    if (config_.watch != nullptr) config_.watch->sent(config_.end, channel);
    core_.work(sent_cycles_);
    return true;
  }
  return false;
}

// Moves packets from the far end to memory, or to the next router.
class Receiver {
 public:
  Receiver(EthernetCore& core, const RouterConfig& config, int queue)
      : core_(core),
        config_(config),
        layout_(config.layout),
        queue_(queue),
        handle_cycles_(costs_of(core).receive + (config.is_ring ? costs_of(core).ring : 0) +
                       (config.layout.has_turns() ? costs_of(core).mesh : 0)),
        forward_cycles_(config.layout.has_turns() ? costs_of(core).mesh_forward : 0) {}

  bool handle_packet();
  bool answer();

 private:
  static int transaction_id(std::uint32_t packet) {
    return static_cast<int>(packet % noc::kTransactionIdsMax);
  }
  // There may be fewer ids than slots: an id is reused when its last packet has left and, if an
  // increment waits for it, is written.
  bool has_transaction_id() const {
    const std::uint32_t awaited = due_.empty() ? 0 : handled_ - due_.front().packet;
    return std::max(handled_ - completed_, awaited) < noc::kTransactionIdsMax;
  }
  const noc::NiuCounters& counters() const {
    return core_.network().counters(kReceiverNoc, core_.config().core);
  }
  bool has_room(const Copy& copy);
  void report(const Fate& fate);
  void deliver(const Header& header, std::uint64_t slot);
  void scatter(const Header& header, std::uint64_t slot);
  void write_payload(const Header& header, std::uint64_t slot);
  void forward(const Copy& copy, std::uint64_t slot);
  void work_for_segment(bool is_first, bool has_others);
  void write(std::uint64_t from, const noc::Address& to, std::uint64_t size_bytes);
  void increment(const Header& header);
  void set_word(const Header& header);
  void wait_until_written();
  bool is_written(std::uint32_t packet) const;
  bool increment_due();
  bool has_left(std::uint32_t packet) const;
  bool has_arrived(std::uint32_t packet);

  EthernetCore& core_;
  const RouterConfig& config_;
  const Layout& layout_;
  int queue_;
  noc::Cycle handle_cycles_;
  noc::Cycle forward_cycles_;  // additional cost of a forwarded packet
  std::uint32_t arrived_ = 0;
  std::uint32_t handled_ = 0;
  std::uint32_t completed_ = 0;     // number of packets that have left
  std::uint32_t acknowledged_ = 0;  // number of packets written
  std::uint32_t told_arrived_ = 0;
  std::uint32_t told_completed_ = 0;
  std::uint32_t answers_ = 0;
  struct Due {
    std::uint32_t packet = 0;
    Header header;
  };
  std::deque<Due> due_;  // packets with a deferred increment, oldest first
  std::array<std::uint32_t, kDirections> produced_{};
  std::uint32_t notifications_ = 0;
  std::uint32_t branches_ = 0;
};

// Waits until all writes of this router are acknowledged. Stalls it, together with the sender if
// one RISC-V runs both.
void Receiver::wait_until_written() { core_.noc_async_write_barrier(kReceiverNoc); }

bool Receiver::is_written(std::uint32_t packet) const {
  return counters().outstanding[index(transaction_id(packet))] == 0;
}

// Executes the oldest deferred increment once all packets up to its own are written.
bool Receiver::increment_due() {
  if (due_.empty()) return false;
  while (acknowledged_ != handled_ && is_written(acknowledged_)) ++acknowledged_;
  if (handled_ - acknowledged_ >= handled_ - due_.front().packet) return false;
  increment(due_.front().header);
  due_.pop_front();
  return true;
}

bool Receiver::has_left(std::uint32_t packet) const {
  return counters().outgoing[index(transaction_id(packet))] == 0;
}

bool Receiver::has_arrived(std::uint32_t packet) {
  if (packet - completed_ == static_cast<std::uint32_t>(layout_.receiver_slots)) return false;
  const std::uint64_t slot = layout_.receiver_slot(packet);
  if (core_.load_word(slot + offsetof(Header, sequence)) != packet + 1) return false;
  const Header header = load_header(core_, slot);
  return core_.load_word(slot + layout_.trailer_in_slot(header)) == packet + 1;
}

bool Receiver::handle_packet() {
  const bool did_anything = increment_due();
  while (has_arrived(arrived_)) ++arrived_;
  if (handled_ == arrived_ || !has_transaction_id()) return did_anything;
  const std::uint64_t slot = layout_.receiver_slot(handled_);
  const Header header = load_header(core_, slot);
  const Fate fate = fate_of(header);
  // All copies leave or none: a partially sent packet would be sent twice.
  for (const Copy& copy : fate.copies) {
    TOWPATH_CHECK(config_.next[copy.direction], "a packet goes on to where there is no router");
    if (!has_room(copy)) return did_anything;
  }
  core_.work(handle_cycles_ + (fate.copies.empty() ? 0 : forward_cycles_));
  if (config_.watch != nullptr) report(fate);
  // Copies first, as in tt-metal (receiver_forward_packet): a flush also waits for them.
  for (const Copy& copy : fate.copies) forward(copy, slot);
  if (fate.is_delivered) deliver(header, slot);
  if (config_.is_ring) core_.work(costs_of(core_).ring_handled);
  ++handled_;
  return true;
}

// Notifies the watch before any write of the packet is visible.
void Receiver::report(const Fate& fate) {
  const std::size_t packet = config_.watch->taken(config_.far_end);
  for (const Copy& copy : fate.copies) {
    const RouterConfig::Next& next = *config_.next[copy.direction];
    config_.watch->passed(packet, next.end, next.channel);
  }
  if (fate.is_delivered) config_.watch->delivered(packet, config_.end.chip);
}

void Receiver::write(std::uint64_t from, const noc::Address& to, std::uint64_t size_bytes) {
  core_.noc_async_write_one_packet_with_trid(from, to, size_bytes, transaction_id(handled_),
                                             of_receiver(false));
}

void Receiver::work_for_segment(bool is_first, bool has_others) {
  if (!has_others) return;
  const RouterCosts& costs = costs_of(core_);
  core_.work(is_first ? costs.list : costs.segment);
}

void Receiver::scatter(const Header& header, std::uint64_t slot) {
  SegmentList list;
  std::uint64_t from = slot + layout_.header_bytes;
  core_.load(from + header.payload_bytes - sizeof(list), bytes_of(list));
  for (std::size_t segment = 0; segment < kSegmentsMax; ++segment) {
    if (list.bytes[segment] == 0) continue;
    work_for_segment(from == slot + layout_.header_bytes,
                     header.payload_bytes > list.bytes[segment] + sizeof(list));
    const noc::Address to = unpack(segment == 0 ? header.payload_to : list.to[segment - 1]);
    write(from, to, list.bytes[segment]);
    from += list.bytes[segment];
  }
}

void Receiver::write_payload(const Header& header, std::uint64_t slot) {
  if (scatters(header.operation)) return scatter(header, slot);
  if (!writes(header.operation) || header.payload_bytes == 0) return;
  const noc::Address to = unpack(header.payload_to);
  const std::uint64_t each = is_paged(header.operation) ? kPageBytes : header.payload_bytes;
  for (std::uint64_t begin = 0; begin < header.payload_bytes; begin += each) {
    work_for_segment(begin == 0, each < header.payload_bytes);
    const std::uint64_t size_bytes = std::min(header.payload_bytes - begin, each);
    write(slot + layout_.header_bytes + begin, {to.tile, to.offset + begin}, size_bytes);
  }
}

void Receiver::deliver(const Header& header, std::uint64_t slot) {
  const Operation operation = header.operation;
  write_payload(header, slot);
  if (operation == Operation::inline_write) set_word(header);
  if (!increments(operation)) return;
  if (flushes(operation)) {
    wait_until_written();
    while (increment_due()) {
    }
  } else if (defers(operation) || !due_.empty()) {
    due_.push_back({handled_, header});
    return;
  } else if (header.payload_bytes > 0) {
    core_.noc_async_write_flushed_with_trid(transaction_id(handled_), kReceiverNoc);
  }
  increment(header);
}

void Receiver::set_word(const Header& header) {
  const noc::Address word = unpack(header.word_at);
  core_.noc_inline_dw_write(word, header.increment, of_receiver(true));
}

void Receiver::increment(const Header& header) {
  const noc::Address word = unpack(header.word_at);
  core_.noc_semaphore_inc(word, header.increment, of_receiver(true));
}

bool Receiver::has_room(const Copy& copy) {
  const std::uint32_t used =
      produced_[copy.direction] - core_.load_word(layout_.credit_at(copy.direction));
  return used != static_cast<std::uint32_t>(layout_.channel_slots);
}

// A branch has a separate header. All copies share the slot's payload.
void Receiver::forward(const Copy& copy, std::uint64_t slot) {
  const RouterConfig::Next& next = *config_.next[copy.direction];
  std::uint32_t& produced = produced_[copy.direction];
  const std::uint64_t to = layout_.channel_slot(next.channel, produced);
  const std::uint64_t payload_bytes = copy.header.payload_bytes;
  const std::uint64_t header_at = copy.is_branch ? layout_.branch_header(++branches_) : slot;
  core_.store(header_at, bytes_of(copy.header));
  if (copy.is_branch) {
    write(header_at, {next.tile, to}, sizeof(Header));
    if (payload_bytes > 0) {
      write(slot + layout_.header_bytes, {next.tile, to + layout_.header_bytes}, payload_bytes);
    }
  } else {
    write(slot, {next.tile, to}, layout_.header_bytes + payload_bytes);
  }
  // By the same initiator as the packet, which it must not overtake.
  const std::uint64_t source = layout_.produced_source(++notifications_);
  core_.store_word(source, ++produced);
  core_.noc_async_write_one_packet(source, {next.tile, layout_.produced_at(next.channel)},
                                   noc::kWordBytes, of_receiver(false));
}

bool Receiver::answer() {
  while (completed_ != handled_ && has_left(completed_)) ++completed_;
  const bool tells_arrived = config_.is_ring && told_arrived_ != arrived_;
  if (!tells_arrived && told_completed_ == completed_) return false;
  if (core_.eth_txq_is_busy(queue_)) return false;
  told_arrived_ = arrived_;
  told_completed_ = completed_;
  const std::uint64_t source = layout_.answer_source(++answers_);
  core_.store_word(source, told_arrived_);
  core_.store_word(source + 4, told_completed_);
  core_.work(costs_of(core_).answer);
  send(core_, queue_, source, layout_.answer_at(), Layout::kCellBytes);
  return true;
}

// The base firmware has its turn after polls_per_context_switch rounds. Without it a dropped link
// would never be trained.
void idle(EthernetCore& core, const RouterConfig& config) {
  core.idle(kRouterLoopCycles, config.polls_per_context_switch);
}

}  // namespace

void route(EthernetCore& core, const RouterConfig& config) {
  Sender sender(core, config);
  Receiver receiver(core, config, 0);
  while (true) {
    // Answers first: a queue that is always busy with packets would never accept them.
    bool did_anything = receiver.handle_packet();
    did_anything |= receiver.answer();
    did_anything |= sender.take_answers();
    did_anything |= sender.send_packet();
    if (!did_anything) idle(core, config);
  }
}

void route_sending(EthernetCore& core, const RouterConfig& config) {
  Sender sender(core, config);
  while (true) {
    bool did_anything = sender.take_answers();
    did_anything |= sender.send_packet();
    if (!did_anything) idle(core, config);
  }
}

void route_receiving(EthernetCore& core, const RouterConfig& config) {
  const int queue = core.network().chip().ethernet.tx_queues_for_kernels > 1 ? 1 : 0;
  Receiver receiver(core, config, queue);
  while (true) {
    bool did_anything = receiver.handle_packet();
    did_anything |= receiver.answer();
    if (!did_anything) idle(core, config);
  }
}

}  // namespace towpath::tenstorrent::fabric
