// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "towpath/riscv_mailbox/context.hpp"
#include "towpath/sim/simulation.hpp"

// A cluster with mailboxes as a program without processes of its own sees it: each call takes the
// simulated time that it takes a core, and then returns.

namespace towpath::riscv_mailbox {

class MailboxSession {
 public:
  explicit MailboxSession(std::shared_ptr<const machine::MailboxCluster> cluster,
                          std::uint64_t seed = 1);

  // A process of its own on `node`, with a core of its own. Throws std::invalid_argument when the
  // node has no core or context left.
  riscv_mailbox::Context& open(int node, int domain);
  void close(riscv_mailbox::Context& context);

  // Throw DeadlockError when nothing that could end the wait is under way. It goes on all the
  // same: the message is sent as soon as there is room, and a receive takes the next one.
  void send(riscv_mailbox::Context& context, riscv_mailbox::Address to,
            std::span<const std::byte> payload);
  void flush(riscv_mailbox::Context& context);
  std::optional<riscv_mailbox::Message> try_receive(riscv_mailbox::Context& context);
  std::optional<riscv_mailbox::Message> receive(riscv_mailbox::Context& context, Time timeout);

  Time now() const { return simulation_.now(); }

 private:
  struct Process {
    std::unique_ptr<riscv_mailbox::Core> core;
    std::unique_ptr<riscv_mailbox::Context> context;
  };
  void call(const char* what, const char* obstacle, std::function<void()> body);

  sim::Simulation simulation_;
  riscv_mailbox::Interconnect interconnect_;
  std::deque<Process> processes_;
};

}  // namespace towpath::riscv_mailbox
