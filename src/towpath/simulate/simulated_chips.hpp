// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "towpath/ethernet/link.hpp"
#include "towpath/machine/chip_cluster.hpp"
#include "towpath/simulate/simulated_ranks.hpp"
#include "towpath/tenstorrent/ccl/fabric_cluster.hpp"
#include "towpath/tenstorrent/fabric/fabric_topology.hpp"

namespace towpath::simulate {

struct SimulatedChipsOptions {
  std::vector<int> places;  // rank -> place of the fabric; empty: the first ones
  bool carries_data = true;
  std::uint64_t seed = 1;
  // Faults by the number of the link; missing entries mean none. Faults may be set only on links
  // the fabric uses.
  std::vector<ethernet::LinkFaults> link_faults{};
  // Longest simulated time of an invocation where links have faults.
  Time deadline = Time::from_seconds(1);
  std::optional<tenstorrent::fabric::Shape> shape{};  // of the fabric; none: the default shape
  // Each chip is a partition unless links have faults; so many threads run them. Nothing depends on
  // their number. 0: one simulation for all chips, the reference.
  int threads = 1;
  noc::NetworkModel network = noc::NetworkModel::flits;  // of each chip
  std::uint64_t payload_bytes_max = 0;  // of a packet; 0: what the chip's spec says
};

// Ranks on chips that Ethernet joins. Programs of neighbours wait for each other before they send,
// so a rank begins when all its peers have been called; it is done when its connections are closed.
class SimulatedChips final : public SimulatedRanks {
 public:
  SimulatedChips(std::shared_ptr<const machine::ChipCluster> cluster, int ranks,
                 const SimulatedChipsOptions& options = {});

  sim::SimulationGroup& simulations() override { return chips_.simulations(); }
  sim::Simulation& simulation(int rank = 0) override { return chips_.simulation(rank); }
  transport::Transport& transport(int rank) override { return chips_.transport(rank); }
  void set_plan(const collective::Plan& plan) override;
  void start(int rank, Protocol) override;
  void run(Time limit = Time::max()) override { chips_.run(limit); }
  void close(int rank) override { chips_.close_connections(rank); }
  Time closed_at() const override { return chips_.closed_at(); }
  std::string outages() override;
  std::vector<gpu_links::LinkLoad> loads() override;
  std::vector<LinkFailure> link_failures() override;

 private:
  // How one rank waits for its peers.
  struct Meeting {
    SimulatedChips* chips = nullptr;
    int rank = 0;
    std::vector<transport::Move> notices;  // one to each peer
    transport::SignalWait all_present;
  };

  // Whom a rank greets.
  enum class Greeting { peers, all, all_round };

  void send_to_all(const collective::Schedule& schedule);
  void choose_greeting(const collective::Schedule& schedule,
                       const std::vector<std::vector<int>>& peers);
  void choose_telling(collective::Collective collective);
  // Whether the ranks fill a ring.
  bool is_ring() const;
  // Tells the peers of a rank that it has been called, and waits until all of them have.
  void await_peers(int rank);

  std::vector<ethernet::LinkFaults> link_faults_;
  tenstorrent::ccl::FabricCluster chips_;
  std::vector<Meeting> meetings_;  // one per rank
  Greeting greeting_ = Greeting::peers;
};

}  // namespace towpath::simulate
