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

// A cluster with mailboxes for a program without simulated processes: each call advances the
// simulation by its cost and returns.

namespace towpath::riscv_mailbox {

class MailboxSession {
 public:
  explicit MailboxSession(std::shared_ptr<const machine::MailboxCluster> cluster,
                          std::uint64_t seed = 1)
      : simulation_(seed), interconnect_(simulation_, std::move(cluster)) {}

  // Starts a process on a free core of `node`. Throws std::invalid_argument if the node has no free
  // core or context.
  Context& open(int node, int domain);
  void close(Context& context);

  // Throw DeadlockError if no event can end the wait. The call stays pending: the message is sent
  // when there is room, and a receive takes the next message.
  void send(Context& context, Address to, std::span<const std::byte> payload);
  void flush(Context& context);
  std::optional<Message> try_receive(Context& context);
  std::optional<Message> receive(Context& context, Time timeout);

  Time now() const { return simulation_.now(); }

 private:
  struct Process {
    std::unique_ptr<Core> core;
    std::unique_ptr<Context> context;
  };
  void call(const char* what, const char* obstacle, std::function<void()> body);

  sim::Simulation simulation_;
  Interconnect interconnect_;
  std::deque<Process> processes_;
};

}  // namespace towpath::riscv_mailbox
