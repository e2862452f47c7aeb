// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"
#include "towpath/sim/event_queue.hpp"

namespace towpath::sim {

class Simulation;

// An event that can be taken back: a timeout, a retransmission. It lives in its owner, fires at
// most once per arm(), and may be armed again at any time, also by its own action.
//
//   timer_.arm(simulation, simulation.now() + timeout, &on_timeout, this);
//
// Cancelling is O(1): the event stays behind as a dead entry, which neither runs nor lets time
// pass, and dead entries are swept out before they outnumber the live ones.
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { cancel(); }

  // Instead of any earlier arm(). As for Simulation::at(), `when` is not before now.
  void arm(Simulation& simulation, Time when, Action action, void* context, int priority = 0);
  // The same, of something that goes on beside what is simulated: Simulation::run() does not wait
  // for it when nothing else is left.
  void arm_in_background(Simulation& simulation, Time when, Action action, void* context,
                         int priority = 0);
  // Nothing happens when it is not armed.
  void cancel();
  bool is_armed() const { return slot_ != nullptr; }

 private:
  friend class Simulation;

  // What the event points to, because the timer may be gone when the event's time comes.
  struct Slot {
    Timer* timer = nullptr;  // null when cancelled
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
