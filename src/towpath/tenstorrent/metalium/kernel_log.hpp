// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"

namespace towpath::tenstorrent::metalium {

// The reports of the kernels of a run: profiler zones, values, and printed text.
struct KernelLog {
  struct From {
    int chip = 0;
    machine::Coordinate core;
    std::string kernel;
  };
  struct Zone {
    From from;
    std::string name;
    noc::Cycle begin = 0;
    noc::Cycle end = 0;
  };
  struct Value {
    From from;
    std::string name;
    std::uint64_t value = 0;
  };
  struct Line {
    From from;
    std::string text;
  };
  std::vector<Zone> zones;
  std::vector<Value> values;
  std::vector<Line> lines;
};

// Printed text, profiler zones and values of a kernel, added to the log of its run.
class KernelReports {
 public:
  // `log` may be null.
  KernelReports(const DataMovementCore& core, KernelLog* log) : core_(core), log_(log) {}

  void print(std::string_view text) {
    if (log_ == nullptr) return;
    for (const char character : text) {
      if (character == '\n') {
        log_->lines.push_back({from(), std::exchange(line_, {})});
      } else {
        line_ += character;
      }
    }
  }
  // Completes an unfinished line at the kernel's end.
  void end() {
    if (!line_.empty()) print("\n");
  }
  void zone(const char* name, bool begins) {
    if (log_ == nullptr) return;
    if (begins) {
      open_zones_.push_back({from(), name, core_.cycle(), 0});
      return;
    }
    KernelLog::Zone zone = std::move(open_zones_.back());
    open_zones_.pop_back();
    zone.end = core_.cycle();
    log_->zones.push_back(std::move(zone));
  }
  void record(const char* name, std::uint64_t value) {
    if (log_ != nullptr) log_->values.push_back({from(), name, value});
  }

 private:
  KernelLog::From from() const {
    const KernelConfig& config = core_.config();
    return {std::max(0, config.chip), config.core, config.name};
  }

  const DataMovementCore& core_;
  KernelLog* log_;
  std::vector<KernelLog::Zone> open_zones_;
  std::string line_;
};

}  // namespace towpath::tenstorrent::metalium
