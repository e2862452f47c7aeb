// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/sim/hardware_priority.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::sim {

// What one model makes happen in others: a frame that arrives, a notice. Whether both are in one
// simulation or in two partitions of a SimulationGroup, it happens at the same place of the order:
// before all else at its time, of several by the number of the crossing, in the order of sending.
//
//   Crossing crossing(own_simulation);   // numbers follow the order of construction
//   crossing.at(far_simulation, own_simulation.now() + latency, &arrived, &frame);
//
// To another partition the delay is at least the lookahead of the group. What the context points to
// is then the other one's, until it says otherwise by a crossing of its own.
class Crossing {
 public:
  explicit Crossing(Simulation& from) : from_(from), number_((*from.crossings_counter_)++) {}

  void at(Simulation& to, Time when, Action action, void* context) {
    constexpr int kSequenceBits = 28;  // those at one time are all that have to differ
    const std::uint64_t order = std::uint64_t{number_} << kSequenceBits |
                                (sequence_++ & ((std::uint64_t{1} << kSequenceBits) - 1));
    at_ordered(to, {when, kCrossingPriority, order}, action, context);
  }
  // Gives something back that no event looks at, such as storage: at once to the own simulation, to
  // another one when no event is at work.
  void give_back(const Simulation& to, Action action, void* context) {
    if (&to == &from_) {
      action(context);
    } else {
      from_.given_back_.push_back({action, context});
    }
  }
  // At a place in the order that the model knows; see Simulation::at_ordered.
  struct Turn {
    Time when;
    int priority;
    std::uint64_t order;
  };
  void at_ordered(Simulation& to, const Turn& turn, Action action, void* context) {
    if (&to == &from_) {
      to.at_ordered(turn.when, turn.priority, turn.order, action, context);
      return;
    }
    TOWPATH_CHECK(turn.when > from_.window_limit_,
                  "a partition is sent an event for {} ps; others may be at {} ps already",
                  turn.when.ps(), from_.window_limit_.ps());
    from_.sent_.push_back({&to, turn.when, turn.priority, turn.order, action, context});
  }

 private:
  Simulation& from_;
  std::uint32_t number_;  // below 2^20
  std::uint64_t sequence_ = 0;
};

}  // namespace towpath::sim
