// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/sim/trace.hpp"
#include "towpath/simulate/simulated_ranks.hpp"

// One plan on all ranks of a described machine: the top of the simulator.
//
//   SimulatedRun run(std::make_unique<SimulatedGpus>(machine, ranks), plan);
//   const Time time = run.invoke(buffers);

namespace towpath::simulate {

class SimulatedRun {
 public:
  // A trace gets steps per thread block and segments per link. It outlives the run. Throws
  // std::invalid_argument unless the plan has the same number of ranks.
  SimulatedRun(std::unique_ptr<SimulatedRanks> ranks, std::shared_ptr<const collective::Plan> plan,
               sim::Trace* trace = nullptr);
  SimulatedRun(const SimulatedRun&) = delete;
  SimulatedRun& operator=(const SimulatedRun&) = delete;

  // One invocation: every rank's host calls at the same time. Returns the time from there until the
  // last rank has finished. `buffers` has one entry per rank, or none in a time-only run. Throws
  // DeadlockError with the wait chain and links that are down, or Kind::timeout at the deadline of
  // the ranks.
  Time invoke(const std::vector<collective::Buffers>& buffers);
  // The same without data, unless it takes longer than `limit`. Then the result is empty, and the
  // run is over.
  std::optional<Time> invoke_within(Time limit);

  std::vector<sim::LinkLoad> loads() const { return ranks_->loads(); }
  // The first of the busiest links, with its number. Empty without links. Cheaper than loads() on a
  // large machine.
  std::optional<std::pair<std::size_t, sim::LinkLoad>> busiest() const;
  std::vector<LinkFailure> link_failures() const {
    return connected_ != nullptr ? connected_->link_failures() : std::vector<LinkFailure>();
  }
  std::uint64_t events() const {
    return time_only_ != nullptr ? time_only_->events() : ranks_->simulations().events();
  }
  Time now() const {
    return time_only_ != nullptr ? time_only_->now() : ranks_->simulations().now();
  }
  // Upper bound on the speed-up by threads. Zeros with a single simulation.
  const sim::SimulationGroup::Windows& windows() const { return ranks_->simulations().windows(); }
  // Ranks that are simulated. They represent the others.
  int simulated_ranks() const { return ranks_->simulated_ranks(plan_->schedule->rank_count()); }
  // True if the others may have behaved differently: messages reached a link at the same time, and
  // their order depends on the ranks.
  bool may_differ() const { return ranks_->may_differ(); }

 private:
  void make_executors(sim::Trace* trace);
  std::optional<Time> invoke(const std::vector<collective::Buffers>& buffers, Time limit);
  void finish_rank(std::size_t rank);
  void observe_steps();
  [[noreturn]] void fail_deadlocked() const;

  std::shared_ptr<const collective::Plan> plan_;
  std::unique_ptr<SimulatedRanks> ranks_;
  ConnectedRanks* connected_;                     // of the ranks, or null
  collective::TimeOnlyRun* time_only_ = nullptr;  // replaces executors
  // Both have one entry per simulated rank.
  std::vector<std::unique_ptr<collective::Executor>> executors_;
  std::vector<collective::Buffers> buffers_;
  // The end of the current invocation at each, Time::max() before that.
  std::vector<Time> finished_;
};

}  // namespace towpath::simulate
