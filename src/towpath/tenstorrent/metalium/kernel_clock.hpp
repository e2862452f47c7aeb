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

// The time of a kernel in source form. Plain loads and stores and the code around calls add to a
// debt of cycles, which is paid before anything that others could notice.
//
// Instructions take no time, so a loop without calls would never end. The compiler makes each block
// of instructions count (trace-pc), and the run is refused after kBlocksMax of them in one cycle of
// simulated time. This does not depend on the speed of the host.
class KernelClock {
 public:
  // Four seconds of a core's time at least: tt-metal's Ethernet microbenchmarks wait in loops of
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
  // The first read in a cycle takes no time. Later ones take a poll, so that a loop that reads
  // ends.
  enum class Read : std::uint8_t { whole, low, high };
  std::uint64_t read(Read how);

 private:
  void fetch_lines(int code, int lines);

  DataMovementCore& core_;
  bool is_ethernet_;
  noc::Cycle debt_cycles_ = 0;
  InstructionCache instructions_;
  std::uint64_t blocks_ = 0;  // in this cycle:
  noc::Cycle blocks_cycle_ = 0;
  std::array<noc::Cycle, 3> seen_{-1, -1, -1};  // by how it was read
};

// Ends the run of a kernel with a sentence about its call.
[[noreturn]] void refuse(const DataMovementCore& core, std::string_view sentence);

}  // namespace towpath::tenstorrent::metalium
