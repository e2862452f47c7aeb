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

// Simulations that run as one, on several threads: partitions of a machine, which meet only through
// Crossings.
//
//   SimulationGroup group({.partitions = 8, .lookahead = link_latency, .threads = 2});
//   Model a(group[0]), b(group[1]);
//   group.run();
//
// They run in windows: with T the time of the first event of all, each runs its own events before
// T + lookahead; what it sends to others comes later than that, and they are told of it in between.
// Windows depend on times alone, so nothing that happens depends on the number of threads.
//
// A group of one partition is that simulation: no windows, no threads, no lookahead.
//
// Wrong: an event of one partition that reads or changes what belongs to another one.
class SimulationGroup {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::size_t partitions = 1;
    Time lookahead{};  // more than 0 with several partitions
    int threads = 1;   // at most; a window of few events is run by one
  };
  explicit SimulationGroup(const Options& options);
  SimulationGroup(const SimulationGroup&) = delete;
  SimulationGroup& operator=(const SimulationGroup&) = delete;
  ~SimulationGroup();

  std::size_t partitions() const { return simulations_.size(); }
  Simulation& operator[](std::size_t partition) { return simulations_[partition]; }
  const Simulation& operator[](std::size_t partition) const { return simulations_[partition]; }
  Time lookahead() const { return options_.lookahead; }

  // Between runs all partitions have the same time.
  Time now() const { return simulations_.front().now(); }
  std::uint64_t events() const;
  std::size_t pending_events() const;
  std::vector<BlockedProcess> blocked() const;
  // Whether anything is to come but timers in the background; between runs.
  bool has_live_events() const;

  // As those of Simulation; timers in the background may fire until the last window ends. Of
  // several exceptions in one window the one of the first time leaves, of those the one of the
  // first partition; other partitions may be ahead by less than the lookahead.
  void run(Time limit = Time::max());
  void run_until(Time limit);

  // From now on threads share every window, however few its events: for tests of what they do.
  void share_every_window() { shares_every_window_ = true; }

  // Each partition has its part of the trace, which is in the caller's between windows. Null: none.
  void set_trace(Trace* trace);

  // What so many threads can win: the events of all windows, and those of the thread with the most
  // in each, if partitions are shared as well as can be.
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

  // How far one partition got in the window, on a line of its own: threads write them side by side.
  struct alignas(64) Progress {
    std::uint64_t events = 0;
    std::exception_ptr error;
  };

  Options options_;
  std::uint32_t crossings_ = 0;
  std::deque<Simulation> simulations_;
  std::vector<Progress> progress_;
  std::vector<std::size_t> active_;  // partitions with events in this window, most events last
  std::vector<std::unique_ptr<Trace>> traces_;
  Trace* trace_ = nullptr;
  Windows windows_;
  bool shares_every_window_ = false;
};

}  // namespace towpath::sim
