// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/chip_network.hpp"

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

}  // namespace towpath::tenstorrent::metalium
