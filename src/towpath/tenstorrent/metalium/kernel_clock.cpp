// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_clock.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "towpath/tenstorrent/core/call_costs.hpp"

namespace towpath::tenstorrent::metalium {

KernelClock::KernelClock(DataMovementCore& core, Processor processor)
    : core_(core),
      is_ethernet_(processor == Processor::ethernet),
      instructions_(kInstructionFetch.of(core.network().chip()).cache_bytes) {}

void KernelClock::pay() { core_.work(std::exchange(debt_cycles_, 0)); }

void KernelClock::owe_call() {
  if (is_ethernet_) owe(kSourceCallCycles);
}

void KernelClock::fetch_lines(int code, int lines) {
  if (!is_ethernet_) return;
  const int fetch_cycles = kInstructionFetch.of(core_.network().chip()).line_cycles;
  owe(fetch_cycles * instructions_.run(code, lines));
}

void KernelClock::fetch(CallCode code) { fetch_lines(static_cast<int>(code), lines_of(code)); }

void KernelClock::fetch(TowpathEthernetCall call) {
  fetch_lines(static_cast<int>(CallCode::ethernet) + call, lines_of(call));
}

bool KernelClock::count_blocks(std::uint64_t blocks) {
  if (blocks_cycle_ != core_.cycle()) {
    blocks_cycle_ = core_.cycle();
    blocks_ = 0;
  }
  blocks_ += blocks;
  return blocks_ < kBlocksMax;
}

std::uint64_t KernelClock::read(Read how) {
  noc::Cycle& seen = seen_[static_cast<std::size_t>(how)];
  if (seen == core_.cycle()) core_.work(kPollCycles);
  seen = core_.cycle();
  return static_cast<std::uint64_t>(seen);
}

void refuse(const DataMovementCore& core, std::string_view sentence) {
  throw std::invalid_argument(fmt::format("{}: {}", core.where(), sentence));
}

}  // namespace towpath::tenstorrent::metalium
