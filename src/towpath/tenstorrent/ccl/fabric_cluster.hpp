// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "towpath/collective/schedule/plan.hpp"
#include "towpath/sim/timer.hpp"
#include "towpath/tenstorrent/ccl/chips.hpp"
#include "towpath/transport/transport.hpp"

// Transports of chips joined by Ethernet, one rank on each: every byte is read from DRAM, carried
// over the NoC, through the routers of the fabric and over the links, and written to the DRAM of
// the far chip.
//
//   FabricCluster cluster(t3000, {});
//   cluster.simulation(0).spawn("rank 0", [&] { cluster.transport(0).barrier(1_s); });
//   ...
//   cluster.run();

namespace towpath::tenstorrent::ccl {

class Broadcasts;
class Endpoint;
class Rendezvous;
class Unicasts;

struct FabricClusterOptions {
  std::optional<fabric::Shape> shape;  // none: default_shape
  // Place in the shape of each rank; empty: rank r at place r, for all places.
  std::vector<int> places;
  bool carries_data = true;
  std::uint64_t heap_bytes = 4ull << 30;  // per rank; untouched bytes take no memory
  std::uint32_t signals = 1u << 16;       // most that a rank can have
  std::uint64_t payload_bytes_max = 0;    // of a packet; 0: the chip's default
  // Faults may be set only on links that the fabric uses. With threads each chip is a partition.
  RunOptions run{.finds_hazards = false};
  // Longest simulated time of a call of run() if links have faults.
  Time deadline = Time::from_seconds(1);
};

class FabricCluster {
 public:
  FabricCluster(std::shared_ptr<const machine::ChipCluster> description,
                const FabricClusterOptions& options);
  FabricCluster(const FabricCluster&) = delete;
  FabricCluster& operator=(const FabricCluster&) = delete;
  ~FabricCluster();

  sim::SimulationGroup& simulations() { return chips_.cluster().simulations(); }
  // The simulation of a rank's chip.
  sim::Simulation& simulation(int rank = 0) { return chips_.of(rank).simulation; }
  const fabric::Topology& topology() const { return chips_.topology(); }
  Cluster& cluster() { return chips_.cluster(); }
  const Cluster& cluster() const { return chips_.cluster(); }
  int ranks() const { return chips_.ranks(); }
  transport::Transport& transport(int rank);

  // The ranks will run this plan, which outlives them. on_begin is called when a rank may begin a
  // call, after enter(). Throws std::invalid_argument for a plan that chips cannot run. At most
  // once, before the first run().
  void set_plan(const collective::Plan& plan, std::function<void(int rank)> on_begin);
  // A call of the rank begins now: its program is launched, and it waits for the others.
  void enter(int rank);
  // Runs until no event is left. Throws TransportError::Kind::timeout, with the state of the links,
  // when the deadline passes first.
  void run(Time limit = Time::max());
  // Closes the connections of a rank's workers, each once its router has released its packets.
  void close_connections(int rank);
  // Time at which the last connection was closed, after run(). Throws DeadlockError if one can
  // never be, naming the links that are down.
  Time closed_at() const;

  Chips& chips() { return chips_; }
  Endpoint& endpoint(int rank);
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
