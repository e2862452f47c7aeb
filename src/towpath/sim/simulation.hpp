// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/base/invariant.hpp"
#include "towpath/base/units.hpp"
#include "towpath/sim/event_queue.hpp"
#include "towpath/sim/process.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/sim/stack_pool.hpp"
#include "towpath/sim/timer.hpp"

namespace towpath::sim {

class Trace;

// A process that only wake() can resume.
struct BlockedProcess {
  std::string name;
  std::string waiting_for;
};

// Simulated time with events (plain functions) and processes (functions that can wait). Events run
// in the order (time, priority, sequence). A process resumes in an event of priority 0. Runs are
// deterministic: the same program and seed give the same results.
//
//   Simulation simulation(seed);
//   simulation.spawn("ping", [&] { simulation.sleep(5_ns); ... });
//   simulation.run();
//
// A Simulation belongs to one thread at a time. A program may have several. An exception from an
// action or a process leaves run() unchanged, and the simulation can be run further.
// SimulationGroup runs the partitions of a group.
//
// Wrong: a process that polls with sleep(). Call suspend() and let the cause call wake().
class Simulation {
 public:
  static constexpr std::size_t kStackBytes = 64 << 10;

  explicit Simulation(std::uint64_t seed = 1) : seed_(seed) {}
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  // Unwinds unfinished processes in creation order.
  ~Simulation();

  Time now() const { return now_; }
  // now + delay, saturated at Time::max(), so an infinite timeout never expires.
  Time from_now(Time delay) const {
    return delay > Time::max() - now_ ? Time::max() : now_ + delay;
  }

  // Events run, including process wake-ups, without cancelled timers.
  std::uint64_t events() const { return events_; }
  // Includes dead entries of cancelled timers.
  std::size_t pending_events() const { return queue_.size(); }

  // `when` must not be before now. Lower priorities (from EventQueue::kPriorityMin) run first.
  void at(Time when, Action action, void* context, int priority = 0) {
    TOWPATH_CHECK(when >= now_, "an event was scheduled for {} ps, but it is already {} ps",
                  when.ps(), now_.ps());
    TOWPATH_CHECK(priority >= EventQueue::kPriorityMin && priority <= EventQueue::kPriorityMax,
                  "an event has priority {}; {} to {} are possible", priority,
                  EventQueue::kPriorityMin, EventQueue::kPriorityMax);
    queue_.push(when, priority, action, context);
  }
  // Events of equal time and priority run by `order` instead of scheduling order. See
  // EventQueue::push_ordered.
  void at_ordered(Time when, int priority, std::uint64_t order, Action action, void* context) {
    TOWPATH_CHECK(when >= now_, "an event was scheduled for {} ps, but it is already {} ps",
                  when.ps(), now_.ps());
    queue_.push_ordered(when, priority, order, action, context);
  }
  void after(Time delay, Action action, void* context, int priority = 0) {
    at(from_now(delay), action, context, priority);
  }

  // Runs the next event. Returns false if there is none.
  bool step();
  // Runs until only background timers are left up to `limit`. Afterwards blocked() names the
  // processes that can never resume.
  void run(Time limit = Time::max());
  // Runs all events up to and including `limit`, then sets now() to `limit`.
  void run_until(Time limit);

  // The body starts in an event at now().
  Process& spawn(std::string name, std::function<void()> body,
                 std::size_t stack_bytes = kStackBytes);
  // Null outside a process.
  Process* current() const { return current_; }

  // Called from a process.
  void sleep(Time delay) { sleep_until(from_now(delay)); }
  void sleep_until(Time when);
  // The current process waits for wake(). The text of `waiting_for` must outlive the wait. Wake-ups
  // can be spurious: recheck the condition in a loop.
  void suspend(std::string_view waiting_for = {});
  // Resumes a suspended process in an event at now(). Repeated calls before that event have no
  // further effect. A process that is not suspended is unaffected: it checks its condition before
  // it suspends.
  void wake(Process& process);
  // In creation order.
  std::vector<BlockedProcess> blocked() const;

  // Same seed and stream name, same numbers.
  Random random(std::string_view stream) const { return Random(seed_, stream); }

  // The trace for model records; null if disabled. Owned by the caller.
  Trace* trace() const { return trace_; }
  void set_trace(Trace* trace) { trace_ = trace; }

 private:
  friend class Timer;
  friend class Crossing;
  friend class SimulationGroup;

  // An event for another partition.
  struct Sent {
    Simulation* to;
    Time when;
    int priority;
    std::uint64_t order;
    Action action;
    void* context;
  };

  struct GivenBack {
    Action action;
    void* context;
  };

  bool step_until(Time limit);
  void run_window(Time limit);
  bool has_live_events() const { return queue_.size() > cancelled_timers_ + background_timers_; }
  static void resume(void* process);
  void prefetch_process() const;
  void prefetch_context() const;
  void finish(Process& process);

  Timer::Slot* acquire_timer_slot();
  void release_timer_slot(Timer::Slot* slot);
  void note_cancelled_timer();

  Time now_;
  std::uint64_t events_ = 0;
  Process* current_ = nullptr;
  bool is_running_ = false;
  EventQueue queue_;

  std::deque<Timer::Slot> timer_slots_;
  Timer::Slot* free_timer_slots_ = nullptr;
  std::size_t cancelled_timers_ = 0;   // still in the queue
  std::size_t background_timers_ = 0;  // armed

  std::uint64_t seed_;
  Trace* trace_ = nullptr;
  StackPool stacks_;
  std::list<Process> processes_;

  // Shared by the group, if any. Sent events are exchanged after all partitions have run a window.
  std::uint32_t crossings_ = 0;
  std::uint32_t* crossings_counter_ = &crossings_;
  std::vector<Sent> sent_;
  std::vector<GivenBack> given_back_;
  Time window_limit_;
};

}  // namespace towpath::sim
