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

// A process that nothing but a wake() can bring on.
struct BlockedProcess {
  std::string name;
  std::string waiting_for;
};

// Simulated time, and what happens in it: events, which are plain functions, and processes, which
// may wait. Events run in the order (time, priority, sequence); a process goes on in an event of
// priority 0. The same program with the same seed does the same, always.
//
//   Simulation simulation(seed);
//   simulation.spawn("ping", [&] { simulation.sleep(5_ns); ... });
//   simulation.run();
//
// A Simulation belongs to one thread at a time; several may live in one program. What is thrown by
// an action or a process leaves run() as it is; the simulation may then be run further. One that is
// a partition of others is run with them, by SimulationGroup.
//
// Wrong: a process that waits for something by sleeping and looking again. It should suspend(),
// and what brings the thing about should wake() it.
class Simulation {
 public:
  static constexpr std::size_t kStackBytes = 64 << 10;

  explicit Simulation(std::uint64_t seed = 1) : seed_(seed) {}
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  // Unwinds the processes that have not finished, in the order in which they were made.
  ~Simulation();

  Time now() const { return now_; }
  // now + delay, but not beyond the end of time: a timeout of Time::max() never ends.
  Time from_now(Time delay) const {
    return delay > Time::max() - now_ ? Time::max() : now_ + delay;
  }

  // Events so far, wake-ups of processes included, cancelled timers not.
  std::uint64_t events() const { return events_; }
  // Events to come, dead entries of cancelled timers included.
  std::size_t pending_events() const { return queue_.size(); }

  // `when` is not before now; lower priorities, from EventQueue::kPriorityMin on, come first.
  void at(Time when, Action action, void* context, int priority = 0) {
    TOWPATH_CHECK(when >= now_, "an event was scheduled for {} ps, but it is already {} ps",
                  when.ps(), now_.ps());
    TOWPATH_CHECK(priority >= EventQueue::kPriorityMin && priority <= EventQueue::kPriorityMax,
                  "an event has priority {}; {} to {} are possible", priority,
                  EventQueue::kPriorityMin, EventQueue::kPriorityMax);
    queue_.push(when, priority, action, context);
  }
  // What comes first of equal time and priority is `order`, not what was scheduled first; see
  // EventQueue::push_ordered.
  void at_ordered(Time when, int priority, std::uint64_t order, Action action, void* context) {
    TOWPATH_CHECK(when >= now_, "an event was scheduled for {} ps, but it is already {} ps",
                  when.ps(), now_.ps());
    queue_.push_ordered(when, priority, order, action, context);
  }
  void after(Time delay, Action action, void* context, int priority = 0) {
    at(from_now(delay), action, context, priority);
  }

  // Runs the next event; false when there is none.
  bool step();
  // Runs until no event up to `limit` is left but those of timers in the background. Look at
  // blocked() then: it names the processes that never go on.
  void run(Time limit = Time::max());
  // Runs all events up to and including `limit`, at which now() is then.
  void run_until(Time limit);

  // The body starts in an event at now.
  Process& spawn(std::string name, std::function<void()> body,
                 std::size_t stack_bytes = kStackBytes);
  // Null outside of a process.
  Process* current() const { return current_; }

  // The current process waits for a time.
  void sleep(Time delay) { sleep_until(from_now(delay)); }
  void sleep_until(Time when);
  // The current process waits for wake(). `waiting_for` says for what; the text must stay where it
  // is until then. A suspended process may be woken for any reason: look again, in a loop.
  void suspend(std::string_view waiting_for = {});
  // Lets a suspended process go on in an event at now, at once and once however often it is woken
  // before. Nothing happens to a process that is not suspended: it will look before it suspends.
  void wake(Process& process);
  // In the order in which they were made.
  std::vector<BlockedProcess> blocked() const;

  // The same seed and stream name give the same numbers.
  Random random(std::string_view stream) const { return Random(seed_, stream); }

  // Where models tell what they do; null when none is kept. The caller owns it.
  Trace* trace() const { return trace_; }
  void set_trace(Trace* trace) { trace_ = trace; }

 private:
  friend class Timer;
  friend class Crossing;
  friend class SimulationGroup;

  // What an event makes happen in another partition.
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

  // Of its group, if it is in one. What was sent is taken over when all have run a window.
  std::uint32_t crossings_ = 0;
  std::uint32_t* crossings_counter_ = &crossings_;
  std::vector<Sent> sent_;
  std::vector<GivenBack> given_back_;
  Time window_limit_;
};

}  // namespace towpath::sim
