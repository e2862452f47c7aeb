// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "towpath/machine/chip.hpp"

namespace towpath::noc {

// Time in 1/1024 cycle, for rates that are no whole number of flits per cycle.
using PaceTime = std::int64_t;
inline constexpr PaceTime kPaceCycle = 1024;

// What a flit takes at a rate.
inline PaceTime flit_interval(int flit_bytes, machine::BytesPerCycle rate) {
  return static_cast<PaceTime>(static_cast<double>(flit_bytes) * kPaceCycle / rate.value() + 0.5);
}

// Lets something happen at most once per interval. What it lags behind whole cycles is made up for,
// so that the rate is exact; time in which nothing was asked for is not.
class Pace {
 public:
  bool is_ready(std::int64_t cycle) const { return next_ <= cycle * kPaceCycle; }
  void take(std::int64_t cycle, PaceTime interval) {
    next_ = std::max(next_, (cycle - 1) * kPaceCycle + 1) + interval;
  }
  // The first cycle in which it is ready.
  std::int64_t ready_at() const { return (next_ + kPaceCycle - 1) / kPaceCycle; }

 private:
  PaceTime next_ = 0;
};

}  // namespace towpath::noc
