// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "ethernet_bench.hpp"
#include "sentence.hpp"
#include "towpath/sim/trace.hpp"

namespace towpath::ethernet {
namespace {
using namespace literals;

// 16 KiB in commands of 4 KiB, with distinct bytes.
void send_some(PortPair& pair) {
  for (std::size_t i = 0; i < 16384; ++i) pair.memory_a.bytes[i] = std::byte(i * 37 >> 4);
  pair.simulation.spawn("sender", [&pair] {
    for (std::uint64_t offset = 0; offset < 16384; offset += 4096) {
      pair.wait_until_free(pair.a, 0);
      pair.a.send(0, write_of(offset, offset, 4096));
    }
  });
}

bool has_arrived(const PortPair& pair) {
  return std::equal(pair.memory_a.bytes.begin(), pair.memory_a.bytes.begin() + 16384,
                    pair.memory_b.bytes.begin());
}

std::string error_of(const LinkFaults& faults) {
  return sentence_of([&] { PortPair(plain_figures(), faults); });
}

TEST(EthernetLink, JoinsTwoPorts) {
  PortPair pair(plain_figures());
  EXPECT_EQ(pair.a.far_end(), &pair.b);
  EXPECT_EQ(pair.b.far_end(), &pair.a);
  EXPECT_EQ(pair.a.link(), &pair.link);
  EXPECT_EQ(pair.link.name(), "link between A and B");
  EXPECT_TRUE(pair.a.is_link_up());
  EXPECT_EQ(pair.link.outage(), "");
}

TEST(EthernetLink, RefusesAPortThatIsConnected) {
  PortPair pair(plain_figures());
  Port c(pair.simulation, plain_figures(), pair.memory_a, "C");
  EXPECT_THROW(Link(pair.simulation, c, c), std::invalid_argument);
  EXPECT_EQ(sentence_of([&] { Link(pair.simulation, c, pair.a); }),
            "A is already connected to B; a port can have only one link");
  EXPECT_FALSE(c.is_connected());
}

TEST(EthernetLink, RefusesFaultsThatMakeNoSense) {
  EXPECT_EQ(
      error_of({.frame_loss = 1}),
      "the link between A and B has a frame loss of 1; it must be a probability from 0 to below 1");
  EXPECT_NE(error_of({.frame_loss = -0.1}), "");
  EXPECT_EQ(error_of({.drop_at = 0_ns, .dead_time = 0_ns - 1_ns}),
            "the link between A and B is dead for -1 ns after a drop; it must be at least 0");
  EXPECT_EQ(error_of({.drop_at = 0_ns, .drop_period = 15_us, .dead_time = 5_us}),
            "the link between A and B drops every 15000 ns, before it is up again: it is dead for "
            "5000 ns and trained for 10000 ns");
  EXPECT_NE(error_of({.drop_at = 0_ns, .drop_period = 15_us, .dead_time = Time::max()}), "");
  EXPECT_EQ(error_of({.drop_at = 0_ns, .training_time = 0_ns - 1_ns}),
            "the link between A and B is trained for -1 ns; it must be at least 0");
  EXPECT_EQ(error_of({.drop_at = 0_ns, .drop_period = 15_us, .training_time = 15_us}),
            "the link between A and B drops every 15000 ns, before it is up again: it is dead for "
            "0 ns and trained for 15000 ns");
  EXPECT_EQ(error_of({.drop_at = 0_ns - 1_ns}),
            "the link between A and B first drops at -1 ns, but it is 0 ns already");
}

TEST(EthernetLink, SendsLostFramesAgain) {
  PortPair pair(plain_figures(), {.frame_loss = 0.2});
  send_some(pair);
  pair.simulation.run();
  EXPECT_TRUE(has_arrived(pair));
  EXPECT_TRUE(pair.a.is_idle());
  EXPECT_TRUE(pair.memory_a.held.empty());
  const PortCounters& sent = pair.a.counters();
  const PortCounters& received = pair.b.counters();
  EXPECT_GT(sent.frames_lost, 0u);
  EXPECT_EQ(received.frames_received, 12u);  // 4 commands of 3 frames
  EXPECT_EQ(sent.frames_sent, 12u + sent.frames_resent);
  EXPECT_EQ(sent.frames_sent,
            sent.frames_lost + received.frames_received + received.frames_dropped);
  EXPECT_EQ(received.payload_bytes_received, 16384u);
}

// The timeout is 20 us.
TEST(EthernetLink, WaitsForNoTimeoutOnceAllIsAcknowledged) {
  PortPair pair(plain_figures(), {.frame_loss = 1e-9});
  send_some(pair);
  pair.simulation.run();
  EXPECT_EQ(pair.a.counters().frames_lost, 0u);
  EXPECT_TRUE(pair.a.is_idle());
  EXPECT_LT(pair.simulation.now(), 5_us);
}

// The timeout counts from the last byte of the oldest frame. When it passes for the first frame,
// that frame is long acknowledged, and the oldest one has been on its way for less than 1 us.
TEST(EthernetLink, SendsNothingAgainThatIsYoungerThanTheTimeout) {
  PortPair pair(plain_figures(), {.frame_loss = 1e-9});
  pair.simulation.spawn("sender", [&pair] {
    while (pair.simulation.now() < 100_us) {  // five timeouts
      pair.wait_until_free(pair.a, 0);
      pair.a.send(0, write_of(0, 0, 4096));
    }
  });
  pair.simulation.run();
  EXPECT_EQ(pair.a.counters().frames_lost, 0u);
  EXPECT_EQ(pair.a.counters().frames_resent, 0u);
  EXPECT_EQ(pair.b.counters().frames_dropped, 0u);
  EXPECT_EQ(pair.a.counters().payload_bytes_sent, pair.b.counters().payload_bytes_received);
}

// The receiver takes nothing after a missing frame: the frames behind it are sent again.
TEST(EthernetLink, DropsWhatIsNotTheNextInOrder) {
  bool was_dropped = false;
  for (std::uint64_t seed = 1; seed <= 100 && !was_dropped; ++seed) {
    PortPair pair(plain_figures(), {.frame_loss = 0.3}, seed);
    pair.a.send(0, write_of(0, 0, 4096));
    pair.simulation.run_until(2_us);  // before the timeout
    if (pair.a.counters().frames_lost != 1 || !pair.memory_b.writes.empty()) continue;
    EXPECT_EQ(pair.b.counters().frames_dropped, 2u);
    pair.simulation.run();
    EXPECT_GE(pair.a.counters().frames_resent, 3u);
    EXPECT_EQ(pair.memory_b.writes.size(), 3u);
    was_dropped = true;
  }
  EXPECT_TRUE(was_dropped);
}

TEST(EthernetLink, GoesOnAfterTrainingWithWhatWasNotAcknowledged) {
  PortPair pair(plain_figures(), {.drop_at = 700_ns, .dead_time = 5_us});
  pair.answer_routing();
  send_some(pair);
  pair.simulation.run();
  EXPECT_TRUE(has_arrived(pair));
  EXPECT_TRUE(pair.link.is_up());
  EXPECT_EQ(pair.link.drops(), 1u);
  EXPECT_EQ(pair.link.down_time(), 15_us);  // dead for 5, trained for 10
  EXPECT_GT(pair.a.counters().frames_resent, 0u);
  EXPECT_EQ(pair.b.counters().payload_bytes_received, 16384u);
  EXPECT_TRUE(pair.memory_a.held.empty());
}

// The frame is at the far end, 200 ns behind the wire, when the link drops. It is written, but no
// acknowledgement goes back, so it is sent again, and dropped there. All this is the queue's one
// command: afterwards it has room for two, and no more.
TEST(EthernetLink, AcknowledgesNothingWhileItIsDown) {
  PortPair pair(plain_figures(), {.drop_at = 200_ns});
  pair.answer_routing();
  const CommandNumber command = pair.a.send(0, write_of(0, 0, 16));
  pair.simulation.run_until(9_us);
  EXPECT_EQ(pair.memory_b.writes.size(), 1u);
  EXPECT_TRUE(pair.memory_a.is_held(command));
  pair.simulation.run();
  EXPECT_EQ(pair.a.counters().frames_resent, 1u);
  EXPECT_EQ(pair.b.counters().frames_dropped, 1u);
  EXPECT_FALSE(pair.memory_a.is_held(command));

  const Time now = pair.simulation.now();
  pair.a.send(0, write_of(0, 0, 8192));
  pair.simulation.run_until(now + 120_ns);
  pair.a.send(0, write_of(0, 0, 8192));
  pair.simulation.run_until(now + 600_ns);
  EXPECT_TRUE(pair.a.is_busy(0));
}

TEST(EthernetLink, StaysDownWhenOneCoreNeverRunsRouting) {
  PortPair pair(plain_figures(), {.drop_at = 700_ns});
  send_some(pair);
  pair.simulation.run_until(800_ns);
  EXPECT_EQ(pair.link.outage(),
            "the link between A and B is down since 700 ns, and neither end has called "
            "run_routing");
  pair.a.run_routing();
  pair.simulation.run();
  EXPECT_FALSE(has_arrived(pair));
  EXPECT_TRUE(pair.link.is_stuck());
  EXPECT_EQ(pair.link.down_since(), 700_ns);
  EXPECT_TRUE(pair.a.has_run_routing());
  EXPECT_FALSE(pair.b.has_run_routing());
  EXPECT_EQ(pair.link.outage(),
            "the link between A and B is down since 700 ns, and B has not called run_routing");
  pair.b.run_routing();
  EXPECT_FALSE(pair.link.is_stuck());
  EXPECT_EQ(pair.link.outage(),
            "the link between A and B is down since 700 ns and is being trained");
  pair.simulation.run();
  EXPECT_TRUE(has_arrived(pair));
}

TEST(EthernetLink, NeverComesBackWhenItIsDeadForever) {
  PortPair pair(plain_figures(), {.drop_at = 700_ns, .dead_time = Time::max()});
  pair.answer_routing();
  send_some(pair);
  pair.simulation.run();
  EXPECT_TRUE(pair.link.is_stuck());
  EXPECT_EQ(pair.link.outage(),
            "the link between A and B is down since 700 ns and cannot be trained again");
  EXPECT_FALSE(pair.memory_a.held.empty());
}

// Commands are still taken, as many as the queue has room for.
TEST(EthernetLink, SendsNothingWhileItIsDown) {
  PortPair pair(plain_figures(), {.drop_at = 0_ns});
  pair.simulation.run_until(1_us);
  pair.a.send(0, write_of(0, 0, 16));
  pair.simulation.run_until(2_us);
  pair.a.send(0, write_of(0, 0, 16));
  pair.simulation.run();
  EXPECT_TRUE(pair.a.is_busy(0));
  EXPECT_EQ(pair.a.counters().frames_sent, 0u);
}

// Every 100 us, for as long as something goes over it; then the simulation ends.
TEST(EthernetLink, DropsAgainAndAgainWhileItIsUsed) {
  PortPair pair(plain_figures(), {.drop_at = 100_us, .drop_period = 100_us, .dead_time = 5_us});
  pair.answer_routing();
  pair.simulation.spawn("sender", [&] {
    while (pair.simulation.now() < 950_us) {
      pair.wait_until_free(pair.a, 0);
      pair.a.send(0, write_of(0, 0, 4096));
    }
  });
  pair.simulation.run_until(1100_us);
  EXPECT_EQ(pair.link.drops(), 10u);  // at 1 ms for the last time
  EXPECT_EQ(pair.link.down_time(), 150_us);
  pair.simulation.run();
  EXPECT_EQ(pair.link.drops(), 10u);

  pair.simulation.run_until(2050_us);
  pair.a.send(0, write_of(0, 0, 16));
  pair.simulation.run_until(2099_us);
  EXPECT_TRUE(pair.link.is_up());
  pair.simulation.run_until(2100_us);
  EXPECT_FALSE(pair.link.is_up());
  pair.simulation.run();
  EXPECT_EQ(pair.link.drops(), 11u);
}

TEST(EthernetLink, KeepsNothingGoingUntilItDrops) {
  PortPair pair(plain_figures(), {.drop_at = 100_us});
  pair.answer_routing();
  send_some(pair);
  pair.simulation.run();
  EXPECT_TRUE(has_arrived(pair));
  EXPECT_LT(pair.simulation.now(), 10_us);
  EXPECT_EQ(pair.link.drops(), 0u);
}

TEST(EthernetLink, CountsWhatItSendsAgain) {
  PortPair healthy(plain_figures());
  PortPair pair(plain_figures(), {.drop_at = 700_ns, .training_time = 1_us});
  pair.answer_routing();
  for (PortPair* each : {&healthy, &pair}) {
    send_some(*each);
    each->simulation.run();
  }
  EXPECT_EQ(healthy.a.counters().payload_bytes_resent, 0u);
  const PortCounters& sent = pair.a.counters();
  EXPECT_EQ(sent.payload_bytes_sent, 16384u);
  // Five frames were on the wire to the end, a sixth not: 1500 + 1500 + 1096 + 1500 + 1500, + 1096.
  EXPECT_EQ(sent.frames_resent, 6u);
  EXPECT_EQ(sent.payload_bytes_resent, 8192u);
  // Each frame takes 80 ps a byte, with 50 bytes more.
  EXPECT_EQ(sent.wire_time, healthy.a.counters().wire_time + Time::from_ps((8192 + 6 * 50) * 80));
}

TEST(EthernetLink, TracesWhenItWasDown) {
  PortPair pair(plain_figures(), {.drop_at = 1_us});
  sim::Trace trace;
  pair.simulation.set_trace(&trace);
  pair.answer_routing();
  pair.simulation.run_until(1_us);
  pair.simulation.run();
  ASSERT_EQ(trace.records().size(), 1u);
  EXPECT_EQ(trace.tracks()[0], "ethernet link between A and B");
  EXPECT_EQ(trace.records()[0].begin, 1_us);
  EXPECT_EQ(trace.records()[0].end, 11_us);
}

}  // namespace
}  // namespace towpath::ethernet
