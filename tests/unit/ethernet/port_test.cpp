// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "ethernet_bench.hpp"
#include "sentence.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/sim/trace.hpp"

namespace towpath::ethernet {
namespace {
using namespace literals;

TEST(EthernetPort, CarriesTheBytesOfACommand) {
  PortPair pair(plain_figures());
  for (std::size_t i = 0; i < 8192; ++i) pair.memory_a.bytes[0x100 + i] = std::byte(i * 7 >> 3);
  pair.a.send(0, write_of(0x100, 0x4000, 8192));
  pair.simulation.run();
  EXPECT_TRUE(std::equal(pair.memory_a.bytes.begin() + 0x100, pair.memory_a.bytes.begin() + 0x2100,
                         pair.memory_b.bytes.begin() + 0x4000));
  EXPECT_EQ(pair.memory_b.bytes[0x3fff], std::byte{0});
  EXPECT_EQ(pair.memory_b.bytes[0x6000], std::byte{0});
}

// 1500 + 1500 + the rest, not evenly.
TEST(EthernetPort, CutsACommandIntoFullFramesAndARest) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 4096));
  pair.simulation.run();
  ASSERT_EQ(pair.memory_b.writes.size(), 3u);
  EXPECT_EQ(pair.memory_b.writes[0].size_bytes, 1500u);
  EXPECT_EQ(pair.memory_b.writes[1].size_bytes, 1500u);
  EXPECT_EQ(pair.memory_b.writes[2].size_bytes, 1096u);
}

TEST(EthernetPort, KeepsTheOrderOfAQueue) {
  PortPair pair(plain_figures());
  pair.simulation.spawn("sender", [&] {
    for (std::uint64_t i = 0; i < 20; ++i) {
      pair.wait_until_free(pair.a, 0);
      pair.a.send(0, write_of(0, i * 4096, i % 2 == 0 ? 4096 : 16));
    }
  });
  pair.simulation.run();
  EXPECT_TRUE(std::ranges::is_sorted(pair.memory_b.writes, {}, &PlainMemory::Write::offset));
  EXPECT_EQ(pair.a.counters().payload_bytes_sent, 10u * 4096 + 10 * 16);
}

TEST(EthernetPort, SendsBothWaysAtOnce) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 4096));
  pair.b.send(0, write_of(0, 0, 4096));
  pair.simulation.run();
  EXPECT_EQ(pair.memory_a.writes, pair.memory_b.writes);
  EXPECT_EQ(pair.memory_a.writes.size(), 3u);
}

TEST(EthernetPort, CountsWhatPassed) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 2048));
  pair.a.send(1, {.kind = Command::Kind::register_write, .destination = 0x60, .value = 7});
  EXPECT_FALSE(pair.a.is_idle());
  pair.simulation.run();
  EXPECT_TRUE(pair.a.is_idle());
  EXPECT_EQ(pair.a.counters().commands, 2u);
  EXPECT_EQ(pair.a.counters().frames_sent, 3u);
  EXPECT_EQ(pair.a.counters().payload_bytes_sent, 2048u);
  EXPECT_EQ(pair.a.counters().frames_received, 0u);
  EXPECT_EQ(pair.b.counters().frames_received, 3u);
  EXPECT_EQ(pair.b.counters().payload_bytes_received, 2048u);
}

// 6 frames: two events each, and two for the command.
TEST(EthernetPort, TakesTwoEventsPerFrameAndTwoPerCommand) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 8192));
  pair.simulation.run();
  EXPECT_EQ(pair.simulation.events(), 14u);
}

TEST(EthernetPort, TellsItsListenerThatAQueueIsFree) {
  PortPair pair(plain_figures());
  std::vector<Time> times;
  auto note = [&] { times.push_back(pair.simulation.now()); };
  pair.a.set_listener([](void* context) { (*static_cast<decltype(note)*>(context))(); }, &note);
  pair.a.send(0, write_of(0, 0, 8192));
  pair.a.send(1, write_of(0, 0, 16));
  pair.simulation.run_until(120_ns);
  pair.a.send(0, write_of(0, 0, 8192));  // free only when the first is on the wire: 5.28 ns later
  pair.simulation.run();
  EXPECT_EQ(times, (std::vector<Time>{56'125_ps, 120_ns, 684'640_ps}));
}

