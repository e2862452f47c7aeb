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

// The ranks of one described machine in one simulation, which may have partitions: what a
// SimulatedRun joins a plan to. Each kind of machine implements it, with options of its own.

namespace towpath::simulate {

// What the faults of a link between chips have done so far.
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
  // Links that are down, for the sentence of an error; empty if none is.
  virtual std::string outages() const = 0;
  // One entry per link that has faults.
  virtual std::vector<LinkFailure> link_failures() const = 0;
};

class SimulatedRanks {
 public:
  SimulatedRanks() = default;
  SimulatedRanks(const SimulatedRanks&) = delete;
  SimulatedRanks& operator=(const SimulatedRanks&) = delete;
  virtual ~SimulatedRanks() = default;

  virtual sim::SimulationGroup& simulations() = 0;
  // The one of them that a rank is in.
  virtual sim::Simulation& simulation(int rank = 0) {
    static_cast<void>(rank);
    return simulations()[0];
  }
  virtual transport::Transport& transport(int rank) = 0;

  // Runs the plan in place of executors over transport(), with the same times and loads; null if
  // the ranks cannot. It lives as long as they do.
  virtual collective::TimeOnlyRun* time_only(std::shared_ptr<const collective::Plan> plan) {
    (void)plan;
    return nullptr;
  }
  // The first so many of all `ranks` are simulated, and stand for the others.
  virtual int simulated_ranks(int ranks) const { return ranks; }
  // Whether those that they stand for may have done something else, as far as can be told.
  virtual bool may_differ() const { return false; }
  // The host of `rank` calls now, for a plan under `protocol`; the rank begins later, or at once.
  virtual void start(int rank, Protocol protocol) = 0;
  // Called when a rank begins, where it is simulated; must be set.
  std::function<void(int rank)> on_begin;
  // Runs the simulation until nothing happens any more up to `limit`.
  virtual void run(Time limit = Time::max()) = 0;
  // Null if the ranks have no connections.
  virtual ConnectedRanks* connected() { return nullptr; }

  // One entry per link of a GPU machine; two per link of a chip cluster (from its first end, then
  // from its second); none for mailboxes. Retransmitted bytes count toward `busy`, not `bytes`.
  virtual std::vector<sim::LinkLoad> loads() { return {}; }
};

// `places`, or the first places of the machine when it is empty. Throws std::invalid_argument
// unless there is one for each rank.
std::vector<int> places_of_ranks(std::vector<int> places, int ranks);

}  // namespace towpath::simulate
