// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/metalium/kernel_log.hpp"

namespace towpath::tenstorrent::metalium {

// Printed text, profiler zones and values of a kernel, added to the log of its run.
class KernelReports {
 public:
  // `log` may be null.
  KernelReports(const DataMovementCore& core, KernelLog* log) : core_(core), log_(log) {}

  void print(std::string_view text);
  // Completes an unfinished line at the kernel's end.
  void end();
  void zone(const char* name, bool begins);
  void record(const char* name, std::uint64_t value);

 private:
  KernelLog::From from() const;

  const DataMovementCore& core_;
  KernelLog* log_;
  std::vector<KernelLog::Zone> open_zones_;
  std::string line_;
};

}  // namespace towpath::tenstorrent::metalium