TEST(EthernetPort, ReleasesEachSourceOnce) {
  PortPair pair(plain_figures());
  std::vector<CommandNumber> released;
  pair.memory_a.on_release = [&](CommandNumber command) { released.push_back(command); };
  pair.a.send(0, write_of(0, 0, 4096));
  pair.a.send(1, write_of(0, 0, 16));
  pair.simulation.run();
  EXPECT_EQ(released, (std::vector<CommandNumber>{2, 1}));
  EXPECT_TRUE(pair.memory_a.held.empty());
}

// A register's write has no source.
TEST(EthernetPort, HoldsNothingForARegister) {
  PortPair pair(plain_figures());
  pair.a.send(0, {.kind = Command::Kind::register_write, .size_bytes = 3, .value = 7});
  EXPECT_TRUE(pair.memory_a.held.empty());
  pair.simulation.run();
  EXPECT_EQ(pair.memory_b.registers[0], 7u);
}

TEST(EthernetPort, RefusesWhatCannotBeSent) {
  PortPair pair(plain_figures());
  const auto error = [&](int queue, const Command& command) {
    return sentence_of([&] { pair.a.send(queue, command); });
  };
  EXPECT_EQ(error(2, write_of(0, 0, 16)), "A has no queue 2; its queues are 0 to 1");
  EXPECT_EQ(error(-1, write_of(0, 0, 16)), "A has no queue -1; its queues are 0 to 1");
  EXPECT_EQ(error(0, write_of(0, 0, 0)), "A has a send of 0 bytes; it must be at least 16");
  EXPECT_EQ(error(0, write_of(0, 0, 24)),
            "A was given a size of 0x18; it must be a multiple of 16");
  EXPECT_EQ(error(0, write_of(4, 0, 16)),
            "A was given a source of 0x4; it must be a multiple of 16");
  EXPECT_EQ(error(0, write_of(0, 8, 16)),
            "A was given a destination of 0x8; it must be a multiple of 16");
  EXPECT_EQ(error(0, write_of(0x3fff0, 0, 32)),
            "A was given a source of 0x3fff0 for 32 bytes; the L1 of A ends at 0x40000");
  EXPECT_EQ(error(0, write_of(0, 0xfffffffffffffff0, 32)),
            "A was given a destination of 0xfffffffffffffff0 for 32 bytes; the L1 of B ends at "
            "0x40000");
  EXPECT_EQ(pair.a.counters().commands, 0u);
  EXPECT_FALSE(pair.a.is_busy(0));
  EXPECT_THROW(static_cast<void>(pair.a.is_busy(2)), std::invalid_argument);
}

TEST(EthernetPort, IsConnectedToNoOtherCoreWithoutALink) {
  sim::Simulation simulation;
  PlainMemory memory(simulation, 4096);
  Port port(simulation, plain_figures(), memory, "Ethernet core (9, 0) of chip 0");
  EXPECT_FALSE(port.is_connected());
  EXPECT_FALSE(port.is_link_up());
  EXPECT_EQ(port.far_end(), nullptr);
  port.run_routing();
  EXPECT_EQ(sentence_of([&] { port.send(0, write_of(0, 0, 16)); }),
            "Ethernet core (9, 0) of chip 0 is connected to no other core");
}

TEST(EthernetPort, TakesNoCommandIntoABusyQueue) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 16));
  EXPECT_THROW(pair.a.send(0, write_of(0, 0, 16)), InvariantError);
}

TEST(EthernetPort, TracesCommandsAndFrames) {
  PortPair pair(plain_figures());
  sim::Trace trace;
  pair.simulation.set_trace(&trace);
  pair.a.send(0, write_of(0, 0, 2048));
  pair.simulation.run();
  ASSERT_EQ(trace.records().size(), 3u);
  EXPECT_EQ(trace.tracks(), (std::vector<std::string>{"ethernet A queue 0", "link A > B"}));
  EXPECT_EQ(trace.names(), (std::vector<std::string>{"command", "frame"}));
  EXPECT_EQ(trace.records()[0].end, 72_ns);
  EXPECT_EQ(trace.records()[1].end, 124_ns);
  EXPECT_EQ(trace.records()[2].begin, 124_ns);
  EXPECT_EQ(trace.records()[2].value, 548);
}

}  // namespace
}  // namespace towpath::ethernet
