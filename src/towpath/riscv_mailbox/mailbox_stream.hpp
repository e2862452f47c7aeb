// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "towpath/base/units.hpp"
#include "towpath/machine/mailbox_cluster.hpp"

// Many senders, one mailbox: message rate, and drops when it is full.

namespace towpath::riscv_mailbox {

struct MailboxStreamOptions {
  int senders = 1;      // each with a core and a context, on nodes in turn from node 1
  int messages = 1000;  // per sender, in bursts
  int burst_messages = 1000;
  int pause_cycles = 0;  // between a sender's bursts
  int size_bytes = 32;
  std::uint64_t seed = 1;
};

struct MailboxStreamResult {
  std::uint64_t received = 0;
  std::uint64_t dropped = 0;
  Time time;  // until the last message was received
};

// Runs without interruptions. Throws std::invalid_argument if there are too few cores or contexts,
// or if the message does not fit into a packet.
MailboxStreamResult run_mailbox_stream(std::shared_ptr<const machine::MailboxCluster> cluster,
                                       const MailboxStreamOptions& options);

}  // namespace towpath::riscv_mailbox
