// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "towpath/base/protocol.hpp"
#include "towpath/base/units.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/collective/time_only/time_only_run.hpp"
#include "towpath/sim/link_load.hpp"
#include "towpath/sim/simulation_group.hpp"
#include "towpath/transport/transport.hpp"

// The ranks of one described machine in one simulation, which may have partitions. A SimulatedRun
// runs a plan on them. Each kind of machine implements it, with its options.

namespace towpath::simulate {

// Effects of a chip link's faults.
struct LinkFailure {
  std::size_t link = 0;  // its number in the cluster
  std::uint64_t drops = 0;
  Time down_time;
  std::uint64_t frames_lost = 0;
  std::array<Bytes, 2> resent;  // payload, from each end
  bool is_up = true;
};

// Ranks that open connections for a call, over links that may fail.
class ConnectedRanks {
 public:
  virtual ~ConnectedRanks() = default;
  // The plan of all calls. Called once, before the executors are made.
  virtual void set_plan(const collective::Plan& plan) = 0;
  // A rank has finished a call; its connections may be closed.
  virtual void close(int rank) = 0;
  // Time at which the last connection was closed.
  virtual Time closed_at() const = 0;
  // Links that are down, for error messages; empty if there are none.
  virtual std::string outages() const = 0;
  // One entry per link with faults.
  virtual std::vector<LinkFailure> link_failures() const = 0;
};

class SimulatedRanks {
 public:
  SimulatedRanks() = default;
  SimulatedRanks(const SimulatedRanks&) = delete;
  SimulatedRanks& operator=(const SimulatedRanks&) = delete;
  virtual ~SimulatedRanks() = default;

  virtual sim::SimulationGroup& simulations() = 0;
  // The simulation of a rank.
  virtual sim::Simulation& simulation(int rank = 0) {
    static_cast<void>(rank);
    return simulations()[0];
  }
  virtual transport::Transport& transport(int rank) = 0;

  // Runs the plan instead of executors over transport(), with the same times and loads; null if not
  // possible. Lives as long as the ranks.
  virtual collective::TimeOnlyRun* time_only(std::shared_ptr<const collective::Plan> plan) {
    (void)plan;
    return nullptr;
  }
  // Number of simulated ranks. The first ones represent the others.
  virtual int simulated_ranks(int ranks) const { return ranks; }
  // True if represented ranks may have behaved differently, if detected.
  virtual bool may_differ() const { return false; }
  // The host of `rank` calls now, for a plan of `schedule`. The rank starts later, or immediately.
  virtual void start(int rank, const collective::Schedule& schedule) = 0;
  // Called when a simulated rank starts. Must be set.
  std::function<void(int rank)> on_begin;
  // Runs the simulation until no event is left up to `limit`.
  virtual void run(Time limit = Time::max()) = 0;
  // Null if the ranks have no connections.
  virtual ConnectedRanks* connected() { return nullptr; }

  // One entry per link of a GPU machine; two per link of a chip cluster (from its first end, then
  // from its second); none for mailboxes. Retransmitted bytes count toward `busy`, not `bytes`.
  virtual std::vector<sim::LinkLoad> loads() { return {}; }
};

// `places`, or the first places of the machine if empty. Throws std::invalid_argument unless there
// is one for each rank.
std::vector<int> places_of_ranks(std::vector<int> places, int ranks);

}  // namespace towpath::simulate
