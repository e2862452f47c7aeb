// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::sim {

// Partitions of a machine that run as one simulation on several threads. They interact only through
// Crossings.
//
//   SimulationGroup group({.partitions = 8, .lookahead = link_latency, .threads = 2});
//   Model a(group[0]), b(group[1]);
//   group.run();
//
// Execution proceeds in windows. With T the earliest event time in the group, each partition runs
// its events before T + lookahead. Events for other partitions are later than that and are
// exchanged between windows. Windows depend only on times, so results do not depend on the number
// of threads.
//
// A group of one partition is a plain simulation: no windows, no threads, no lookahead.
//
// Wrong: an event that accesses data of another partition.
class SimulationGroup {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::size_t partitions = 1;
    Time lookahead{};  // positive if there are several partitions
    int threads = 1;   // upper bound; a window of few events runs on one thread
  };
  explicit SimulationGroup(const Options& options);
  SimulationGroup(const SimulationGroup&) = delete;
  SimulationGroup& operator=(const SimulationGroup&) = delete;
  ~SimulationGroup();

  std::size_t partitions() const { return simulations_.size(); }
  Simulation& operator[](std::size_t partition) { return simulations_[partition]; }
  const Simulation& operator[](std::size_t partition) const { return simulations_[partition]; }
  Time lookahead() const { return options_.lookahead; }

  // Equal in all partitions between runs.
  Time now() const { return simulations_.front().now(); }
  std::uint64_t events() const;
  std::size_t pending_events() const;
  std::vector<BlockedProcess> blocked() const;
  // True if any event other than background timers is pending. Call between runs.
  bool has_live_events() const;

  // As in Simulation. Background timers may fire until the end of the last window. If several
  // partitions throw in one window, the earliest exception propagates, with ties broken by
  // partition number. Other partitions may be ahead by less than the lookahead.
  void run(Time limit = Time::max());
  void run_until(Time limit);

  // Shares every window among threads, even small ones. For tests.
  void share_every_window() { shares_every_window_ = true; }

  // Each partition records a part, merged into the caller's trace between windows. Null disables
  // it.
  void set_trace(Trace* trace);

  // Upper bound on parallel speedup: total events, and the sum over windows of the busiest thread's
  // events under an ideal assignment.
  struct Windows {
    std::uint64_t windows = 0;
    std::uint64_t events = 0;
    std::uint64_t critical_events = 0;
  };
  const Windows& windows() const { return windows_; }

 private:
  class Crew;

  Time first_time() const;
  void exchange();
  void run_window(Crew& crew, Time limit);
  void run_partition(std::size_t partition, Time limit);
  void throw_first_error();
  void align(Time now);
  template <typename Condition>
  void run_windows(Time limit, Condition goes_on);

  // Progress of one partition in the window. Threads write concurrently, so each has its own cache
  // line.
  struct alignas(64) Progress {
    std::uint64_t events = 0;
    std::exception_ptr error;
  };

  Options options_;
  std::uint32_t crossings_ = 0;
  std::deque<Simulation> simulations_;
  std::vector<Progress> progress_;
  std::vector<std::size_t> active_;  // with events in this window, most events first
  std::vector<std::unique_ptr<Trace>> traces_;
  Trace* trace_ = nullptr;
  Windows windows_;
  bool shares_every_window_ = false;
};

}  // namespace towpath::sim
