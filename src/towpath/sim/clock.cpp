// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/clock.hpp"

#include "towpath/base/invariant.hpp"

namespace towpath::sim {

Clock::Clock(Frequency frequency, Time origin) : frequency_(frequency), origin_(origin) {
  TOWPATH_CHECK(frequency.hz() > 0, "a clock has {} Hz; a frequency is positive", frequency.hz());
}

Cycles Clock::cycle_at(Time time) const {
  return time <= origin_ ? Cycles(0) : frequency_.cycle_at(time - origin_);
}

}  // namespace towpath::sim
