// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/simulation_group.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "towpath/sim/hardware_priority.hpp"
#include "towpath/sim/trace.hpp"

namespace towpath::sim {

namespace {

// Below this many events, waking a thread costs more than it saves.
constexpr std::uint64_t kWorthSharing = 256;
// Total events below which starting threads costs more than it saves.
constexpr std::uint64_t kWorthStarting = 20'000;
// Polls before a thread sleeps: about 20 us, longer than the gap between two windows.
constexpr int kLooks = 512;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until the word changes: spins first, then sleeps.
template <typename Word>
void wait_while(const std::atomic<Word>& word, Word value) {
  for (int i = 0; i < kLooks; ++i) {
    if (word.load(std::memory_order_acquire) != value) return;
    pause();
  }
  word.wait(value, std::memory_order_acquire);
}

}  // namespace

// The threads of one run(), including the caller. They take the tasks of a window one at a time,
// from last to first.
class SimulationGroup::Crew {
 public:
  // Threads start with the first shared window.
  Crew(SimulationGroup& group, int size) : group_(group), size_(size) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    is_over_ = true;
    call();
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const { return size_; }

  void run(Time limit) {
    while (threads_.size() + 1 < static_cast<std::size_t>(size_)) {
      threads_.emplace_back([this] { work(); });
    }
    limit_ = limit;
    const auto tasks = static_cast<std::int32_t>(group_.active_.size());
    unfinished_.store(tasks, std::memory_order_relaxed);
    tasks_.store(tasks, std::memory_order_release);
    call();
    take_tasks();
    for (;;) {
      const std::int32_t left = unfinished_.load(std::memory_order_acquire);
      if (left == 0) return;
      wait_while(unfinished_, left);
    }
  }

 private:
  void call() {
    windows_.fetch_add(1, std::memory_order_release);
    windows_.notify_all();
  }

  // A thread that is late for one window may find tasks of the next, which are just as valid.
  void take_tasks() {
    for (;;) {
      const std::int32_t task = tasks_.fetch_sub(1, std::memory_order_acq_rel);
      if (task <= 0) return;
      group_.run_partition(group_.active_[static_cast<std::size_t>(task - 1)], limit_);
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    }
  }

  void work() {
    for (;;) {
      const std::uint32_t window = windows_.load(std::memory_order_acquire);
      if (is_over_) return;
      take_tasks();
      wait_while(windows_, window);
    }
  }

