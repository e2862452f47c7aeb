// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "towpath/tenstorrent/core/ethernet_core.hpp"
#include "towpath/tenstorrent/metalium/instruction_cache.hpp"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

namespace towpath::tenstorrent::metalium {

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

  KernelClock(DataMovementCore& core, Processor processor);

  void owe(noc::Cycle cycles) { debt_cycles_ += cycles; }
  void pay();
  // On an Ethernet core: the cost of a call, and of fetching the code up to its end that is not in
  // the cache. The base firmware fills the cache with its code.
  void owe_call();
  void fetch(CallCode code);
  void fetch(TowpathEthernetCall call);
  void firmware_has_run() { instructions_.clear(); }

  // Counts blocks of instructions, after pay(). False at the limit.
  bool count_blocks(std::uint64_t blocks);
  // The first clock read in a cycle is free. Later ones cost a poll, so that polling loops make
  // progress.
  enum class Read : std::uint8_t { whole, low, high };
  std::uint64_t read(Read how);

 private:
  void fetch_lines(int code, int lines);

  DataMovementCore& core_;
  bool is_ethernet_;
  noc::Cycle debt_cycles_ = 0;
  InstructionCache instructions_;
  std::uint64_t blocks_ = 0;  // in this cycle
  noc::Cycle blocks_cycle_ = 0;
  std::array<noc::Cycle, 3> seen_{-1, -1, -1};  // by kind of read
};

// Ends the run of a kernel with an error about its call.
[[noreturn]] void refuse(const DataMovementCore& core, std::string_view sentence);

}  // namespace towpath::tenstorrent::metalium
