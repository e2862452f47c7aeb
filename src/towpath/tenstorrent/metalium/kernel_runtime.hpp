// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "towpath/tenstorrent/metalium/kernel_buffers.hpp"
#include "towpath/tenstorrent/metalium/kernel_connections.hpp"
#include "towpath/tenstorrent/metalium/kernel_ethernet.hpp"
#include "towpath/tenstorrent/metalium/kernel_library.hpp"
#include "towpath/tenstorrent/metalium/kernel_memory.hpp"
#include "towpath/tenstorrent/metalium/kernel_reports.hpp"

namespace towpath::tenstorrent::metalium {

// One run of a kernel in source form on a core. The table of kernel_calls.cpp dispatches its calls,
// loads and stores to the parts.
class KernelRuntime {
 public:
  KernelRuntime(DataMovementCore& core, const KernelTarget& target, const KernelSetup& setup);
  KernelRuntime(const KernelRuntime&) = delete;
  KernelRuntime& operator=(const KernelRuntime&) = delete;

  void run(const KernelLibrary& library);

  DataMovementCore& core;
  KernelClock clock;
  KernelMemory memory;
  KernelBuffers buffers;
  KernelEthernet ethernet;
  KernelConnections connections;
  KernelReports reports;

  // Counts executed basic blocks, the last one before `place`. Rejects an endless loop.
  void count_blocks(std::uint64_t blocks, const void* place);
  void count_report() { count_blocks(KernelClock::kBlocksPerReport, nullptr); }
  // The kernel comes to a loop that consists of a jump to itself.
  [[noreturn]] void refuse_endless_loop(const void* place);

 private:
  void fill_banks();
  // " at FILE:LINE" in the source of the kernel, from the debugger's tables.
  std::string at_place(const void* place) const;

  const KernelSetup& setup_;
  const KernelLibrary* library_ = nullptr;  // while it runs
  std::vector<std::uint64_t> dram_banks_;
  std::vector<std::uint64_t> l1_banks_;
};

// The function table for kernels.
const TowpathCalls& kernel_calls();

}  // namespace towpath::tenstorrent::metalium
