// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/mailbox/interconnect.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/transport.hpp"

// The transports of ranks on the nodes of a cluster with mailboxes: real bytes, simulated time.
//
// A put is cut into packets, each with the place that its bytes are for; the node's core writes
// them to the packetizer one after the other. The peer's core takes them out of its mailbox and
// stores them: one core per rank does both, by turns, and when it can do neither it polls. Packets
// between two ranks stay in order, so a signal is a packet behind its payload, and a fence is
// nothing. What a rank started counts as visible when the peer's core has stored it; no message
// tells the sender.

namespace towpath::transport::simulated {

struct MailboxRanksOptions {
  int ranks = 0;  // rank r on node r; 0: all nodes
  bool carries_data = true;
  std::uint64_t heap_bytes = 1ull << 30;  // per rank; only what is touched takes memory
  std::uint32_t signals = 1u << 16;
};

class MailboxRanks {
 public:
  // Throws std::invalid_argument for a cluster with too few nodes, whose packets have no room for
  // an address and a byte, or whose mailboxes drop what they have no room for.
  MailboxRanks(sim::Simulation& simulation, std::shared_ptr<const machine::MailboxCluster> cluster,
               const MailboxRanksOptions& options = {});
  ~MailboxRanks();

  int ranks() const { return static_cast<int>(endpoints_.size()); }
  Transport& transport(int rank);

 private:
  class Endpoint;

  sim::Simulation& simulation_;
  mailbox::Interconnect interconnect_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

}  // namespace towpath::transport::simulated
