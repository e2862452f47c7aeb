// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/simulate/executors.hpp"
#include "towpath/transport/simulated/mailbox/mailbox_ranks.hpp"

// All ranks of one plan on the nodes of a cluster with mailboxes; what SimulatedRun is to clusters
// of GPUs. Rank r is on node r. Interruptions do not happen: cores only pay for what they do.

namespace towpath::simulate {

class MailboxRun {
 public:
  MailboxRun(std::shared_ptr<const machine::MailboxCluster> cluster,
             std::shared_ptr<const collective::Plan> plan, bool carries_data = true,
             std::uint64_t seed = 1);

  // One invocation: every rank begins at the same moment. Returns the time from there until the
  // last rank has finished. `buffers` has one entry per rank, or none in a time-only run. Throws
  // transport::TransportError::Kind::deadlock naming who waits for whom.
  Time invoke(const std::vector<collective::Buffers>& buffers);

  std::uint64_t events() const { return simulation_.events(); }
  Time now() const { return simulation_.now(); }

 private:
  sim::Simulation simulation_;
  transport::simulated::MailboxRanks ranks_;
  Executors executors_;
};

}  // namespace towpath::simulate
