// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/device/data_movement_core.hpp"
#include "towpath/tenstorrent/device/hazards.hpp"

// What kernels of different chips learn from each other: traffic over Ethernet.

namespace towpath::tenstorrent {

namespace map = ethernet_memory_map;
using machine::EthernetEnd;

namespace {

// Largest frame whose words are compared one by one; a larger one counts as entirely changed.
constexpr std::size_t kSmallFrameBytes = 64;

// One per NoC, and one for the compute cores.
constexpr std::size_t kKernelsPerTile = 3;
constexpr int kComputeCores = 2;  // beside the kernels of both NoCs

std::string name_of(machine::Coordinate core, int chip) {
  return fmt::format("core ({}, {}) of chip {}", core.x, core.y, chip);
}

bool lies_in(std::uint64_t offset, std::uint64_t size_bytes, std::uint64_t first,
             std::uint64_t length) {
  return offset >= first && offset + size_bytes <= first + length;
}
// Whether the bytes are in the area that any kernel may write at any time, before a handshake and
// after the end.
bool is_handshake_area(std::uint64_t offset, std::uint64_t size_bytes) {
  return lies_in(offset, size_bytes, map::kUnreservedBase, map::kHandshakeBytes);
}
// Handshakes use channel 0.
bool is_handshake_word(std::uint64_t offset, std::uint64_t size_bytes) {
  return lies_in(offset, size_bytes, map::bytes_sent_at(0), map::kChannelSyncBytes);
}
bool is_sync_word(std::uint64_t offset, std::uint64_t size_bytes) {
  return lies_in(offset, size_bytes, map::kEriscInfoBase,
                 map::bytes_sent_at(map::kChannels) - map::kEriscInfoBase);
}

}  // namespace

HazardMonitor::HazardMonitor(const machine::ChipCluster& cluster) : cluster_(cluster) {
  Stream streams = 0;
  Place places = 0;
  for (const machine::ClusterChip& chip : cluster.chips) {
    first_stream_.push_back(streams);
    first_place_.push_back(places);
    const std::size_t channels = chip.chip->ethernet_cores.size();
    streams += static_cast<Stream>(channels * index(chip.chip->ethernet.tx_queues));
    places += static_cast<Place>(kKernelsPerTile * chip.chip->tiles.size());
    ethernet_kernels_.emplace_back(channels);
  }
  streams_.resize(streams);
  next_stream_ = streams;
}

void HazardMonitor::add_chip(noc::ChipNetwork& network) {
  ChipState& chip = chips_.emplace_back();
  chip.network = &network;
  chip.ledgers.resize(network.chip().tiles.size());
}

void HazardMonitor::begin_program(int chip) {
  chips_[index(chip)].known = chips_[index(chip)].ended;
  ++chips_[index(chip)].program;
}

KernelWatch& HazardMonitor::add_kernel(KernelWatch::Config config) {
  const Place place = place_of(config.chip, config.core, config.noc_index);
  kernels_.push_back(std::make_unique<KernelWatch>(*this, std::move(config), place));
  KernelWatch& kernel = *kernels_.back();
  if (kernel.channel_ >= 0) {
    ethernet_kernels_[index(kernel.config_.chip)][index(kernel.channel_)].push_back(&kernel);
  }
  return kernel;
}

HazardMonitor::Ledger& HazardMonitor::ledger(int chip, machine::Coordinate tile) {
  ChipState& state = chips_[index(chip)];
  auto& place = state.ledgers[index(state.network->chip().number_of(tile))];
  if (place == nullptr) place = std::make_unique<Ledger>();
  return *place;
}

const HazardMonitor::Ledger* HazardMonitor::find_ledger(int chip, machine::Coordinate tile) const {
  const ChipState& state = chips_[index(chip)];
  return state.ledgers[index(state.network->chip().number_of(tile))].get();
}

Stream HazardMonitor::stream_of(EthernetEnd end, int queue) const {
  const int queues = cluster_.chips[index(end.chip)].chip->ethernet.tx_queues;
  return first_stream_[index(end.chip)] + static_cast<Stream>(end.channel * queues + queue);
}

int HazardMonitor::channel_of(int chip, machine::Coordinate core) const {
  const auto& cores = cluster_.chips[index(chip)].chip->ethernet_cores;
  const auto at = std::ranges::find(cores, core);
  return at == cores.end() ? -1 : static_cast<int>(at - cores.begin());
}

Place HazardMonitor::place_of(int chip, machine::Coordinate core, int noc_index) const {
  const int tile = cluster_.chips[index(chip)].chip->number_of(core);
  return first_place_[index(chip)] + static_cast<Place>(kKernelsPerTile * index(tile)) +
         static_cast<Place>(noc_index == kNoNoc ? kComputeCores : noc_index);
}

KernelWatch* HazardMonitor::kernel_at(EthernetEnd end, int generation) const {
  const auto& kernels = ethernet_kernels_[index(end.chip)][index(end.channel)];
  for (auto kernel = kernels.rbegin(); kernel != kernels.rend(); ++kernel) {
    if ((*kernel)->config_.generation == generation) return *kernel;
  }
  return nullptr;
}

// --- begin and end ------------------------------------------------------------------------------

void KernelWatch::start(const DataMovementCore& core) {
  core_ = &core;
  state_ = State::running;
  learner_.learn(monitor_.chips_[index(config_.chip)].known);
  begin_ = learner_.step();
}

void KernelWatch::end() {
  state_ = State::over;
  Knowledge& ended = monitor_.chips_[index(config_.chip)].ended;
  ended.join(learner_.known());
  ended.learn_clock(learner_.place(), learner_.step().clock);
  monitor_.clocks_[learner_.place()] = learner_.clock();
  if (channel_ >= 0) monitor_.check_arrivals(*this);
  monitor_.check_lines(*this);
}

// Checks that a kernel that ends has waited for all that its peer has sent to it: it knows that it
// has arrived, and it has looked at every credit.
void HazardMonitor::check_arrivals(const KernelWatch& kernel) {
  const KernelWatch::Config& config = kernel.config();
  const auto from = cluster_.connected({config.chip, kernel.channel_});
  if (!from) return;
  const int queues = cluster_.chips[index(from->chip)].chip->ethernet.tx_queues;
  for (int queue = 0; queue < queues; ++queue) {
    const Stream stream = stream_of(*from, queue);
    const auto& awaited = streams_[stream].awaited;
    const auto last = awaited.find(config.generation);
    if (last != awaited.end() && !kernel.learner_.knows_arrived(stream, last->second.end)) {
      fail_unawaited(kernel, last->second);
    }
  }
  for (const auto& sync : ledger(config.chip, config.core).unseen_syncs) {
    if (sync && sync->sender->config_.generation == config.generation) {
      fail_unawaited(kernel, *sync);
    }
  }
}

void HazardMonitor::fail_unawaited(const KernelWatch& kernel, const Awaited& command) {
  throw HazardError(
      Hazard::missing_teardown, kernel.name(),
      fmt::format("{} ends without having waited for the {} bytes that {} has sent to its offset "
                  "{}; a kernel waits for all that is sent to it",
                  name_of(kernel), command.command.size_bytes, name_of(*command.sender),
                  command.command.destination));
}

// --- sending ------------------------------------------------------------------------------------

void KernelWatch::sending(int queue, const ethernet::Command& command) {
  const auto to = monitor_.cluster_.connected({config_.chip, channel_});
  if (!to || command.kind != ethernet::Command::Kind::write) return;
  const std::uint64_t first = command.destination;
  const std::uint64_t end = first + command.size_bytes;
  const bool is_for_handshakes = is_handshake_area(first, command.size_bytes);
  if (!is_handshake_area(command.source, command.size_bytes)) {
    monitor_.check_bytes_are_there(*this, config_.chip, config_.core, command.source,
                                   command.size_bytes);
    monitor_.check_pushed(*this, command.source, command.size_bytes);
  }
  if (!is_for_handshakes) {
    monitor_.check_peer(*this, command, *to);
    std::vector<std::byte> bytes(command.size_bytes);
    monitor_.chips_[index(config_.chip)].network->load(config_.core, command.source, bytes);
    monitor_.check_sources(*this, to->chip, {monitor_.core_of(*to), first, bytes.size(), bytes});
  }
  const Stream stream = monitor_.stream_of({config_.chip, channel_}, queue);
  HazardMonitor::StreamState& state = monitor_.streams_[stream];
  const std::uint64_t position = state.position;
  if (!is_for_handshakes) {
    const HazardMonitor::Use use{"writes", monitor_.core_of(*to), first, command.size_bytes};
    monitor_.record(monitor_.buffer_for(*this, to->chip, use), *this, use,
                    HazardMonitor::Arrived{{}, stream, position - first});
  }
  state.position += command.size_bytes;
  state.in_flight.push_back({first, command.size_bytes, position, 0, this, learner_.step()});
  if (!is_for_handshakes) {
    state.awaited[config_.generation] = {state.position, this, command};
  }
  monitor_.ledger(config_.chip, config_.core)
      .sources.assign(command.source, command.source + command.size_bytes,
                      {stream, state.position, this});
  monitor_.ledger(to->chip, monitor_.core_of(*to))
      .incoming.assign(first, end, {stream, position - first, this});
}

// Checks that the kernel at the other end is there to take it.
void HazardMonitor::check_peer(KernelWatch& kernel, const ethernet::Command& command,
                               EthernetEnd to) {
  const KernelWatch* peer = kernel_at(to, kernel.config_.generation);
  if (peer != nullptr && peer->is_over()) {
    throw HazardError(
        Hazard::missing_teardown, peer->name(),
        fmt::format("{}: sends {} bytes to offset {} of {}, where {} has ended; a kernel waits for "
                    "all that is sent to it",
                    kernel.core_->where(), command.size_bytes, command.destination,
                    name_of(core_of(to), to.chip), name_of(*peer)));
  }
  if (is_handshake_word(command.destination, command.size_bytes)) return;
  const bool is_known_to_run = peer != nullptr && peer->state_ == KernelWatch::State::running &&
                               kernel.learner_.knows(peer->begin_);
  if (is_known_to_run) return;
  throw HazardError(
      Hazard::missing_handshake, kernel.name(),
      fmt::format("{}: sends {} bytes to offset {} of {}, and cannot know that the kernel of the "
                  "same program has started there; a handshake comes first",
                  kernel.core_->where(), command.size_bytes, command.destination,
                  name_of(core_of(to), to.chip)));
}

void HazardMonitor::check_bytes_are_there(const KernelWatch& kernel, int chip,
                                          machine::Coordinate tile, std::uint64_t offset,
                                          std::uint64_t size_bytes) {
  const Ledger* const there = find_ledger(chip, tile);
  if (there == nullptr) return;
  there->incoming.each(
      offset, offset + size_bytes,
      [&](std::uint64_t first, std::uint64_t end, const Incoming& incoming) {
        if (kernel.learner_.knows_arrived(incoming.stream, end + incoming.shift)) return;
        if (is_handshake_area(first, end - first) || is_sync_word(first, end - first)) return;
        if (incoming.unread_shift &&
            kernel.learner_.knows_arrived(incoming.stream, end + *incoming.unread_shift)) {
          throw HazardError(
              Hazard::source_overwritten, incoming.sender->name(),
              fmt::format("{}: uses bytes {} to {} of {}, over which {} has sent others; a buffer "
                          "is written again when its reader has said that it is free",
                          kernel.core_->where(), first, end - 1, name_of(tile, chip),
                          name_of(*incoming.sender)));
        }
        throw HazardError(
            Hazard::sync_before_payload, kernel.name(),
            fmt::format("{}: uses bytes {} to {} of {}, which {} has sent, and cannot know that "
                        "they have arrived; what announces a payload is sent behind it",
                        kernel.core_->where(), first, end - 1, name_of(tile, chip),
                        name_of(*incoming.sender)));
      });
}

void HazardMonitor::check_sources(const KernelWatch& kernel, int chip, const Change& change) {
  const auto& [tile, offset, size_bytes, bytes] = change;
  const Ledger* const there = find_ledger(chip, tile);
  if (there == nullptr) return;
  there->sources.each(
      offset, offset + size_bytes,
      [&, &tile = tile, &offset = offset, &bytes = bytes](std::uint64_t first, std::uint64_t end,
                                                          const Source& source) {
        if (kernel.learner_.knows_arrived(source.stream, source.end)) return;
        if (is_handshake_area(first, end - first)) return;
        // A source of an earlier program: its last answers, which are not answered themselves.
        if (source.sender->is_over() &&
            source.sender->config_.generation < kernel.config_.generation) {
          return;
        }
        if (!bytes.empty()) {  // bytes that keep their value are allowed
          std::vector<std::byte> before(end - first);
          chips_[index(chip)].network->load(tile, first, before);
          if (std::ranges::equal(before, bytes.subspan(first - offset, end - first))) return;
        }
        throw HazardError(
            Hazard::source_overwritten, kernel.name(),
            fmt::format("{}: changes bytes {} to {} of {}, from which {} sends, and cannot know "
                        "that they have arrived; a source waits for an acknowledgement",
                        kernel.core_->where(), first, end - 1, name_of(tile, chip),
                        name_of(*source.sender)));
      });
}

// A worker that is known was told once that it may write, and has written more than that.
void HazardMonitor::check_pushed(const KernelWatch& kernel, std::uint64_t offset,
                                 std::uint64_t size_bytes) {
  const KernelWatch::Config& config = kernel.config_;
  const Ledger* const own = find_ledger(config.chip, config.core);
  if (own == nullptr) return;
  own->pushed.each(
      offset, offset + size_bytes,
      [&](std::uint64_t first, std::uint64_t end, const Pushed& pushed) {
        if (kernel.learner_.knows(pushed.stamp)) return;
        const KernelWatch& writer = *pushed.writer;
        const bool has_been_heard_of = kernel.learner_.knows(writer.begin_);
        throw HazardError(
            Hazard::source_overwritten, has_been_heard_of ? writer.name() : kernel.name(),
            fmt::format("{}: sends bytes {} to {} of {}, which {} writes, and cannot know that it "
                        "is done; {}",
                        kernel.core_->where(), first, end - 1, name_of(config.core, config.chip),
                        name_of(writer),
                        has_been_heard_of ? "the writer waits until the buffer is free"
                                          : "a source is sent when its writer has said so"));
      });
}

// --- channels -----------------------------------------------------------------------------------

void KernelWatch::sending_payload(int channel, std::uint64_t size_bytes) {
  unannounced_bytes_[index(channel)] += size_bytes;
}

void KernelWatch::announcing(int channel, std::uint64_t size_bytes) {
  std::uint64_t& sent = unannounced_bytes_[index(channel)];
  if (sent < size_bytes) {
    throw HazardError(
        Hazard::sync_before_payload, name(),
        fmt::format("{}: announces {} bytes on channel {}, for which {} have been sent; what "
                    "announces a payload is sent behind it",
                    core_->where(), size_bytes, channel, sent));
  }
  sent = 0;
}

void KernelWatch::acknowledging(int channel, std::uint64_t from) {
  if (!is_sync_word(from, map::kChannelSyncBytes)) return;
  throw HazardError(
      Hazard::acknowledgement_from_channel_word, name(),
      fmt::format("{}: acknowledges channel {} from offset {}, which is a sync word of a channel: "
                  "it changes before it has been sent; the source is a word of its own",
                  core_->where(), channel, from));
}

// --- arriving -----------------------------------------------------------------------------------

void HazardMonitor::arriving(EthernetEnd at, std::uint64_t offset,
                             std::span<const std::byte> bytes) {
  const EthernetEnd from = *cluster_.connected(at);
  const int queues = cluster_.chips[index(from.chip)].chip->ethernet.tx_queues;
  for (int queue = 0; queue < queues; ++queue) {
    const Stream stream = stream_of(from, queue);
    std::deque<InFlight>& in_flight = streams_[stream].in_flight;
    if (in_flight.empty()) continue;
    InFlight& command = in_flight.front();
    if (command.destination + command.arrived_bytes != offset) continue;
    const std::uint64_t shift = command.position - command.destination;
    const Stamp stamp = command.stamp;
    const KernelWatch* const sender = command.sender;
    command.arrived_bytes += bytes.size();
    if (command.arrived_bytes == command.size_bytes) in_flight.pop_front();
    Ledger& here = ledger(at.chip, core_of(at));
    if (bytes.size() > kSmallFrameBytes) {
      here.arrived.assign(offset, offset + bytes.size(), {stamp, stream, shift});
      return;
    }
    // A word that keeps its value does not announce an arrival.
    std::vector<std::byte> before(bytes.size());
    chips_[index(at.chip)].network->load(core_of(at), offset, before);
    for (std::uint64_t word = 0; word < bytes.size(); word += noc::kWordBytes) {
      if (std::ranges::equal(bytes.subspan(word, noc::kWordBytes),
                             std::span(before).subspan(word, noc::kWordBytes))) {
        continue;
      }
      here.arrived.assign(offset + word, offset + word + noc::kWordBytes, {stamp, stream, shift});
      const int channel = map::channel_of(offset + word);
      if (channel < 0) continue;
      here.unseen_syncs[index(channel)] = {
          0, sender, {.destination = map::bytes_sent_at(channel), .size_bytes = bytes.size()}};
    }
    return;
  }
}

// --- who waits for whom -------------------------------------------------------------------------

const KernelWatch* HazardMonitor::peer_of(const KernelWatch& kernel) const {
  if (kernel.channel_ < 0) return nullptr;
  const auto to = cluster_.connected({kernel.config_.chip, kernel.channel_});
  if (!to) return nullptr;
  const auto& kernels = ethernet_kernels_[index(to->chip)][index(to->channel)];
  const auto running = std::ranges::find_if(
      kernels, [](const KernelWatch* at) { return at->state_ == KernelWatch::State::running; });
  return running == kernels.end() ? nullptr : *running;
}

std::vector<const KernelWatch*> HazardMonitor::writers_of(const KernelWatch& owner,
                                                          std::uint64_t offset,
                                                          std::uint64_t size_bytes) const {
  std::vector<const KernelWatch*> writers;
  if (size_bytes > noc::kWordBytes && !owner.looked_at_.empty()) {
    for (const std::uint64_t word : owner.looked_at_) {
      add_writers(owner, word, noc::kWordBytes, writers);
    }
  } else {
    add_writers(owner, offset, size_bytes, writers);
  }
  return writers;
}

void HazardMonitor::add_writers(const KernelWatch& owner, std::uint64_t offset,
                                std::uint64_t size_bytes,
                                std::vector<const KernelWatch*>& writers) const {
  bool is_known = false;
  const auto add = [&](const KernelWatch* writer) {
    if (writer == nullptr || writer == &owner) return;
    if (writer->state_ != KernelWatch::State::running) return;
    is_known = true;
    if (std::ranges::find(writers, writer) == writers.end()) writers.push_back(writer);
  };
  const std::uint64_t end = offset + size_bytes;
  bool is_from_far_end = is_sync_word(offset, size_bytes);
  if (const Ledger* ledger = find_ledger(owner.config_.chip, owner.config_.core);
      ledger != nullptr) {
    for (auto at = ledger->words.lower_bound(offset); at != ledger->words.end() && at->first < end;
         ++at) {
      std::ranges::for_each(at->second.writers, add);
    }
    ledger->pushed.each(offset, end, [&](std::uint64_t, std::uint64_t, const Pushed& pushed) {
      add(pushed.writer);
    });
    ledger->incoming.each(offset, end, [&](std::uint64_t, std::uint64_t, const Incoming&) {
      is_from_far_end = true;
    });
    ledger->sources.each(offset, end, [&](std::uint64_t, std::uint64_t, const Source& source) {
      if (source.sender == &owner) is_from_far_end = true;
    });
  }
  if (is_from_far_end) add(peer_of(owner));
  const auto add_others = [&](const auto& could) {
    if (is_known) return;
    std::vector<const KernelWatch*> others;
    for (const auto& kernel : kernels_) {
      if (could(*kernel)) others.push_back(kernel.get());
    }
    std::ranges::for_each(others, add);
  };
  add_others([&](const KernelWatch& kernel) {
    return std::ranges::find(owner.told_, std::pair(kernel.config_.chip, kernel.config_.core)) !=
           owner.told_.end();
  });
  add_others([&](const KernelWatch& kernel) { return kernel.config_.chip == owner.config_.chip; });
}

}  // namespace towpath::tenstorrent
