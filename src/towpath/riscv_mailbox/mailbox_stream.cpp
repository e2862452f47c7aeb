// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/riscv_mailbox/mailbox_stream.hpp"

#include <fmt/format.h>

#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/riscv_mailbox/context.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::riscv_mailbox {

using namespace literals;

namespace {

// Silence that marks the end of the stream for the receiver.
constexpr Time kQuiet = 100_us;

std::shared_ptr<const machine::MailboxCluster> checked(
    const std::shared_ptr<const machine::MailboxCluster>& cluster,
    const MailboxStreamOptions& options) {
  if (options.senders < 1) {
    throw std::invalid_argument(
        fmt::format("there are {} senders; there must be at least 1", options.senders));
  }
  machine::check_programs_per_node(*cluster, options.senders / cluster->nodes + 1);
  if (options.messages < 1 || options.burst_messages < 1 || options.pause_cycles < 0) {
    throw std::invalid_argument(
        fmt::format("there are {} messages in bursts of {} with pauses of {} cycles; they must be "
                    "at least 1, 1 and 0",
                    options.messages, options.burst_messages, options.pause_cycles));
  }
  return machine::without_interruptions(*cluster);
}

}  // namespace

MailboxStreamResult run_mailbox_stream(std::shared_ptr<const machine::MailboxCluster> cluster,
                                       const MailboxStreamOptions& options) {
  sim::Simulation simulation(options.seed);
  Interconnect interconnect(simulation, checked(cluster, options));
  Core receiver_core(simulation, interconnect.cluster(), "receiver");
  Context receiver(interconnect, receiver_core, {.node = 0});
  std::deque<Core> cores;
  std::deque<Context> contexts;
  for (int sender = 0; sender < options.senders; ++sender) {
    Core& core =
        cores.emplace_back(simulation, interconnect.cluster(), fmt::format("sender {}", sender));
    const int node = (sender + 1) % interconnect.cluster().nodes;
    Context& context = contexts.emplace_back(interconnect, core, Context::Options{.node = node});
    simulation.spawn(core.name(), [&context, &options, to = receiver.address()] {
      const std::vector<std::byte> payload(static_cast<std::size_t>(options.size_bytes));
      for (int i = 0; i < options.messages; ++i) {
        if (i > 0 && i % options.burst_messages == 0) context.core().spend(options.pause_cycles);
        context.send(to, payload);
      }
      context.flush();
    });
  }
  MailboxStreamResult result;
  const std::uint64_t sent =
      static_cast<std::uint64_t>(options.senders) * static_cast<std::uint64_t>(options.messages);
  const auto dropped = [&] {
    std::uint64_t sum = 0;
    for (const Context& context : contexts) sum += context.notices().full;
    return sum;
  };
  simulation.spawn("receiver", [&] {
    while (result.received + dropped() < sent) {
      if (!receiver.receive(simulation.from_now(kQuiet))) continue;
      ++result.received;
      result.time = simulation.now();
    }
  });
  simulation.run();
  result.dropped = dropped();
  return result;
}

}  // namespace towpath::riscv_mailbox
