// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/kernels/fabric_router.hpp"

#include "towpath/kernels/fabric_packet.hpp"

namespace towpath::kernels::fabric {

namespace {

using device::tenstorrent::EthernetCore;
using device::tenstorrent::WriteOptions;

constexpr WriteOptions kPosted{.is_posted = true};

std::size_t index(int number) { return static_cast<std::size_t>(number); }

const machine::EthernetSoftwareFigures& figures_of(const EthernetCore& core) {
  return core.network().chip().ethernet_software;
}

std::uint64_t bytes_on_link(const Layout& layout, const Header& header) {
  const std::uint64_t word = Layout::kCellBytes;
  return layout.header_bytes + (header.payload_bytes + word - 1) / word * word;
}

Header load_header(EthernetCore& core, std::uint64_t slot) {
  Header header;
  core.load(slot, bytes_of(header));
  return header;
}

void send(EthernetCore& core, int queue, std::uint64_t from, std::uint64_t to,
          std::uint64_t size_bytes) {
  core.eth_send_packet(queue, from / Layout::kCellBytes, to / Layout::kCellBytes,
                       size_bytes / Layout::kCellBytes);
}

// From the channels to the far end.
class Sender {
 public:
  Sender(EthernetCore& core, const RouterConfig& config)
      : core_(core),
        config_(config),
        layout_(config.layout),
        channels_(index(config.layout.channels)) {}

  // Each returns whether there was anything to do.
  bool take_answers();
  bool send_packet();

 private:
  struct Channel {
    std::uint32_t sent = 0;
    std::uint32_t released = 0;
    std::uint32_t told = 0;  // of released, to its client
  };
  bool needs_bubble(int channel) const { return config_.is_ring && channel != kStraightChannel; }
  bool may_send(int channel);
  void tell_client(int channel);
  void close(int channel);

  EthernetCore& core_;
  const RouterConfig& config_;
  const Layout& layout_;
  std::vector<Channel> channels_;
  std::deque<int> under_way_;  // the channel of each packet whose slot is not free yet
  std::uint32_t sent_ = 0;
  std::uint32_t released_ = 0;
  std::uint32_t completed_ = 0;  // at the far end
  int next_channel_ = 0;
};

bool Sender::take_answers() {
  const std::uint32_t arrived = core_.load_word(layout_.answer_at());
  completed_ = core_.load_word(layout_.answer_at() + 4);
  const std::uint32_t releasable = config_.is_ring ? arrived : completed_;
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
  core_.work(figures_of(core_).fabric_credit_cycles);
  Channel& state = channels_[index(channel)];
  state.told = state.released;
  core_.store_word(layout_.released_at(channel), state.told);
  if (const auto& client = config_.clients[index(channel)]; client) {
    core_.noc_inline_dw_write({client->tile, layout_.credit_at(client->direction)}, state.told,
                              kPosted);
  } else if (core_.load_word(layout_.state_at(channel)) !=
             static_cast<std::uint32_t>(ChannelState::free)) {
    const std::uint32_t tile = core_.load_word(layout_.client_tile_at(channel));
    core_.noc_inline_dw_write({{static_cast<int>(tile & 0xff), static_cast<int>(tile >> 8)},
                               core_.load_word(layout_.client_word_at(channel))},
                              state.told, kPosted);
  }
}

// A worker that closes its channel waits for a word behind its credits.
void Sender::close(int channel) {
  if (config_.clients[index(channel)]) return;
  if (core_.load_word(layout_.state_at(channel)) !=
      static_cast<std::uint32_t>(ChannelState::closing)) {
    return;
  }
  core_.store_word(layout_.state_at(channel), static_cast<std::uint32_t>(ChannelState::free));
  core_.work(figures_of(core_).fabric_credit_cycles);
  const std::uint32_t tile = core_.load_word(layout_.client_tile_at(channel));
  core_.noc_inline_dw_write({{static_cast<int>(tile & 0xff), static_cast<int>(tile >> 8)},
                             core_.load_word(layout_.client_word_at(channel)) + 4},
                            1, kPosted);
}

bool Sender::may_send(int channel) {
  const std::uint32_t produced = core_.load_word(layout_.produced_at(channel));
  if (produced == channels_[index(channel)].sent) return false;
  const auto free = static_cast<std::uint32_t>(layout_.receiver_slots) - (sent_ - completed_);
  return free >= (needs_bubble(channel) ? 2u : 1u);
}

bool Sender::send_packet() {
  for (int i = 0; i < layout_.channels; ++i) {
    const int channel = (next_channel_ + i) % layout_.channels;
    if (!may_send(channel)) continue;
    if (core_.eth_txq_is_busy()) return false;
    core_.work(figures_of(core_).fabric_send_cycles);
    const std::uint64_t slot = layout_.channel_slot(channel, channels_[index(channel)].sent++);
    const std::uint64_t size_bytes = bytes_on_link(layout_, load_header(core_, slot));
    send(core_, 0, slot, layout_.receiver_slot(sent_++), size_bytes);
    core_.store_word(layout_.sent_source(sent_), sent_);
    send(core_, 0, layout_.sent_source(sent_), layout_.sent_at(), Layout::kCellBytes);
    under_way_.push_back(channel);
    next_channel_ = (channel + 1) % layout_.channels;
    return true;
  }
  return false;
}

// From the far end to memory, or to the next router.
class Receiver {
 public:
  Receiver(EthernetCore& core, const RouterConfig& config, int queue)
      : core_(core), config_(config), layout_(config.layout), queue_(queue) {}

