// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/sim/hardware_priority.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::sim {

// An effect of one model on another, such as the arrival of a frame. Its place in the order is the
// same within one simulation and across two partitions of a SimulationGroup: before all other
// events at its time, then by crossing number, then in sending order.
//
//   Crossing crossing(own_simulation);   // numbered in construction order
//   crossing.at(far_simulation, own_simulation.now() + latency, &arrived, &frame);
//
// Between partitions the delay is at least the group's lookahead. Ownership of the context passes
// to the receiver until a crossing returns it.
class Crossing {
 public:
  explicit Crossing(Simulation& from) : from_(from), number_((*from.crossings_counter_)++) {}

  void at(Simulation& to, Time when, Action action, void* context) {
    constexpr int kSequenceBits = 28;  // only crossings at the same time need to differ
    const std::uint64_t order = std::uint64_t{number_} << kSequenceBits |
                                (sequence_++ & ((std::uint64_t{1} << kSequenceBits) - 1));
    at_ordered(to, {when, kCrossingPriority, order}, action, context);
  }
  // Returns an object that no event observes, such as storage: immediately within this simulation,
  // between windows otherwise.
  void give_back(const Simulation& to, Action action, void* context) {
    if (&to == &from_) {
      action(context);
    } else {
      from_.given_back_.push_back({action, context});
    }
  }
  // A position in the order that the model chooses. See Simulation::at_ordered.
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
