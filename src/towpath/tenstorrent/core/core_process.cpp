// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/core/core_process.hpp"

#include <algorithm>

#include "towpath/tenstorrent/core/call_costs.hpp"

namespace towpath::tenstorrent {

using noc::NiuCounters;

CoreProcess::CoreProcess(noc::ChipNetwork& network, KernelConfig config, CoreObserver* observer)
    : network_(network),
      config_(std::move(config)),
      observer_(observer == nullptr ? &ignores_everything_ : observer) {
  const machine::Chip& chip = network_.chip();
  if (!chip.holds(config_.core)) {
    refuse("it is outside the {} x {} grid", chip.width, chip.height);
  }
  const machine::TileKind kind = chip.tile(config_.core).kind;
  if (kind != machine::TileKind::worker && kind != machine::TileKind::ethernet) {
    refuse("it is a {} tile; use a worker or an Ethernet tile", machine::name_of(kind));
  }
  if (config_.noc_index != 0 && config_.noc_index != 1 && config_.noc_index != kNoNoc) {
    refuse("its NoC is {}; it must be 0 or 1", config_.noc_index);
  }
}

std::string CoreProcess::where() const {
  std::string kernel =
      fmt::format("kernel '{}' on core ({}, {})", config_.name, config_.core.x, config_.core.y);
  if (config_.chip != kOnlyChip) kernel += fmt::format(" of chip {}", config_.chip);
  if (!call_.empty()) kernel += fmt::format(" in {}", call_);
  return kernel + words_of(place_);
}

std::string CoreProcess::words_of(const void* place) const {
  return place == nullptr || !place_words_ ? std::string() : place_words_(place);
}

int CoreProcess::noc_of(int noc) const {
  if (noc == kKernelNoc) noc = config_.noc_index;
  if (noc != 0 && noc != 1) refuse("there is no NoC {}; choose 0 or 1", noc);
  return noc;
}

void CoreProcess::work(noc::Cycle cycles) {
  if (cycles > 0) work_until(cycle() + cycles);
}

void CoreProcess::work_until(noc::Cycle cycle) {
  const Time until = network_.clock().edge(Cycles(cycle));
  sim::Simulation& simulation = network_.simulation();
  if (until > simulation.now()) simulation.sleep_until(until);
}

// --- the L1 of the core -------------------------------------------------------------------------

std::uint32_t CoreProcess::look(std::uint64_t offset, std::uint32_t minimum) {
  const std::uint32_t value = named([&] { return network_.load_word(config_.core, offset); });
  observer_->looked(offset, value, std::min(value, minimum));
  return value;
}

void CoreProcess::change(std::uint64_t offset, std::uint32_t value) {
  observer_->storing(offset, std::as_bytes(std::span(&value, 1)));
  named([&] { network_.store_word(config_.core, offset, value); });
}

// --- waits --------------------------------------------------------------------------------------

void CoreProcess::suspend_until(noc::ChipNetwork::Condition condition, int noc) {
  const NiuCounters& counters = network_.counters(noc, config_.core);
  const noc::Cycle since = cycle();
  while (!condition.holds(counters, condition.argument)) {
    wait_ = {.kind = Wait::Kind::network, .since = since, .noc = noc};
    sim::Simulation& simulation = network_.simulation();
    network_.wake_when(noc, config_.core, condition, *simulation.current());
    simulation.suspend("its NIU");
    wait_.kind = Wait::Kind::nothing;
  }
}

void CoreProcess::poll_counters(noc::ChipNetwork::Condition condition, int noc) {
  const noc::Cycle first = cycle();
  suspend_until(condition, noc);
  finish_polling(first);
}

void CoreProcess::poll_word(std::uint64_t word, std::uint32_t value, bool is_minimum) {
  sim::Simulation& simulation = network_.simulation();
  const noc::Cycle first = cycle();
  while (true) {
    const std::uint32_t now = is_minimum ? look(word, value) : look(word);
    if (is_minimum ? now >= value : now == value) break;
    wait_ = {.kind = Wait::Kind::word,
             .since = first,
             .word = word,
             .value = value,
             .relation = is_minimum ? "at least " : ""};
    network_.wake_on_write(config_.core, word, *simulation.current());
    simulation.suspend("a semaphore");
    wait_.kind = Wait::Kind::nothing;
  }
  finish_polling(first);
}

void CoreProcess::poll_l1(std::uint64_t word) {
  sim::Simulation& simulation = network_.simulation();
  const noc::Cycle first = cycle();
  wait_ = {.kind = Wait::Kind::change,
           .since = first,
           .word = word,
           .change = "nothing changes that it polls"};
  network_.wake_on_write(config_.core, 0, *simulation.current(),
                         network_.memory(config_.core).size_bytes());
  simulation.suspend("a word that it polls");
  wait_.kind = Wait::Kind::nothing;
  finish_polling(first);
}

// The poll that saw it began at most one period ago.
void CoreProcess::finish_polling(noc::Cycle first) {
  const noc::Cycle period = kPollCycles;
  work_until(first + ((cycle() - first) / period + 1) * period);
}

std::string CoreProcess::describe_wait() const {
  const std::string who = fmt::format("{} since cycle {}: ", where(), wait_.since);
  switch (wait_.kind) {
    case Wait::Kind::nothing: return "";
    case Wait::Kind::network: {
      const std::string request = network_.describe_unanswered(wait_.noc, config_.core);
      return who +
             (request.empty() ? fmt::format("nothing of it is on NoC {}", wait_.noc) : request);
    }
    case Wait::Kind::change: return who + std::string(wait_.change);
    case Wait::Kind::word: break;
  }
  return who + fmt::format("its word at offset {} is {} and must become {}{}", wait_.word,
                           network_.load_word(config_.core, wait_.word), wait_.relation,
                           wait_.value);
}

CoreProcess::Range CoreProcess::awaited() const {
  switch (wait_.kind) {
    case Wait::Kind::nothing:
    case Wait::Kind::network: return {};
    case Wait::Kind::word: return {wait_.word, noc::kWordBytes};
    case Wait::Kind::change: break;
  }
  return {0, network_.memory(config_.core).size_bytes()};
}

}  // namespace towpath::tenstorrent
