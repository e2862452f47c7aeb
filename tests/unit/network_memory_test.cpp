// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/run/network_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <span>

#include "pcie_bench.hpp"

namespace towpath::run {
namespace {
using namespace literals;

// A host and a core of its chip hand a word to each other through L1.
TEST(NetworkMemory, AKernelIsWokenWhenTheHostsWriteLands) {
  sim::Simulation simulation;
  const auto chip = machine::build_chip(pcie::link_chip());
  noc::ChipNetwork network(simulation, chip, {});
  NetworkMemory memory(network);
  pcie::HostLink link(simulation, machine::build_host(pcie::link_host()), chip, memory, {});
  Time returned;
  Time woken;
  std::array<std::uint32_t, 1> answer{};
  sim::Process& kernel = simulation.spawn("kernel", [&] {
    while (network.load_word(pcie::kOther, 64) != 7) simulation.suspend("the host");
    woken = simulation.now();
    network.store_word(pcie::kOther, 128, 8);
  });
  simulation.spawn("host", [&] {
    network.wake_on_write(pcie::kOther, 64, kernel);
    const std::array<std::uint32_t, 1> word{7};
    link.write_to_device(std::as_bytes(std::span(word)), pcie::kOther, 64);
    returned = simulation.now();
    link.read_from_device(std::as_writable_bytes(std::span(answer)), pcie::kOther, 128);
  });
  simulation.run();
  EXPECT_GT(woken, returned);
  EXPECT_EQ(answer[0], 8U);
  EXPECT_TRUE(simulation.blocked().empty());
}

}  // namespace
}  // namespace towpath::run
