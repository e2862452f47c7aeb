// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/device/hazards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/device/data_movement_core.hpp"

// What kernels of one chip learn from each other: words of L1, and requests over the NoC.

namespace towpath::tenstorrent {

namespace {

using machine::TileKind;

// Most increments of a word that are kept one by one.
constexpr std::size_t kIncrementsMax = 32;

// Most words that a loop is recorded to look at.
constexpr std::size_t kLooksMax = 256;

// Whether a word that is `value` shows that an increment to `total` has taken place.
bool has_reached(std::uint32_t value, std::uint32_t total) {
  return static_cast<std::int32_t>(value - total) >= 0;
}

}  // namespace

std::string name_of(const KernelWatch& kernel) {
  const KernelWatch::Config& config = kernel.config();
  return fmt::format("kernel '{}' on core ({}, {}) of chip {}", config.name, config.core.x,
                     config.core.y, config.chip);
}

KernelWatch::KernelWatch(HazardMonitor& monitor, Config config, Place place)
    : monitor_(monitor),
      config_(std::move(config)),
      learner_(place, monitor.clocks_[place]),
      program_(monitor.chips_[index(config_.chip)].program),
      channel_(monitor.channel_of(config_.chip, config_.core)) {}

void KernelWatch::has_told(int chip, machine::Coordinate core) {
  const std::pair told(chip, core);
  if (std::ranges::find(told_, told) == told_.end()) told_.push_back(told);
}

std::string KernelWatch::where() const { return is_over() ? name_of(*this) : core_->where(); }

void HazardMonitor::Word::add_writer(const KernelWatch& kernel) {
  if (std::ranges::find(writers, &kernel) == writers.end()) writers.push_back(&kernel);
}

// --- words --------------------------------------------------------------------------------------

void KernelWatch::looked(std::uint64_t offset, std::uint32_t value, std::uint32_t needed) {
  if (channel_ >= 0 && looked_at_.size() < kLooksMax &&
      std::ranges::find(looked_at_, offset) == looked_at_.end()) {
    looked_at_.push_back(offset);
  }
  HazardMonitor::Ledger& ledger = monitor_.ledger(config_.chip, config_.core);
  monitor_.learn_from(*this, ledger, offset, offset + noc::kWordBytes);
  if (const int channel = ethernet_memory_map::channel_of(offset); channel >= 0) {
    ledger.unseen_syncs[index(channel)].reset();
  }
  const auto word = ledger.words.find(offset);
  if (word != ledger.words.end()) monitor_.learn_from(*this, word->second, value, needed);
}

void KernelWatch::using_bytes(std::uint64_t offset, std::uint64_t size_bytes) {
  const std::uint64_t end = offset + size_bytes;
  monitor_.check_bytes_are_there(*this, config_.chip, config_.core, offset, size_bytes);
  HazardMonitor::Ledger& ledger = monitor_.ledger(config_.chip, config_.core);
  monitor_.learn_from(*this, ledger, offset, end);
  monitor_.use(*this, config_.chip, config_.core, offset, end);
  for (int channel = 0; channel < ethernet_memory_map::kChannels; ++channel) {
    const std::uint64_t sync = ethernet_memory_map::bytes_sent_at(channel);
    if (offset <= sync && sync < end) ledger.unseen_syncs[index(channel)].reset();
  }
}

void KernelWatch::storing(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t end = offset + bytes.size();
  monitor_.check_sources(*this, config_.chip, {config_.core, offset, bytes.size(), bytes});
  HazardMonitor::Ledger& ledger = monitor_.ledger(config_.chip, config_.core);
  const Stamp stamp = learner_.step();
  if (bytes.size() == noc::kWordBytes) monitor_.word_at(config_.chip, config_.core, offset);
  for (auto at = ledger.words.lower_bound(offset); at != ledger.words.end() && at->first < end;
       ++at) {
    HazardMonitor::Word& word = at->second;
    monitor_.check_increments(*this, at->first, word);
    word.increments.clear();
    word.inline_write.reset();
    word.store = {this, stamp};
    if (at->first + noc::kWordBytes > end) continue;
    std::ranges::copy(bytes.subspan(at->first - offset, noc::kWordBytes),
                      std::as_writable_bytes(std::span(&word.base, 1)).begin());
  }
  ledger.incoming.erase(offset, end);
  ledger.arrived.erase(offset, end);
}

HazardMonitor::Word& HazardMonitor::word_at(int chip, machine::Coordinate tile,
                                            std::uint64_t offset) {
  const auto [at, is_new] = ledger(chip, tile).words.try_emplace(offset);
  if (is_new) at->second.base = chips_[index(chip)].network->memory(tile).load_word(offset);
  return at->second;
}

void HazardMonitor::initialise_word(int chip, machine::Coordinate core, std::uint64_t offset) {
  ledger(chip, core).words.erase(offset);
}

void HazardMonitor::host_has_written(int chip, machine::Coordinate tile, std::uint64_t offset,
                                     std::uint64_t size_bytes) {
  if (find_ledger(chip, tile) == nullptr) return;
  Ledger& there = ledger(chip, tile);
  const std::uint64_t end = offset + size_bytes;
  there.words.erase(there.words.lower_bound(offset), there.words.lower_bound(end));
  there.incoming.erase(offset, end);
  there.arrived.erase(offset, end);
  there.pushed.erase(offset, end);
}

// An increment that the kernel may not have seen would be lost.
void HazardMonitor::check_increments(const KernelWatch& kernel, std::uint64_t offset,
                                     const Word& word) {
  for (const Word::Increment& increment : word.increments) {
    if (increment.writer == &kernel || kernel.learner_.knows(increment.stamp)) continue;
    throw HazardError(
        Hazard::semaphore_cleared_after_notification, kernel.name(),
        fmt::format("{}: sets its word at offset {}, which {} may have incremented since it was "
                    "last looked at; a semaphore is cleared before the other is told to go on",
                    kernel.core_->where(), offset, name_of(*increment.writer)));
  }
}

// Of increments, those count that were needed to go on: in another run there are no more.
void HazardMonitor::learn_from(KernelWatch& kernel, Word& word, std::uint32_t value,
                               std::uint32_t needed) {
  for (const Word::Increment& increment : word.increments) {
    if (!word.is_counted || has_reached(needed, increment.total)) {
      kernel.learner_.learn(increment.stamp);
    }
  }
  kernel.learner_.learn(word.seen);
  if (word.store) kernel.learner_.learn(word.store->stamp);
  if (word.inline_write && word.inline_value == value) {
    kernel.learner_.learn(word.inline_write->stamp);
  }
  if (word.increments.size() < kIncrementsMax) return;
  word.base = word.increments.back().total;
  std::erase_if(word.increments, [&](const Word::Increment& increment) {
    if (word.is_counted && !has_reached(needed, increment.total)) return false;
    word.seen.join(*increment.stamp.known);
    word.seen.learn_clock(increment.stamp.place, increment.stamp.clock);
    return true;
  });
}

void HazardMonitor::learn_from(KernelWatch& kernel, const Ledger& ledger, std::uint64_t offset,
                               std::uint64_t end) {
  ledger.arrived.each(offset, end, [&](std::uint64_t, std::uint64_t last, const Arrived& arrived) {
    kernel.learner_.learn(arrived.stamp);
    // A line of L1 is written at once.
    constexpr std::uint64_t kLine = ethernet_memory_map::kChannelSyncBytes;
    kernel.learner_.learn_arrival(arrived.stream,
                                  (last + kLine - 1) / kLine * kLine + arrived.shift);
  });
  ledger.pushed.each(offset, end, [&](std::uint64_t, std::uint64_t, const Pushed& pushed) {
    kernel.learner_.learn(pushed.stamp);
  });
}

// --- requests to the NoC ------------------------------------------------------------------------

void KernelWatch::issuing(const noc::Request& request) {
  if (request.kind == noc::RequestKind::read) {
    monitor_.read_issued(*this, request);
    return;
  }
  if (request.kind == noc::RequestKind::write) {
    monitor_.check_bytes_are_there(*this, config_.chip, config_.core, request.local_offset,
                                   request.size_bytes);
    monitor_.use(*this, config_.chip, config_.core, request.local_offset,
                 request.local_offset + request.size_bytes);
  }
  const Stamp stamp = learner_.step();
  const machine::Chip& chip = monitor_.chips_[index(config_.chip)].network->chip();
  const machine::Coordinate first = request.remote.tile;
  const machine::Coordinate last = request.is_multicast ? request.last_tile : first;
  for (int y = first.y; y <= last.y; ++y) {
    for (int x = first.x; x <= last.x; ++x) {
      const machine::Coordinate tile{x, y};
      if (!chip.holds(tile)) continue;
      monitor_.check_own_buffer(*this, {"writes", tile, request.remote.offset, request.size_bytes});
      const TileKind kind = chip.tile(tile).kind;
      if (kind != TileKind::worker && (kind != TileKind::ethernet || request.is_multicast)) {
        continue;
      }
      if (request.is_multicast && tile == config_.core && !request.includes_source) continue;
      if (request.size_bytes == noc::kWordBytes) {
        monitor_.word_issued(*this, request, tile, stamp);
      } else {
        monitor_.write_issued(*this, request, tile, stamp);
      }
    }
  }
}

void HazardMonitor::read_issued(KernelWatch& kernel, const noc::Request& request) {
  const KernelWatch::Config& config = kernel.config();
  check_own_buffer(kernel,
                   {"reads", request.remote.tile, request.remote.offset, request.size_bytes});
  noc::ChipNetwork& network = *chips_[index(config.chip)].network;
  const machine::Coordinate tile = request.remote.tile;
  if (!network.chip().holds(tile)) return;  // the network will refuse it
  const TileKind kind = network.chip().tile(tile).kind;
  if (kind == TileKind::worker || kind == TileKind::ethernet) {
    const std::uint64_t first = request.remote.offset;
    const std::uint64_t end = first + request.size_bytes;
    // for a word, the kernel looks whether it has arrived
    if (request.size_bytes > noc::kWordBytes) {
      check_bytes_are_there(kernel, config.chip, tile, first, request.size_bytes);
      use(kernel, config.chip, tile, first, end);
    }
    Ledger& remote = ledger(config.chip, tile);
    learn_from(kernel, remote, first, end);
    for (auto at = remote.words.lower_bound(first); at != remote.words.end() && at->first < end;
         ++at) {
      const std::uint32_t value = network.memory(tile).load_word(at->first);
      learn_from(kernel, at->second, value, value);
    }
  }
  check_sources(kernel, config.chip, {config.core, request.local_offset, request.size_bytes});
  Ledger& own = ledger(config.chip, config.core);
  own.incoming.erase(request.local_offset, request.local_offset + request.size_bytes);
  own.arrived.erase(request.local_offset, request.local_offset + request.size_bytes);
}

void HazardMonitor::write_issued(KernelWatch& kernel, const noc::Request& request,
                                 machine::Coordinate tile, const Stamp& stamp) {
  const KernelWatch::Config& config = kernel.config();
  noc::ChipNetwork& network = *chips_[index(config.chip)].network;
  const std::uint64_t first = request.remote.offset;
  const std::uint64_t end = first + request.size_bytes;
  Ledger& ledger_there = ledger(config.chip, tile);
  if (network.chip().tile(tile).kind == TileKind::ethernet) {
    ledger_there.pushed.each(
        first, end, [&](std::uint64_t from, std::uint64_t to, const Pushed& other) {
          if (other.writer == &kernel || kernel.learner_.knows(other.stamp)) return;
          throw HazardError(
              Hazard::two_workers_on_one_channel, kernel.name(),
              fmt::format("{}: writes bytes {} to {} of core ({}, {}), which {} writes too: "
                          "neither knows of the other; a buffer serves one of them",
                          kernel.core_->where(), from, to - 1, tile.x, tile.y,
                          name_of(*other.writer)));
        });
    std::vector<std::byte> bytes(request.size_bytes);
    network.memory(config.core).read(request.local_offset, bytes);
    check_sources(kernel, config.chip, {tile, first, request.size_bytes, bytes});
  }
  ledger_there.pushed.assign(first, end, {&kernel, stamp});
  ledger_there.incoming.erase(first, end);
  ledger_there.arrived.erase(first, end);
}

void HazardMonitor::word_issued(KernelWatch& kernel, const noc::Request& request,
                                machine::Coordinate tile, const Stamp& stamp) {
  const KernelWatch::Config& config = kernel.config();
  const std::uint64_t offset = request.remote.offset;
  kernel.has_told(config.chip, tile);
  Word& word = word_at(config.chip, tile, offset);
  word.add_writer(kernel);
  if (request.kind == noc::RequestKind::atomic_increment) {
    increment(word, {tile, offset}, kernel, stamp, request.value);
  } else {
    set_inline(word, kernel, stamp,
               request.kind == noc::RequestKind::inline_write
                   ? request.value
                   : chips_[index(config.chip)]
                         .network->memory(config.core)
                         .load_word(request.local_offset));
  }
}

void HazardMonitor::set_inline(Word& word, KernelWatch& kernel, const Stamp& stamp,
                               std::uint32_t value) {
  word.inline_value = value;
  word.base = value;
  word.increments.clear();
  word.inline_write = {&kernel, stamp};
}

void HazardMonitor::increment(Word& word, const noc::Address& at, KernelWatch& kernel,
                              const Stamp& stamp, std::uint32_t value) {
  if (word.store && word.store->writer != &kernel && !covers(stamp, word.store->stamp)) {
    const KernelWatch& owner = *word.store->writer;
    throw HazardError(
        Hazard::semaphore_cleared_after_notification, owner.name(),
        fmt::format("{}: increments the word at offset {} of core ({}, {}), and cannot know that "
                    "{} has already set it; a semaphore is cleared before the other is told to go "
                    "on",
                    kernel.where(), at.offset, at.tile.x, at.tile.y, name_of(owner)));
  }
  const std::uint32_t before = word.increments.empty() ? word.base : word.increments.back().total;
  word.increments.push_back({before + value, &kernel, stamp});
  if (static_cast<std::int32_t>(value) < 0) word.is_counted = false;
}

}  // namespace towpath::tenstorrent
