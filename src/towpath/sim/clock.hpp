// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"

namespace towpath::sim {

// A clock domain. Cycle n has its edge at origin + ceil(n / frequency), rounded once.
//
//   simulation.at(clock.edge_after(simulation.now(), Cycles(3)), ...);
//
// Wrong: now + period * 3. The rounded period drifts from the clock.
class Clock {
 public:
  explicit Clock(Frequency frequency, Time origin = Time());

  Frequency frequency() const { return frequency_; }
  Time origin() const { return origin_; }

  Time edge(Cycles cycle) const { return origin_ + frequency_.time_of(cycle); }

  // First cycle with its edge at or after `time`. Times before the origin give cycle 0.
  Cycles cycle_at(Time time) const;

  // First edge at or after `time`.
  Time next_edge(Time time) const { return edge(cycle_at(time)); }

  // The edge `delay` cycles after next_edge(time).
  Time edge_after(Time time, Cycles delay) const { return edge(cycle_at(time) + delay); }

  // Number of edges in [from, to).
  Cycles cycles_until(Time from, Time to) const { return cycle_at(to) - cycle_at(from); }

 private:
  Frequency frequency_;
  Time origin_;
};

}  // namespace towpath::sim