  bool handle_packet();
  bool answer();

 private:
  static int transaction_id(std::uint32_t packet) { return static_cast<int>(packet % 16); }
  void deliver(const Header& header, std::uint64_t slot);
  bool forward(Header header, std::uint64_t slot);
  bool are_writes_acknowledged() const;
  bool has_left(std::uint32_t packet) const;

  EthernetCore& core_;
  const RouterConfig& config_;
  const Layout& layout_;
  int queue_;
  std::uint32_t handled_ = 0;
  std::uint32_t completed_ = 0;
  std::uint32_t told_arrived_ = 0;
  std::uint32_t told_completed_ = 0;
  std::uint32_t answers_ = 0;
  bool awaits_acknowledgements_ = false;  // of all writes, before the last packet's increment
  std::array<std::uint32_t, kDirections> produced_{};
};

bool Receiver::are_writes_acknowledged() const {
  const noc::NiuCounters& counters =
      core_.network().counters(core_.config().noc_index, core_.config().core);
  return counters.write_acks_received == counters.write_acks_awaited;
}

bool Receiver::has_left(std::uint32_t packet) const {
  const noc::NiuCounters& counters =
      core_.network().counters(core_.config().noc_index, core_.config().core);
  return counters.outgoing[index(transaction_id(packet))] == 0;
}

bool Receiver::handle_packet() {
  const std::uint32_t arrived = core_.load_word(layout_.sent_at());
  if (arrived == handled_) return false;
  const std::uint64_t slot = layout_.receiver_slot(handled_);
  const Header header = load_header(core_, slot);
  if (awaits_acknowledgements_) {
    if (!are_writes_acknowledged()) return false;
    awaits_acknowledgements_ = false;
    core_.noc_semaphore_inc(unpack(header.word_at), header.increment, kPosted);
  } else if (header.commands[header.hop] != kDeliver) {
    if (!forward(header, slot)) return false;
  } else {
    deliver(header, slot);
  }
  if (!awaits_acknowledgements_) ++handled_;
  return true;
}

void Receiver::deliver(const Header& header, std::uint64_t slot) {
  core_.work(figures_of(core_).fabric_receive_cycles);
  if (writes(header.operation) && header.payload_bytes > 0) {
    core_.noc_async_write_one_packet_with_trid(slot + layout_.header_bytes,
                                               unpack(header.payload_to), header.payload_bytes,
                                               transaction_id(handled_));
  }
  if (header.operation == Operation::write_flush_increment) {
    awaits_acknowledgements_ = true;
  } else if (increments(header.operation)) {
    core_.noc_semaphore_inc(unpack(header.word_at), header.increment, kPosted);
  }
}

bool Receiver::forward(Header header, std::uint64_t slot) {
  const auto direction = static_cast<Direction>(header.commands[header.hop]);
  const RouterConfig::Next& next = *config_.next[direction];
  std::uint32_t& produced = produced_[direction];
  const std::uint32_t used = produced - core_.load_word(layout_.credit_at(direction));
  if (used == static_cast<std::uint32_t>(layout_.channel_slots)) return false;
  core_.work(figures_of(core_).fabric_receive_cycles);
  ++header.hop;
  core_.store(slot, bytes_of(header));
  core_.noc_async_write_one_packet_with_trid(
      slot, {next.tile, layout_.channel_slot(next.channel, produced)},
      layout_.header_bytes + header.payload_bytes, transaction_id(handled_));
  core_.noc_inline_dw_write({next.tile, layout_.produced_at(next.channel)}, ++produced, kPosted);
  return true;
}

bool Receiver::answer() {
  while (completed_ != handled_ && has_left(completed_)) ++completed_;
  const std::uint32_t arrived = core_.load_word(layout_.sent_at());
  const bool tells_arrived = config_.is_ring && told_arrived_ != arrived;
  if (!tells_arrived && told_completed_ == completed_) return false;
  if (core_.eth_txq_is_busy(queue_)) return false;
  core_.work(figures_of(core_).fabric_credit_cycles);
  told_arrived_ = arrived;
  told_completed_ = completed_;
  const std::uint64_t source = layout_.answer_source(++answers_);
  core_.store_word(source, told_arrived_);
  core_.store_word(source + 4, told_completed_);
  send(core_, queue_, source, layout_.answer_at(), Layout::kCellBytes);
  return true;
}

}  // namespace

void route(EthernetCore& core, const RouterConfig& config) {
  Sender sender(core, config);
  Receiver receiver(core, config, 0);
  while (true) {
    bool did_anything = sender.take_answers();
    did_anything |= sender.send_packet();
    did_anything |= receiver.handle_packet();
    did_anything |= receiver.answer();
    if (!did_anything) core.idle(figures_of(core).fabric_loop_cycles);
  }
}

void route_sending(EthernetCore& core, const RouterConfig& config) {
  Sender sender(core, config);
  while (true) {
    bool did_anything = sender.take_answers();
    did_anything |= sender.send_packet();
    if (!did_anything) core.idle(figures_of(core).fabric_loop_cycles);
  }
}

void route_receiving(EthernetCore& core, const RouterConfig& config) {
  const int queue = core.network().chip().ethernet.tx_queues_for_kernels > 1 ? 1 : 0;
  Receiver receiver(core, config, queue);
  while (true) {
    bool did_anything = receiver.handle_packet();
    did_anything |= receiver.answer();
    if (!did_anything) core.idle(figures_of(core).fabric_loop_cycles);
  }
}

}  // namespace towpath::kernels::fabric
