// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/mailbox_cluster.hpp"

// The measurement of a cluster with mailboxes: two nodes send a message to and fro, and one of them
// reads its cycle counter once in every iteration.

namespace towpath::riscv_mailbox {

struct PingPongOptions {
  int size_bytes = 32;
  int iterations = 1000;
  int hops = 1;  // between the nodes of each pair
  // Each a pair of programs on cores and contexts of their own, all on the same two nodes.
  int pairs = 1;
  // So much later than the initiator does the responder begin to poll: the phase of its polls.
  int phase_cycles = 0;
  bool has_interruptions = true;
  bool has_page_walks = true;
  std::uint64_t seed = 1;
  // Told now and then how many iterations of the first pair are over. What it throws ends the run.
  std::function<void(std::size_t iterations)> on_progress = {};
};

struct PingPongResult {
  // From one iteration's reading of the counter to the next one's, of each pair in turn.
  std::vector<std::int64_t> round_trip_cycles;
  Time time;
  std::uint64_t events = 0;
};

// Throws std::invalid_argument when the cluster has no two nodes so far apart, too few cores or
// contexts, or when the message is no packet.
PingPongResult run_ping_pong(std::shared_ptr<const machine::MailboxCluster> cluster,
                             const PingPongOptions& options);

// What a node's hardware signals, and when.
struct PingPongEvent {
  int node = 0;
  std::string event;
  Cycles cycle;  // of the core's clock, from the first store of the iteration on
};

// One iteration that nothing disturbs, up to the first store of the next.
std::vector<PingPongEvent> ping_pong_breakdown(
    std::shared_ptr<const machine::MailboxCluster> cluster, const PingPongOptions& options);

}  // namespace towpath::riscv_mailbox
