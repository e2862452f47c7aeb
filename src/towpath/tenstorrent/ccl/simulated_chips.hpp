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

namespace towpath::tenstorrent::ccl {

struct SimulatedChipsOptions {
  std::vector<int> places;  // rank -> place of the fabric; empty: the first ones
  bool carries_data = true;
  std::uint64_t seed = 1;
  // Faults by the number of the link; missing entries mean none. Faults may be set only on links
  // the fabric uses.
  std::vector<ethernet::LinkFaults> link_faults{};
  // Longest simulated time of an invocation if links have faults.
  Time deadline = Time::from_seconds(1);
  std::optional<fabric::Shape> shape{};  // of the fabric; none: the default shape
  // Threads that run the chips, each a partition unless links have faults. No result depends on the
  // number. 0: one simulation for all chips, the reference.
  int threads = 1;
  noc::NetworkModel network = noc::NetworkModel::flits;  // of each chip
  std::uint64_t payload_bytes_max = 0;                   // of a packet; 0: the chip's default
};

// Ranks on chips that Ethernet joins. A rank begins once the ranks of its rendezvous have been
// called, and has finished once its connections are closed.
class SimulatedChips final : public simulate::SimulatedRanks, public simulate::ConnectedRanks {
 public:
  SimulatedChips(std::shared_ptr<const machine::ChipCluster> cluster, int ranks,
                 const SimulatedChipsOptions& options = {});

  sim::SimulationGroup& simulations() override { return chips_.simulations(); }
  sim::Simulation& simulation(int rank = 0) override { return chips_.simulation(rank); }
  transport::Transport& transport(int rank) override { return chips_.transport(rank); }
  void start(int rank, Protocol) override { chips_.enter(rank); }
  void run(Time limit = Time::max()) override { chips_.run(limit); }
  std::vector<sim::LinkLoad> loads() override;

  simulate::ConnectedRanks* connected() override { return this; }
  void set_plan(const collective::Plan& plan) override;
  void close(int rank) override { chips_.close_connections(rank); }
  Time closed_at() const override { return chips_.closed_at(); }
  std::string outages() const override;
  std::vector<simulate::LinkFailure> link_failures() const override;

 private:
  std::vector<ethernet::LinkFaults> link_faults_;
  FabricCluster chips_;
};

}  // namespace towpath::tenstorrent::ccl
