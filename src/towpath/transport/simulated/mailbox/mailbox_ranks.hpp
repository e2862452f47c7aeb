// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/mailbox/interconnect.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/transport/transport.hpp"

// The transports of ranks on a cluster with mailboxes: real data, simulated time.
//
// A put is split into packets with their destination offsets. The node's core writes them to the
// packetizer in order. The peer's core reads them from its mailbox and stores them. One core per
// rank alternates between both roles and polls if neither is possible. Packets between two ranks
// stay in order, so a signal is a packet after its payload and a fence is free. An operation counts
// as visible when the peer's core has stored its data. No acknowledgement is sent to the initiator.

namespace towpath::transport::simulated {

struct MailboxRanksOptions {
  int ranks = 0;  // rank r on node r; 0: all nodes
  bool carries_data = true;
  std::uint64_t heap_bytes = 1ull << 30;  // per rank; untouched memory is not allocated
  std::uint32_t signals = 1u << 16;
};

class MailboxRanks {
 public:
  // Throws std::invalid_argument if the cluster has too few nodes, if its packets cannot hold an
  // address and a byte, or if full mailboxes drop packets.
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
