// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "towpath/collective/schedule/plan.hpp"
#include "towpath/sim/timer.hpp"
#include "towpath/simulate/simulated_ranks.hpp"
#include "towpath/tenstorrent/ccl/chips.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::tenstorrent::ccl {

class Broadcasts;
class Endpoint;
class Rendezvous;
class Unicasts;

// Ranks on chips that Ethernet joins: every byte is read from DRAM, carried over the NoC, through
// the routers of the fabric and over the links, and written to the DRAM of the far chip. A rank
// starts a call when the ranks of its rendezvous have been called, and has finished it when its
// connections are closed.
//
//   SimulatedChips chips(t3000, 8);
//   chips.simulation(0).spawn("rank 0", [&] { chips.transport(0).barrier(1_s); });
//   ...
//   chips.run();
class SimulatedChips : public simulate::SimulatedRanks, public simulate::ConnectedRanks {
 public:
  SimulatedChips(std::shared_ptr<const machine::ChipCluster> description, int ranks,
                 const SimulatedChipsOptions& options = {});
  ~SimulatedChips() override;

  sim::SimulationGroup& simulations() override { return chips_.cluster().simulations(); }
  sim::Simulation& simulation(int rank = 0) override { return chips_.of(rank).simulation; }
  transport::Transport& transport(int rank) override;
  // Launches the program of a rank, which then waits for the others.
  void start(int rank, const collective::Schedule& schedule) override;
  // Throws TransportError::Kind::timeout, with the state of the links, if the deadline passes
  // first.
  void run(Time limit = Time::max()) override;
  // The load of a link's first end, then of its second.
  std::vector<sim::LinkLoad> loads() override;

  simulate::ConnectedRanks* connected() override { return this; }
  // Throws std::invalid_argument for a plan that chips cannot run.
  void set_plan(const collective::Plan& plan) override;
  // Closes the connections of a rank's workers, each when its router has released its packets.
  void close(int rank) override { chips_.of(rank).workers.close(); }
  // Throws DeadlockError if a connection can never be closed, naming the links that are down.
  Time closed_at() const override;
  std::string outages() const override;
  std::vector<simulate::LinkFailure> link_failures() const override;

  int ranks() const { return chips_.ranks(); }
  Cluster& cluster() { return chips_.cluster(); }
  Chips& chips() { return chips_; }
  Endpoint& endpoint(int rank) { return *endpoints_.at(index(rank)); }
  Unicasts& unicasts() { return *unicasts_; }
  Broadcasts& broadcasts() { return *broadcasts_; }

 private:
  void set_notification(const collective::Schedule& schedule);
  [[noreturn]] void throw_deadline_exceeded() const;

  std::vector<ethernet::LinkFaults> link_faults_;
  Time time_max_;
  std::unique_ptr<Unicasts> unicasts_;
  std::unique_ptr<Broadcasts> broadcasts_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::unique_ptr<Rendezvous> rendezvous_;  // with a plan
  // Its events use the members above until it ends.
  Chips chips_;
  sim::Timer deadline_;
  bool has_started_ = false;
};

}  // namespace towpath::tenstorrent::ccl
