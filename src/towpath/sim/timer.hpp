// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"
#include "towpath/sim/event_queue.hpp"

namespace towpath::sim {

class Simulation;

// A cancellable event, such as a timeout or a retransmission. It is a member of its owner, fires at
// most once per arm(), and can be rearmed at any time, even from its action.
//
//   timer_.arm(simulation, simulation.now() + timeout, &on_timeout, this);
//
// Cancelling is O(1): the event stays behind as a dead entry that neither runs nor advances time.
// Dead entries are swept before they outnumber live ones.
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { cancel(); }

  // Replaces an earlier arm(). As in Simulation::at(), `when` is not before now.
  void arm(Simulation& simulation, Time when, Action action, void* context, int priority = 0);
  // For background work: Simulation::run() stops if only background timers are left.
  void arm_in_background(Simulation& simulation, Time when, Action action, void* context,
                         int priority = 0);
  // No effect if the timer is not armed.
  void cancel();
  bool is_armed() const { return slot_ != nullptr; }

 private:
  friend class Simulation;

  // The event's context. It outlives the timer.
  struct Slot {
    Timer* timer = nullptr;  // null if cancelled
    bool is_in_background = false;
    Slot* next_free = nullptr;
  };

  void leave_background();
  static void fire(void* slot);

  Simulation* simulation_ = nullptr;
  Slot* slot_ = nullptr;
  Action action_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace towpath::sim
