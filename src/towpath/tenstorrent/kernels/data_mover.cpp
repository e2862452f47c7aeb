// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/data_mover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/tenstorrent/kernels/handshake.hpp"

namespace towpath::tenstorrent::kernels {

using ethernet_memory_map::kWordBytes;

namespace {

constexpr std::uint64_t kAcknowledgement = 4;  // receiver_ack, in a sync word

// One end of a channel. Messages are counted from 0.
class Channel {
 public:
  Channel(EthernetCore& core, const DataMoverConfig& config, const DataMoverChannel& channel)
      : core_(core), config_(config), channel_(channel) {}

  // Advances as far as possible now. Returns false if there was no progress.
  bool step() { return channel_.is_sender ? step_sender() : step_receiver(); }
  bool is_over() const { return total_ && done_ == *total_; }
  void start();

 private:
  const DataMoverSlot& slot(std::uint64_t message) const {
    return channel_.slots[message % channel_.slots.size()];
  }
  std::uint64_t sync_word(const DataMoverSlot& slot) const {
    return config_.sync == ChannelSync::merged ? slot.end
                                               : EthernetCore::bytes_sent_at(slot.sync_channel);
  }
  std::uint64_t far_sync_word(const DataMoverSlot& slot) const {
    return config_.sync == ChannelSync::merged ? slot.far_end
                                               : EthernetCore::bytes_sent_at(slot.sync_channel);
  }
  std::uint32_t load_semaphore(const DataMoverSlot& slot) const {
    return core_.load_word(core_.get_semaphore(slot.semaphore));
  }
  void clear_semaphore(const DataMoverSlot& slot) {
    core_.noc_semaphore_set(core_.get_semaphore(slot.semaphore), 0);
  }
  void notify_worker(const DataMoverSlot& slot, std::uint32_t increment) {
    core_.noc_semaphore_inc({channel_.worker, core_.get_semaphore(slot.worker_semaphore)},
                            increment);
  }
  bool has_slot_for(std::uint64_t message) const {
    return (!total_ || message < *total_) && message - done_ < channel_.slots.size();
  }
  void send_words(std::uint64_t from, std::uint64_t to, std::uint64_t size_bytes) {
    core_.eth_send_packet(0, from / kWordBytes, to / kWordBytes, size_bytes / kWordBytes);
  }

  bool step_sender();
  bool send();
  void send_message(const DataMoverSlot& slot, std::uint32_t size_bytes);
  bool free_buffer();
  bool finish_sent();

  bool step_receiver();
  bool receive();
  void acknowledge(const DataMoverSlot& slot);
  bool finish_received();

  void check_size(std::uint32_t size_bytes) const;

