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
  // Pairs of programs, each program on a core and context of its own, all on the same two nodes.
  int pairs = 1;
  // Delay, in core cycles, between the initiator's first poll and the responder's.
  int phase_cycles = 0;
  bool has_interruptions = true;
  bool has_page_walks = true;
  std::uint64_t seed = 1;
  // Called now and then with the finished iterations of the first pair. What it throws ends the
  // run.
  std::function<void(std::size_t iterations)> on_progress = {};
};

struct PingPongResult {
  // Cycles between readings of the counter in successive iterations, pair after pair.
  std::vector<std::int64_t> round_trip_cycles;
  Time time;
  std::uint64_t events = 0;
};

// Throws std::invalid_argument when no two nodes are `hops` apart, when cores or contexts are too
// few, or when the message is not a packet.
PingPongResult run_ping_pong(std::shared_ptr<const machine::MailboxCluster> cluster,
                             const PingPongOptions& options);

// An event in a node's hardware, and its time.
struct PingPongEvent {
  int node = 0;
  std::string event;
  Cycles cycle;  // core cycles since the first store of the iteration
};

// Events of one undisturbed iteration, up to the first store of the next.
std::vector<PingPongEvent> ping_pong_breakdown(
    std::shared_ptr<const machine::MailboxCluster> cluster, const PingPongOptions& options);

}  // namespace towpath::riscv_mailbox
