// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "towpath/machine/mailbox_cluster.hpp"
#include "towpath/mailbox/interconnect.hpp"
#include "towpath/sim/simulation.hpp"

// A ring of nodes with the figures of machines/carvnet.yaml, without disturbances.

namespace towpath::mailbox {

machine::MailboxCluster carvnet(int nodes = 2);

// A clock of 100 MHz: a cycle is 10 ns.
struct RingBench {
  sim::Simulation simulation;
  Interconnect interconnect;

  explicit RingBench(machine::MailboxCluster cluster, std::uint64_t seed = 1)
      : simulation(seed),
        interconnect(simulation, machine::build_mailbox_cluster(std::move(cluster))) {}
};

std::vector<std::byte> bytes_of(std::size_t size, int seed = 0);

}  // namespace towpath::mailbox