  EthernetCore& core_;
  const DataMoverConfig& config_;
  const DataMoverChannel& channel_;
  std::optional<std::uint64_t> total_ = channel_.messages;
  std::uint64_t moved_ = 0;  // sent, or received
  std::uint64_t freed_ = 0;  // sender: messages with their buffer free again
  std::uint64_t done_ = 0;
};

// Workers may fill the buffers.
void Channel::start() {
  if (!channel_.is_sender) return;
  for (std::uint64_t message = 0; message < channel_.slots.size(); ++message) {
    if (!total_ || message < *total_) notify_worker(slot(message), 1);
  }
}

// --- sending ------------------------------------------------------------------------------------

bool Channel::step_sender() {
  const bool has_freed = free_buffer();
  const bool has_finished = finish_sent();
  return send() || has_freed || has_finished;
}

bool Channel::send() {
  if (!has_slot_for(moved_)) return false;
  const DataMoverSlot& at = slot(moved_);
  const std::uint32_t size_bytes = load_semaphore(at);
  if (size_bytes == 0 || core_.eth_txq_is_busy()) return false;
  clear_semaphore(at);
  if (size_bytes == kStop) {
    total_ = moved_ + 1;
    core_.store_word(sync_word(at), kStop);
    send_words(sync_word(at), far_sync_word(at), kWordBytes);
  } else {
    send_message(at, size_bytes);
  }
  ++moved_;
  return true;
}

void Channel::send_message(const DataMoverSlot& slot, std::uint32_t size_bytes) {
  check_size(size_bytes);
  const std::uint64_t from = slot.end - size_bytes;
  const std::uint64_t to = slot.far_end - size_bytes;
  if (config_.sync == ChannelSync::separate) {
    core_.eth_send_bytes_over_channel(from, to, size_bytes, slot.sync_channel, size_bytes,
                                      size_bytes / kWordBytes);
    return;
  }
  core_.store_word(slot.end, size_bytes);
  send_words(from, to, size_bytes + kWordBytes);
}

// Frees the oldest buffer with a delivered or completed message.
bool Channel::free_buffer() {
  if (freed_ == moved_) return false;
  const DataMoverSlot& at = slot(freed_);
  const std::uint64_t sync = sync_word(at);
  const bool is_done = core_.load_word(sync) == 0;
  const bool is_acknowledged =
      config_.acknowledges && core_.load_word(sync + kAcknowledgement) != 0;
  if (!is_done && !is_acknowledged) return false;
  const bool is_needed =
      !total_ || (channel_.messages ? freed_ + channel_.slots.size() < *total_
                                    : freed_ + 1 < *total_);  // a stop leaves no message behind
  ++freed_;
  if (is_needed) notify_worker(at, 1);
  return true;
}

bool Channel::finish_sent() {
  if (done_ == freed_ || core_.load_word(sync_word(slot(done_))) != 0) return false;
  ++done_;
  return true;
}

// --- receiving ----------------------------------------------------------------------------------

bool Channel::step_receiver() {
  const bool has_finished = finish_received();
  return receive() || has_finished;
}

bool Channel::receive() {
  if (!has_slot_for(moved_)) return false;
  const DataMoverSlot& at = slot(moved_);
  const std::uint32_t size_bytes = core_.load_word(sync_word(at));
  if (size_bytes == 0) return false;
  if (size_bytes == kStop) {
    total_ = moved_ + 1;
  } else if (config_.acknowledges) {
    if (core_.eth_txq_is_busy()) return false;
    acknowledge(at);
  }
  notify_worker(at, size_bytes);
  ++moved_;
  return true;
}

// The sync word may change to "done" before the acknowledgement leaves, so it is not the source.
void Channel::acknowledge(const DataMoverSlot& slot) {
  if (config_.sync == ChannelSync::separate) {
    core_.eth_receiver_channel_ack(slot.sync_channel, config_.acknowledgement_word);
  } else {
    send_words(config_.acknowledgement_word, slot.far_end, kWordBytes);
  }
}

bool Channel::finish_received() {
  if (done_ == moved_) return false;
  const DataMoverSlot& at = slot(done_);
  if (load_semaphore(at) == 0 || core_.eth_txq_is_busy()) return false;
  clear_semaphore(at);
  if (config_.sync == ChannelSync::separate) {
    core_.eth_receiver_channel_done(at.sync_channel);
  } else {
    core_.store_word(at.end, 0);
    send_words(at.end, at.far_end, kWordBytes);
  }
  ++done_;
  return true;
}

void Channel::check_size(std::uint32_t size_bytes) const {
  if (size_bytes % kWordBytes == 0 && size_bytes <= channel_.message_bytes_max) return;
  throw std::invalid_argument(
      fmt::format("{}: the worker on core ({}, {}) has a message of {} bytes; its channel takes "
                  "multiples of {} up to {}",
                  core_.where(), channel_.worker.x, channel_.worker.y, size_bytes, kWordBytes,
                  channel_.message_bytes_max));
}

}  // namespace

// Clears values of an earlier program that would look like a sync word.
void data_mover_prepare(EthernetCore& core, const DataMoverConfig& config) {
  if (config.sync == ChannelSync::separate) return;  // a program leaves erisc_info empty
  for (const DataMoverChannel& channel : config.channels) {
    for (const DataMoverSlot& slot : channel.slots) {
      for (std::uint64_t word = 0; word < kWordBytes; word += 4) {
        core.store_word(slot.end + word, 0);
      }
    }
  }
}

void data_mover_run(EthernetCore& core, const DataMoverConfig& config) {
  core.store_word(config.acknowledgement_word, 1);
  core.store_word(config.acknowledgement_word + kAcknowledgement, 1);
  std::vector<Channel> channels;
  for (const DataMoverChannel& channel : config.channels) {
    channels.emplace_back(core, config, channel);
  }
  for (Channel& channel : channels) channel.start();
  while (!std::ranges::all_of(channels, &Channel::is_over)) {
    bool has_moved = false;
    noc::Cycle round = 0;
    for (Channel& channel : channels) {
      if (channel.is_over()) continue;
      core.work(kPollCycles);
      if (channel.step()) has_moved = true;
      round += kPollCycles;
    }
    if (!has_moved) core.idle(round, config.polls_per_context_switch);
  }
  core.noc_async_atomic_barrier();
}

void data_mover(EthernetCore& core, const DataMoverConfig& config) {
  data_mover_prepare(core, config);
  handshake(core, config.is_handshake_master);
  data_mover_run(core, config);
}

}  // namespace towpath::tenstorrent::kernels