  SimulationGroup& group_;
  int size_;
  Time limit_;
  std::atomic<bool> is_over_ = false;
  alignas(64) std::atomic<std::uint32_t> windows_ = 0;
  alignas(64) std::atomic<std::int32_t> tasks_ = 0;
  alignas(64) std::atomic<std::int32_t> unfinished_ = 0;
  std::vector<std::thread> threads_;
};

SimulationGroup::SimulationGroup(const Options& options) : options_(options) {
  TOWPATH_CHECK(options.partitions > 0, "a simulation has no partition");
  TOWPATH_CHECK(options.partitions == 1 || options.lookahead > Time(),
                "{} partitions look {} ps ahead", options.partitions, options.lookahead.ps());
  for (std::size_t i = 0; i < options.partitions; ++i) {
    simulations_.emplace_back(options.seed).crossings_counter_ = &crossings_;
  }
  progress_.resize(options.partitions);
}

// Unwinding processes may still use the group's members.
SimulationGroup::~SimulationGroup() { simulations_.clear(); }

std::uint64_t SimulationGroup::events() const {
  std::uint64_t sum = 0;
  for (const Simulation& each : simulations_) sum += each.events();
  return sum;
}

std::size_t SimulationGroup::pending_events() const {
  std::size_t sum = 0;
  for (const Simulation& each : simulations_) sum += each.pending_events() + each.sent_.size();
  return sum;
}

std::vector<BlockedProcess> SimulationGroup::blocked() const {
  std::vector<BlockedProcess> all;
  for (const Simulation& each : simulations_) {
    for (BlockedProcess& process : each.blocked()) all.push_back(std::move(process));
  }
  return all;
}

void SimulationGroup::set_trace(Trace* trace) {
  trace_ = trace;
  traces_.clear();
  for (Simulation& each : simulations_) {
    if (trace != nullptr && partitions() > 1) {
      each.set_trace(traces_.emplace_back(std::make_unique<Trace>()).get());
    } else {
      each.set_trace(trace);
    }
  }
}

Time SimulationGroup::first_time() const {
  Time first = Time::max();
  for (const Simulation& each : simulations_) first = std::min(first, each.queue_.first_time());
  return first;
}

bool SimulationGroup::has_live_events() const {
  return std::ranges::any_of(simulations_,
                             [](const Simulation& each) { return each.has_live_events(); });
}

// Delivers the events that partitions sent to each other, and their trace records.
void SimulationGroup::exchange() {
  for (Simulation& from : simulations_) {
    for (const Simulation::Sent& sent : from.sent_) {
      sent.to->at_ordered(sent.when, sent.priority, sent.order, sent.action, sent.context);
    }
    from.sent_.clear();
    for (const Simulation::GivenBack& given : from.given_back_) given.action(given.context);
    from.given_back_.clear();
  }
  for (const auto& trace : traces_) trace_->take(*trace);
}

void SimulationGroup::run_partition(std::size_t partition, Time limit) {
  Simulation& simulation = simulations_[partition];
  Progress& progress = progress_[partition];
  const std::uint64_t before = simulation.events_;
  try {
    simulation.run_window(limit);
  } catch (...) {
    progress.error = std::current_exception();
  }
  progress.events = simulation.events_ - before;
}

void SimulationGroup::run_window(Crew& crew, Time limit) {
  active_.clear();
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < partitions(); ++i) {
    if (simulations_[i].queue_.first_time() > limit) continue;
    active_.push_back(i);
    expected += progress_[i].events;
  }
  // Longest first: a long task at the end leaves threads idle.
  std::ranges::stable_sort(active_, {}, [&](std::size_t i) { return progress_[i].events; });
  const bool is_worth_it = expected >= kWorthSharing && windows_.events >= kWorthStarting;
  const bool is_shared = is_worth_it || shares_every_window_;
  if (!is_shared || crew.size() == 1 || active_.size() == 1) {
    for (const std::size_t partition : active_) run_partition(partition, limit);
  } else {
    crew.run(limit);
  }
  std::uint64_t events = 0;
  std::uint64_t most = 0;
  for (const std::size_t partition : active_) {
    events += progress_[partition].events;
    most = std::max(most, progress_[partition].events);
  }
  const auto threads = static_cast<std::uint64_t>(crew.size());
  windows_.events += events;
  windows_.critical_events += std::max(most, (events + threads - 1) / threads);
  ++windows_.windows;
  exchange();
  throw_first_error();
}

void SimulationGroup::throw_first_error() {
  const Simulation* first = nullptr;
  std::exception_ptr error;
  for (std::size_t i = 0; i < partitions(); ++i) {
    std::exception_ptr own = std::exchange(progress_[i].error, nullptr);
    if (!own || (first != nullptr && first->now() <= simulations_[i].now())) continue;
    first = &simulations_[i];
    error = std::move(own);
  }
  if (error) std::rethrow_exception(error);
}

// Partitions have searched for events beyond `now`. Later runs may add events there.
void SimulationGroup::align(Time now) {
  for (Simulation& each : simulations_) {
    each.queue_.rewind();
    each.now_ = now;
  }
}

template <typename Condition>
void SimulationGroup::run_windows(Time limit, Condition goes_on) {
  Crew crew(*this, std::max(std::min(options_.threads, static_cast<int>(partitions())), 1));
  const Time step = options_.lookahead - Time::from_ps(1);
  exchange();
  while (goes_on()) {
    const Time first = first_time();
    if (first > limit || first == Time::max()) break;
    run_window(crew, std::min(limit, first > Time::max() - step ? Time::max() : first + step));
  }
}

void SimulationGroup::run(Time limit) {
  if (partitions() == 1) return simulations_.front().run(limit);
  run_windows(limit, [this] { return has_live_events(); });
  Time last;
  for (const Simulation& each : simulations_) last = std::max(last, each.now());
  align(last);
}

void SimulationGroup::run_until(Time limit) {
  if (partitions() == 1) return simulations_.front().run_until(limit);
  TOWPATH_CHECK(limit >= now(),
                "the simulation was told to run until {} ps, but it is already {} ps", limit.ps(),
                now().ps());
  run_windows(limit, [] { return true; });
  align(limit);
}

}  // namespace towpath::sim
