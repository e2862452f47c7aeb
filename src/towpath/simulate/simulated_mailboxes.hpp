// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "towpath/machine/mailbox_cluster.hpp"
#include "towpath/simulate/simulated_ranks.hpp"
#include "towpath/transport/simulated/mailbox/mailbox_ranks.hpp"

namespace towpath::simulate {

struct SimulatedMailboxesOptions {
  bool carries_data = true;
  std::uint64_t seed = 1;
};

// Ranks on the nodes of a cluster with mailboxes, rank r on node r. There are no interruptions:
// cores only spend cycles on their operations.
class SimulatedMailboxes final : public SimulatedRanks {
 public:
  SimulatedMailboxes(std::shared_ptr<const machine::MailboxCluster> cluster, int ranks,
                     const SimulatedMailboxesOptions& options = {})
      : simulations_({.seed = options.seed}),
        ranks_(simulations_[0], machine::without_interruptions(*cluster),
               {.ranks = ranks, .carries_data = options.carries_data}) {}

  sim::SimulationGroup& simulations() override { return simulations_; }
  transport::Transport& transport(int rank) override { return ranks_.transport(rank); }
  void start(int rank, const collective::Schedule&) override { on_begin(rank); }
  void run(Time limit = Time::max()) override { simulations_.run(limit); }

 private:
  sim::SimulationGroup simulations_;
  transport::simulated::MailboxRanks ranks_;
};

}  // namespace towpath::simulate
