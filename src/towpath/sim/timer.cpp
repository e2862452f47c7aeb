// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/timer.hpp"

#include "towpath/sim/simulation.hpp"

namespace towpath::sim {

void Timer::arm(Simulation& simulation, Time when, Action action, void* context, int priority) {
  cancel();
  Slot* const slot = simulation.acquire_timer_slot();
  try {
    simulation.at(when, &fire, slot, priority);
  } catch (...) {
    simulation.release_timer_slot(slot);
    throw;
  }
  slot->timer = this;
  slot->is_in_background = false;
  simulation_ = &simulation;
  slot_ = slot;
  action_ = action;
  context_ = context;
}

void Timer::arm_in_background(Simulation& simulation, Time when, Action action, void* context,
                              int priority) {
  arm(simulation, when, action, context, priority);
  slot_->is_in_background = true;
  ++simulation.background_timers_;
}

void Timer::cancel() {
  if (slot_ == nullptr) return;
  leave_background();
  slot_->timer = nullptr;
  slot_ = nullptr;
  simulation_->note_cancelled_timer();
}

void Timer::leave_background() {
  if (slot_->is_in_background) --simulation_->background_timers_;
}

void Timer::fire(void* slot) {
  Timer& timer = *static_cast<Slot*>(slot)->timer;
  timer.leave_background();
  timer.simulation_->release_timer_slot(timer.slot_);
  timer.slot_ = nullptr;
  timer.action_(timer.context_);
}

}  // namespace towpath::sim
