// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "data_mover_builder.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace towpath::tenstorrent::kernels {

namespace map = ethernet_memory_map;
using machine::Coordinate;
using machine::TileKind;
using map::kWordBytes;

namespace {

// Channel 0 is for handshakes: the far end's next program may write it while this one still waits
// for its last credits.
constexpr int kSyncChannels = map::kChannels - 1;

}  // namespace

DataMoverBuilder::DataMoverBuilder(Cluster& cluster, const End& end, Program& far_program,
                                   const Options& options)
    : cluster_(cluster), options_(options) {
  const auto [chip, core] = cluster.device(end.chip).get_connected_ethernet_core(end.core);
  if (chip == end.chip) {
    throw std::invalid_argument(
        fmt::format("the link of Ethernet core ({}, {}) of chip {} leads back to that chip; a data "
                    "mover joins two",
                    end.core.x, end.core.y, chip));
  }
  ends_ = {end, End{chip, core, &far_program}};
  for (DataMoverConfig& config : configs_) {
    config.sync = options.sync;
    config.acknowledges = options.acknowledges;
    config.acknowledgement_word = map::kAcknowledgementWord;
    config.polls_per_context_switch = options.polls_per_context_switch;
  }
  configs_.front().is_handshake_master = true;
}

std::size_t DataMoverBuilder::side_of(int chip) const {
  for (std::size_t side = 0; side < ends_.size(); ++side) {
    if (ends_[side].chip == chip) return side;
  }
  throw std::invalid_argument(
      fmt::format("the data mover joins chips {} and {}; it is asked for {}", ends_[0].chip,
                  ends_[1].chip, chip));
}

void DataMoverBuilder::check(const ChannelConfig& config) const {
  if (config.slots < 1) {
    throw std::invalid_argument(
        fmt::format("a channel has {} slots; it needs at least one", config.slots));
  }
  if (config.message_bytes_max == 0 || config.message_bytes_max % kWordBytes != 0 ||
      config.message_bytes_max >= kStop) {
    throw std::invalid_argument(
        fmt::format("a channel's messages have up to {} bytes; multiples of {} below 2^30 are "
                    "possible",
                    config.message_bytes_max, kWordBytes));
  }
  if (options_.sync == ChannelSync::separate && slots_ + config.slots > kSyncChannels) {
    throw std::invalid_argument(
        fmt::format("{} more slots with separate sync words are asked for; a link has {}, of which "
                    "{} are taken",
                    config.slots, kSyncChannels, slots_));
  }
}

DataMoverBuilder::WorkerEnds DataMoverBuilder::add_channel(const ChannelConfig& config) {
  const std::size_t from = side_of(config.from_chip);
  const std::array<std::size_t, 2> sides{from, 1 - from};
  const std::array<Coordinate, 2> workers{config.sender, config.receiver};
  check(config);
  std::array<DataMoverChannel, 2> channels;
  std::array<DataMoverWorker, 2> views;
  for (std::size_t i = 0; i < 2; ++i) {
    Program& program = *ends_[sides[i]].program;
    channels[i] = {.is_sender = i == 0,
                   .worker = workers[i],
                   .message_bytes_max = config.message_bytes_max,
                   .messages = config.messages};
    views[i] = {.mover = cluster_.device(ends_[sides[i]].chip).ethernet_core(ends_[sides[i]].core),
                .message_bytes_max = config.message_bytes_max,
                .messages = config.messages};
    for (int number = 0; number < config.slots; ++number) {
      const std::uint64_t begin =
          program.allocate(config.message_bytes_max + kWordBytes, TileKind::ethernet);
      const DataMoverSlot slot{.end = begin + config.message_bytes_max,
                               .sync_channel = 1 + slots_ + number,
                               .semaphore = program.create_semaphore(0, TileKind::ethernet),
                               .worker_semaphore = program.create_semaphore(0)};
      channels[i].slots.push_back(slot);
      views[i].slots.push_back({slot.end, slot.semaphore, slot.worker_semaphore});
    }
  }
  for (std::size_t number = 0; number < channels[0].slots.size(); ++number) {
    channels[0].slots[number].far_end = channels[1].slots[number].end;
    channels[1].slots[number].far_end = channels[0].slots[number].end;
  }
  slots_ += config.slots;
  for (std::size_t i = 0; i < 2; ++i) {
    configs_[sides[i]].channels.push_back(std::move(channels[i]));
  }
  return {views[0], views[1]};
}

void DataMoverBuilder::create_kernels() {
  if (slots_ == 0) throw std::invalid_argument("a data mover has no channels; add one");
  for (std::size_t side = 0; side < ends_.size(); ++side) {
    ends_[side].program->create_kernel(
        ends_[side].core, {.name = "data mover", .noc_index = options_.noc_index},
        [config = configs_[side]](EthernetCore& core) { data_mover(core, config); });
  }
}

}  // namespace towpath::tenstorrent::kernels
