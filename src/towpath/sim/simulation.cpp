// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/simulation.hpp"

#include <exception>
#include <utility>

namespace towpath::sim {

namespace {

constexpr std::size_t kCancelledTimersMin = 64;  // below this a sweep costs more than it saves

// Marks the simulation as running. Exception-safe.
class RunningScope {
 public:
  explicit RunningScope(bool& is_running) : is_running_(is_running) {
    TOWPATH_CHECK(!is_running, "the simulation was told to run by one of its own events");
    is_running_ = true;
  }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;
  ~RunningScope() { is_running_ = false; }

 private:
  bool& is_running_;
};

}  // namespace

Simulation::~Simulation() {
  while (!processes_.empty()) processes_.pop_front();
  for (Timer::Slot& slot : timer_slots_) {
    if (slot.timer != nullptr) slot.timer->slot_ = nullptr;
  }
}

// A cancelled timer's event neither runs nor advances the time. The queue's first event may be
// dead, so it does not determine now().
inline bool Simulation::step_until(Time limit) {
  Event event;
  while (queue_.pop(limit, event)) {
    if (event.action == &Timer::fire) {
      Timer::Slot* const slot = static_cast<Timer::Slot*>(event.context);
      if (slot->timer == nullptr) {
        --cancelled_timers_;
        release_timer_slot(slot);
        continue;
      }
    }
    now_ = event.time();
    ++events_;
    prefetch_context();
    event.action(event.context);
    return true;
  }
  return false;
}

bool Simulation::step() {
  const RunningScope scope(is_running_);
  return step_until(Time::max());
}

void Simulation::run(Time limit) {
  const RunningScope scope(is_running_);
  while (has_live_events() && step_until(limit)) {
  }
}

void Simulation::run_until(Time limit) {
  TOWPATH_CHECK(limit >= now_,
                "the simulation was told to run until {} ps, but it is already {} ps", limit.ps(),
                now_.ps());
  const RunningScope scope(is_running_);
  while (step_until(limit)) {
  }
  now_ = limit;
}

// For a partition of a group: now() stays at the last event.
void Simulation::run_window(Time limit) {
  const RunningScope scope(is_running_);
  window_limit_ = limit;
  while (step_until(limit)) {
  }
}

Process& Simulation::spawn(std::string name, std::function<void()> body, std::size_t stack_bytes) {
  processes_.emplace_back(*this, std::move(name), std::move(body), stacks_, stack_bytes);
  Process& process = processes_.back();
  process.place_ = std::prev(processes_.end());
  at(now_, &resume, &process);
  return process;
}

void Simulation::resume(void* context) {
  Process& process = *static_cast<Process*>(context);
  Simulation& simulation = *process.simulation_;
  simulation.prefetch_process();
  simulation.current_ = &process;
  process.run_until_it_waits();
  simulation.current_ = nullptr;
  if (process.state_ == Process::State::finished) simulation.finish(process);
}

// With many processes, stacks fall out of all caches. At 100,000 processes this halves the cost of
// a switch.
void Simulation::prefetch_process() const {
  constexpr std::size_t kDistance = 2;
  const Event* const event = queue_.upcoming(kDistance);
  if (event == nullptr || event->action != &resume) return;
  static_cast<const Process*>(event->context)->prefetch_stack();
}

// With thousands of messages or cores, model state falls out of the caches too.
void Simulation::prefetch_context() const {
  constexpr std::size_t kDistance = 4;
  constexpr std::size_t kLine = 64;
  const Event* const event = queue_.upcoming(kDistance);
  if (event == nullptr) return;
  const auto* const context = static_cast<const char*>(event->context);
  __builtin_prefetch(context);
  __builtin_prefetch(context + kLine);
  __builtin_prefetch(context + 2 * kLine);
}

void Simulation::finish(Process& process) {
  const std::exception_ptr error = std::move(process.error_);
  processes_.erase(process.place_);
  if (error) std::rethrow_exception(error);
}

void Simulation::sleep_until(Time when) {
  TOWPATH_CHECK(current_ != nullptr, "sleep was called at {} ps outside of a process", now_.ps());
  at(when, &resume, current_);
  current_->state_ = Process::State::scheduled;
  current_->wait();
}

void Simulation::suspend(std::string_view waiting_for) {
  TOWPATH_CHECK(current_ != nullptr, "suspend was called at {} ps outside of a process", now_.ps());
  Process& process = *current_;
  process.state_ = Process::State::suspended;
  process.waiting_for_ = waiting_for;
  process.wait();
  process.waiting_for_ = {};
}

void Simulation::wake(Process& process) {
  if (!process.is_suspended()) return;
  process.state_ = Process::State::scheduled;
  at(now_, &resume, &process);
}

std::vector<BlockedProcess> Simulation::blocked() const {
  std::vector<BlockedProcess> result;
  for (const Process& process : processes_) {
    if (!process.is_suspended()) continue;
    result.push_back({process.name(), std::string(process.waiting_for())});
  }
  return result;
}

Timer::Slot* Simulation::acquire_timer_slot() {
  if (free_timer_slots_ == nullptr) return &timer_slots_.emplace_back();
  Timer::Slot* const slot = free_timer_slots_;
  free_timer_slots_ = slot->next_free;
  return slot;
}

void Simulation::release_timer_slot(Timer::Slot* slot) {
  slot->timer = nullptr;
  slot->next_free = free_timer_slots_;
  free_timer_slots_ = slot;
}

void Simulation::note_cancelled_timer() {
  ++cancelled_timers_;
  if (cancelled_timers_ < kCancelledTimersMin || cancelled_timers_ * 2 <= queue_.size()) return;
  queue_.erase_if([this](const Event& event) {
    if (event.action != &Timer::fire) return false;
    Timer::Slot* const slot = static_cast<Timer::Slot*>(event.context);
    if (slot->timer != nullptr) return false;
    release_timer_slot(slot);
    return true;
  });
  cancelled_timers_ = 0;
}

}  // namespace towpath::sim
