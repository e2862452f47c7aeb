// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "towpath/tenstorrent/core/call_costs.hpp"
#include "towpath/tenstorrent/core/ethernet_core.hpp"
#include "towpath/tenstorrent/metalium/kernel_include/towpath_kernel.h"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

namespace towpath::tenstorrent::metalium {

// The code of a kernel up to the end of a call. All calls of a kind count as one location.
enum class CallCode : std::uint8_t {
  read,
  write,
  multicast,
  inline_write,
  with_state,  // partly set up by an earlier call
  atomic,
  short_call,  // states, ids, barriers, local semaphores
  look,        // at the requests with an id
  ethernet,    // plus the kind of call
};

// Code around a call of a kernel on an Ethernet core, in addition to the call's own cost. Counted
// in the guide's ring kernels around a write, an increment, an acknowledgment and a sync word, in
// the code of gcc 12: 7 to 14 cycles, with one instruction per cycle, loads of 7 and wrong branches
// of 2 (tt-isa-documentation WormholeB0/EthernetTile, BabyRISCV/README.md).
inline constexpr int kSourceCallCycles = 10;

// Code of an Ethernet core is in L1, with a cache of the most recent lines. Each missing line costs
// a fetch.
class InstructionCache {
 public:
  // A line is the width of an access to L1: tt-isa-documentation, EthernetTile/L1.md.
  static constexpr int kLineBytes = 16;

  explicit InstructionCache(int bytes) : lines_(bytes / kLineBytes) {}

  // Runs some code. Returns the number of its lines that were not in the cache.
  int run(int code, int lines) {
    const bool was_there = std::erase_if(held_, [&](Held held) { return held.code == code; }) > 0;
    held_.push_back({code, lines});
    drop_oldest();
    return was_there ? 0 : lines;
  }
  // The base firmware has run and replaced all lines.
  void clear() { held_.clear(); }

 private:
  struct Held {
    int code;
    int lines;
  };
  void drop_oldest() {
    int free = lines_;
    for (const Held& held : held_) free -= held.lines;
    while (free < 0) {
      free += held_.front().lines;
      held_.erase(held_.begin());
    }
  }

  int lines_;
  std::vector<Held> held_;  // least recent first
};

// Lines of code from the end of the previous call to the end of this one, counted in the guide's
// ring kernels and in tt-metal's tests of links over its headers, in the code of gcc 12 for such a
// core (rv32im, -Os): the code for one packet. Calls that are in neither have the number of a
// similar one.
constexpr int lines_of(CallCode code) {
  switch (code) {
    case CallCode::read:
    case CallCode::write:
    case CallCode::multicast: return 9;
    case CallCode::inline_write:
    case CallCode::with_state: return 6;
    case CallCode::atomic: return 5;
    default: return 2;
  }
}
struct EthernetCallCode {
  TowpathEthernetCall call;
  int lines;
};
inline constexpr EthernetCallCode kEthernetCallCodes[] = {
    {kTowpathTxqIsBusy, 3},           {kTowpathIsSendAcked, 3},
    {kTowpathIsSendDone, 3},          {kTowpathBytesAreAvailable, 3},
    {kTowpathReadBarrier, 3},         {kTowpathWriteBarrier, 3},
    {kTowpathSendBytes, 5},           {kTowpathSendPacket, 5},
    {kTowpathWriteRemoteRegister, 5}, {kTowpathSendPayloadOnly, 5},
    {kTowpathSendPayloadComplete, 7}, {kTowpathReceiverDone, 7},
    {kTowpathReceiverAcknowledge, 7}, {kTowpathChannelAck, 7},
    {kTowpathChannelDone, 7},         {kTowpathSendBytesOverChannel, 12},  // two commands
};
constexpr int lines_of(TowpathEthernetCall call) {
  for (const EthernetCallCode& code : kEthernetCallCodes) {
    if (code.call == call) return code.lines;
  }
  return 2;
}

// The time of a kernel in source form. Plain loads and stores and the code around calls accumulate
// as a debt of cycles, paid before any externally visible action.
//
// Instructions take no time, so a loop without calls would never end. The compiler instruments each
// basic block (trace-pc), and the run is rejected after kBlocksMax of them in one cycle of
// simulated time. This limit does not depend on the speed of the host.
class KernelClock {
 public:
  // At least four seconds of a core's time: tt-metal's Ethernet microbenchmarks wait in loops of
  // 2,000,000,000. A report (a line, a zone, a value) counts as kBlocksPerReport.
  static constexpr std::uint64_t kBlocksMax = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kBlocksPerReport = std::uint64_t{1} << 14;

  KernelClock(DataMovementCore& core, Processor processor)
      : core_(core),
        is_ethernet_(processor == Processor::ethernet),
        instructions_(kInstructionFetch.of(core.network().chip()).cache_bytes) {}

  void owe(noc::Cycle cycles) { debt_cycles_ += cycles; }
  void pay() { core_.work(std::exchange(debt_cycles_, 0)); }
  // On an Ethernet core: the cost of a call, and of fetching the code up to its end that is not in
  // the cache. The base firmware fills the cache with its code.
  void owe_call() {
    if (is_ethernet_) owe(kSourceCallCycles);
  }
  void fetch(CallCode code) { fetch_lines(static_cast<int>(code), lines_of(code)); }
  void fetch(TowpathEthernetCall call) {
    fetch_lines(static_cast<int>(CallCode::ethernet) + call, lines_of(call));
  }
  void firmware_has_run() { instructions_.clear(); }

  // Counts blocks of instructions, after pay(). False at the limit.
  bool count_blocks(std::uint64_t blocks) {
    if (blocks_cycle_ != core_.cycle()) {
      blocks_cycle_ = core_.cycle();
      blocks_ = 0;
    }
    blocks_ += blocks;
    return blocks_ < kBlocksMax;
  }
  // The first clock read in a cycle is free. Later ones cost a poll, so that polling loops make
  // progress.
  enum class Read : std::uint8_t { whole, low, high };
  std::uint64_t read(Read how) {
    noc::Cycle& seen = seen_[static_cast<std::size_t>(how)];
    if (seen == core_.cycle()) core_.work(kPollCycles);
    seen = core_.cycle();
    return static_cast<std::uint64_t>(seen);
  }

 private:
  void fetch_lines(int code, int lines) {
    if (!is_ethernet_) return;
    const int fetch_cycles = kInstructionFetch.of(core_.network().chip()).line_cycles;
    owe(fetch_cycles * instructions_.run(code, lines));
  }

  DataMovementCore& core_;
  bool is_ethernet_;
  noc::Cycle debt_cycles_ = 0;
  InstructionCache instructions_;
  std::uint64_t blocks_ = 0;  // in this cycle
  noc::Cycle blocks_cycle_ = 0;
  std::array<noc::Cycle, 3> seen_{-1, -1, -1};  // by kind of read
};

// Ends the run of a kernel with an error about its call.
[[noreturn]] inline void refuse(const DataMovementCore& core, std::string_view sentence) {
  throw std::invalid_argument(fmt::format("{}: {}", core.where(), sentence));
}

}  // namespace towpath::tenstorrent::metalium
