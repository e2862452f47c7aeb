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

// Round-trip measurement of a cluster with mailboxes: two nodes exchange a message, and one of them
// reads its cycle counter once per iteration.

namespace towpath::riscv_mailbox {

struct PingPongOptions {
  int size_bytes = 32;
  int iterations = 1000;
  int hops = 1;  // between the nodes of a pair
  // Pairs of programs on the same two nodes. Each program has a core and a context.
  int pairs = 1;
  // Delay, in core cycles, between the initiator's first poll and the responder's.
  int phase_cycles = 0;
  bool has_interruptions = true;
  bool has_page_walks = true;
  std::uint64_t seed = 1;
  // Progress callback with the finished iterations of the first pair. An exception from it ends the
  // run.
  std::function<void(std::size_t iterations)> on_progress = {};
};

struct PingPongResult {
  // Cycles between counter readings of successive iterations, pair after pair.
  std::vector<std::int64_t> round_trip_cycles;
  Time time;
  std::uint64_t events = 0;
};

// Throws std::invalid_argument if no two nodes are `hops` apart, if there are too few cores or
// contexts, or if the message does not fit into a packet.
PingPongResult run_ping_pong(std::shared_ptr<const machine::MailboxCluster> cluster,
                             const PingPongOptions& options);

// A hardware event of a node.
struct PingPongEvent {
  int node = 0;
  std::string event;
  Cycles cycle;  // core cycles since the first store of the iteration
};

// Events of one iteration without interruptions, up to the first store of the next.
std::vector<PingPongEvent> ping_pong_breakdown(
    std::shared_ptr<const machine::MailboxCluster> cluster, const PingPongOptions& options);

}  // namespace towpath::riscv_mailbox
