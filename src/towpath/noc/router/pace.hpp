// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "towpath/machine/chip.hpp"

namespace towpath::noc {

// Time in 1/1024 cycle, for rates that are not a whole number of flits per cycle.
using PaceTime = std::int64_t;
inline constexpr PaceTime kPaceCycle = 1024;

// Time of a flit at a rate.
inline PaceTime flit_interval(int flit_bytes, machine::BytesPerCycle rate) {
  return static_cast<PaceTime>(static_cast<double>(flit_bytes) * kPaceCycle / rate.value() + 0.5);
}

// Limits an action to once per interval. Rounding to whole cycles is compensated, so that the rate
// is exact. Idle time is not.
class Pace {
 public:
  bool is_ready(std::int64_t cycle) const { return next_ <= cycle * kPaceCycle; }
  void take(std::int64_t cycle, PaceTime interval) {
    next_ = std::max(next_, (cycle - 1) * kPaceCycle + 1) + interval;
  }
  // First cycle in which the action is allowed.
  std::int64_t ready_at() const { return (next_ + kPaceCycle - 1) / kPaceCycle; }

 private:
  PaceTime next_ = 0;
};

}  // namespace towpath::noc
