// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/watched_kernels.hpp"

#include <algorithm>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::tenstorrent {

using machine::EthernetEnd;

WatchedKernels::WatchedKernels(ChipRecords& records) : records_(records) {
  for (const machine::ClusterChip& chip : records.cluster().chips) {
    chips_.emplace_back().by_channel.resize(chip.chip->ethernet_cores.size());
  }
}

void WatchedKernels::begin_program(int chip) {
  Chip& at = chips_[index(chip)];
  at.known = at.ended;
  ++at.program;
}

KernelWatch& WatchedKernels::add(HazardMonitor& monitor, KernelWatch::Config config) {
  const Place place = records_.place_of(config.chip, config.core, config.noc_index);
  const int channel = records_.channel_of(config.chip, config.core);
  Chip& chip = chips_[index(config.chip)];
  kernels_.push_back(std::make_unique<KernelWatch>(
      monitor, std::move(config), Learner(place, clocks_[place]), chip.program, channel));
  KernelWatch& kernel = *kernels_.back();
  if (channel >= 0) chip.by_channel[index(channel)].push_back(&kernel);
  return kernel;
}

void WatchedKernels::started(KernelWatch& kernel) const {
  kernel.learner().learn(chips_[index(kernel.config().chip)].known);
}

void WatchedKernels::ended(KernelWatch& kernel) {
  Learner& learner = kernel.learner();
  Knowledge& ended = chips_[index(kernel.config().chip)].ended;
  ended.join(learner.known());
  ended.clocks.raise(learner.place(), learner.step().clock);
  clocks_[learner.place()] = learner.clock();
}

const KernelWatch* WatchedKernels::at(EthernetEnd end, int generation) const {
  const auto& kernels = chips_[index(end.chip)].by_channel[index(end.channel)];
  for (auto kernel = kernels.rbegin(); kernel != kernels.rend(); ++kernel) {
    if ((*kernel)->config().generation == generation) return *kernel;
  }
  return nullptr;
}

bool WatchedKernels::knows_program(const KernelWatch& kernel, int chip, int program) const {
  return program == 0 || std::ranges::any_of(kernels_, [&](const auto& other) {
           return other->config().chip == chip && other->program() >= program &&
                  kernel.knows_start_of(*other);
         });
}

// --- who waits for whom -------------------------------------------------------------------------

const KernelWatch* WatchedKernels::peer_of(const KernelWatch& kernel) const {
  if (kernel.channel() < 0) return nullptr;
  const auto to = records_.cluster().connected({kernel.config().chip, kernel.channel()});
  if (!to) return nullptr;
  const auto& kernels = chips_[index(to->chip)].by_channel[index(to->channel)];
  const auto running = std::ranges::find_if(kernels, &KernelWatch::is_running);
  return running == kernels.end() ? nullptr : *running;
}

std::vector<const KernelWatch*> WatchedKernels::writers_of(const KernelWatch& owner,
                                                           std::uint64_t offset,
                                                           std::uint64_t size_bytes) const {
  Writers writers{owner};
  if (size_bytes > noc::kWordBytes && !owner.looked_at().empty()) {
    for (const std::uint64_t word : owner.looked_at()) {
      add_writers(writers, word, noc::kWordBytes);
    }
  } else {
    add_writers(writers, offset, size_bytes);
  }
  return std::move(writers.found);
}

void WatchedKernels::Writers::add(const KernelWatch* writer) {
  if (writer == nullptr || writer == &owner || !writer->is_running()) return;
  is_known = true;
  if (std::ranges::find(found, writer) == found.end()) found.push_back(writer);
}

template <typename Could>
void WatchedKernels::add_others(Writers& writers, const Could& could) const {
  if (writers.is_known) return;
  for (const auto& kernel : kernels_) {
    if (could(*kernel)) writers.add(kernel.get());
  }
}

void WatchedKernels::add_writers(Writers& writers, std::uint64_t offset,
                                 std::uint64_t size_bytes) const {
  const KernelWatch& owner = writers.owner;
  const std::uint64_t end = offset + size_bytes;
  writers.is_known = false;
  bool is_from_far_end = ethernet_memory_map::is_sync_word(offset, size_bytes);
  if (const Ledger* ledger = records_.find_ledger(owner.config().chip, owner.config().core);
      ledger != nullptr) {
    for (auto at = ledger->words.lower_bound(offset); at != ledger->words.end() && at->first < end;
         ++at) {
      for (const KernelWatch* writer : at->second.writers) writers.add(writer);
    }
    ledger->pushed.each(offset, end, [&](std::uint64_t, std::uint64_t, const Pushed& pushed) {
      writers.add(pushed.writer);
    });
    is_from_far_end = is_from_far_end || ledger->incoming.has_any(offset, end) ||
                      ledger->sources.find_if(offset, end, [&](const Source& source) {
                        return source.sender == &owner;
                      }) != nullptr;
  }
  if (is_from_far_end) writers.add(peer_of(owner));
  add_others(writers, [&](const KernelWatch& kernel) {
    return owner.has_target(kernel.config().chip, kernel.config().core);
  });
  add_others(writers, [&](const KernelWatch& kernel) {
    return kernel.config().chip == owner.config().chip;
  });
}

}  // namespace towpath::tenstorrent
