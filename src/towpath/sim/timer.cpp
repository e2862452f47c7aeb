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
  simulation_ = &simulation;
  slot_ = slot;
  action_ = action;
  context_ = context;
}

void Timer::cancel() {
  if (slot_ == nullptr) return;
  slot_->timer = nullptr;
  slot_ = nullptr;
  simulation_->note_cancelled_timer();
}

void Timer::fire(void* slot) {
  Timer& timer = *static_cast<Slot*>(slot)->timer;
  timer.simulation_->release_timer_slot(timer.slot_);
  timer.slot_ = nullptr;
  timer.action_(timer.context_);
}

}  // namespace towpath::sim
