// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Plays random programs (sim/script.hpp) on the model, with the constants of the RTL, and prints
// when each step is over.
//
// Usage: rtl_script_model FIRST_SEED COUNT

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>

#include "../sim/script.hpp"
#include "towpath/machine/load.hpp"
#include "towpath/riscv_mailbox/context.hpp"

using namespace towpath;
using script::Step;

namespace {

std::shared_ptr<const machine::MailboxCluster> describe() {
  machine::MailboxCluster cluster = *machine::load_mailbox_cluster("carvnet");
  cluster.nodes = script::kNodes;
  cluster.interruptions.clear();
  cluster.page_walks = {};
  cluster.software.store_cycles = 1;
  cluster.software.descriptor_words = 1;
  cluster.software.send_cycles = script::kSendCycles;
  cluster.software.receive_cycles = script::kReceiveCycles;
  cluster.software.load_cycles = script::kLoadCycles;
  cluster.software.poll_cycles = script::kLoadCycles;
  cluster.software.release_cycles = 0;
  // rtl/hw: queue, forming and the register of the output; ring stop, gearbox and a way of 15
  // cycles; ring stop, decision and commitment.
  cluster.packetizer.formation_cycles = 2;
  cluster.ring.hop_latency = Time::from_ns(190);
  cluster.mailbox.enqueue_cycles = 3;
  cluster.mailbox.depth_packets = 4;
  return machine::build_mailbox_cluster(std::move(cluster));
}

struct Node {
  Node(sim::Simulation& simulation, riscv_mailbox::Interconnect& interconnect, int number)
      : core(simulation, interconnect.cluster(), "node " + std::to_string(number)),
        context(interconnect, core, {.node = number}) {}
  mailbox::Core core;
  riscv_mailbox::Context context;
  std::vector<std::int64_t> ends;
};

void play(Node& node, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    switch (step.kind) {
      case Step::Kind::pause: node.core.spend(step.cycles); break;
      case Step::Kind::flush: node.context.flush(); break;
      case Step::Kind::receive: node.context.receive(); break;
      case Step::Kind::send: {
        const std::vector<std::byte> payload(static_cast<std::size_t>(step.size_bytes));
        node.context.send({step.to, 0}, payload);
        break;
      }
    }
    node.ends.push_back(node.core.now().count());
  }
}

void play_all(std::uint64_t seed) {
  sim::Simulation simulation(1);
  riscv_mailbox::Interconnect interconnect(simulation, describe());
  std::deque<Node> nodes;
  const auto steps = script::make(seed);
  for (int number = 0; number < script::kNodes; ++number) {
    Node& node = nodes.emplace_back(simulation, interconnect, number);
    simulation.spawn("node " + std::to_string(number), [&node, &steps, number] {
      play(node, steps[static_cast<std::size_t>(number)]);
    });
  }
  while (simulation.step()) {
  }
  for (int number = 0; number < script::kNodes; ++number) {
    const Node& node = nodes[static_cast<std::size_t>(number)];
    for (std::size_t step = 0; step < node.ends.size(); ++step)
      std::printf("%llu %d %zu %lld\n", static_cast<unsigned long long>(seed), number, step,
                  static_cast<long long>(node.ends[step]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: rtl_script_model FIRST_SEED COUNT\n");
    return 2;
  }
  try {
    const std::uint64_t first = std::strtoull(argv[1], nullptr, 10);
    const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
    for (std::uint64_t seed = first; seed < first + count; ++seed) play_all(seed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rtl_script_model: %s\n", error.what());
    return 1;
  }
  return 0;
}
