// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/kernel_watch.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/hazards/hazard_monitor.hpp"

namespace towpath::tenstorrent {

namespace map = ethernet_memory_map;

namespace {

// Maximum number of words recorded per polling loop.
constexpr std::size_t kLooksMax = 256;

}  // namespace

std::string name_of(const KernelWatch& kernel) {
  const KernelWatch::Config& config = kernel.config();
  return fmt::format("kernel '{}' on {}", config.name, name_of(config.core, config.chip));
}

std::string KernelWatch::where() const { return is_over() ? name_of(*this) : core_->where(); }

void KernelWatch::note_target(int chip, machine::Coordinate core) {
  if (!has_target(chip, core)) targets_.emplace_back(chip, core);
}

void KernelWatch::start(const DataMovementCore& core) {
  core_ = &core;
  state_ = State::running;
  monitor_.kernels.started(*this);
  begin_ = learner_.step();
}

void KernelWatch::end() {
  state_ = State::over;
  monitor_.kernels.ended(*this);
  if (channel_ >= 0) monitor_.ethernet.check_end(*this);
  monitor_.packets.check_end(*this);
}

// --- the L1 of the core -------------------------------------------------------------------------

void KernelWatch::looked(std::uint64_t offset, std::uint32_t value, std::uint32_t needed) {
  if (channel_ >= 0 && looked_at_.size() < kLooksMax &&
      std::ranges::find(looked_at_, offset) == looked_at_.end()) {
    looked_at_.push_back(offset);
  }
  Ledger& ledger = monitor_.records.ledger(config_.chip, config_.core);
  SentBytes::learn(*this, ledger, offset, offset + noc::kWordBytes);
  if (const int channel = map::channel_of(offset); channel >= 0) {
    ledger.unseen_syncs[index(channel)].reset();
  }
  monitor_.words.look(*this, ledger, offset, value, needed);
}

void KernelWatch::using_bytes(std::uint64_t offset, std::uint64_t size_bytes) {
  const L1Bytes bytes{config_.core, offset, size_bytes};
  monitor_.bytes.check_arrival(*this, config_.chip, bytes);
  Ledger& ledger = monitor_.records.ledger(config_.chip, config_.core);
  SentBytes::learn(*this, ledger, offset, bytes.end());
  monitor_.packets.use(*this, config_.chip, bytes);
  for (int channel = 0; channel < map::kChannels; ++channel) {
    const std::uint64_t sync = map::bytes_sent_at(channel);
    if (offset <= sync && sync < bytes.end()) ledger.unseen_syncs[index(channel)].reset();
  }
}

void KernelWatch::storing(std::uint64_t offset, std::span<const std::byte> content) {
  const L1Bytes bytes{config_.core, offset, content.size()};
  monitor_.bytes.check_change(*this, config_.chip, bytes, content);
  const Stamp stamp = learner_.step();
  monitor_.words.store(*this, offset, content, stamp);
  SentBytes::replace(monitor_.records.ledger(config_.chip, config_.core), offset, bytes.end());
}

// --- requests, sends, packets -------------------------------------------------------------------

void KernelWatch::issuing(const noc::Request& request) { monitor_.requests.issue(*this, request); }

void KernelWatch::sending(int queue, const ethernet::Command& command) {
  monitor_.ethernet.send(*this, queue, command);
}

void KernelWatch::opening_connection(int connection) { monitor_.packets.open(*this, connection); }

void KernelWatch::closed_connection(int connection) { monitor_.packets.close(*this, connection); }

std::size_t KernelWatch::sending_packet(int connection, std::vector<Delivery> deliveries) {
  return monitor_.packets.send(*this, connection, std::move(deliveries));
}

// --- channels of an Ethernet core ---------------------------------------------------------------

void KernelWatch::sending_payload(int channel, std::uint64_t size_bytes) {
  unannounced_bytes_[index(channel)] += size_bytes;
}

void KernelWatch::announcing(int channel, std::uint64_t size_bytes) {
  std::uint64_t& sent = unannounced_bytes_[index(channel)];
  if (sent < size_bytes) {
    fail(Hazard::sync_before_payload,
         "announces {} bytes on channel {}, for which {} have been sent; send the announcement "
         "after its payload",
         size_bytes, channel, sent);
  }
  sent = 0;
}

void KernelWatch::acknowledging(int channel, std::uint64_t from) {
  if (!map::is_sync_word(from, map::kChannelSyncBytes)) return;
  fail(Hazard::acknowledgement_from_channel_word,
       "acknowledges channel {} from offset {}, which is a sync word of a channel: it changes "
       "before it has been sent; use a separate word as the source",
       channel, from);
}

}  // namespace towpath::tenstorrent
