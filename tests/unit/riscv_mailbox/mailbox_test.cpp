// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "mailbox_bench.hpp"
#include "towpath/riscv_mailbox/context.hpp"
#include "towpath/riscv_mailbox/mailbox_session.hpp"
#include "towpath/riscv_mailbox/ping_pong.hpp"
#include "towpath/sim/random.hpp"

namespace towpath::mailbox {
namespace {
using namespace literals;
using riscv_mailbox::Context;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Mailbox, CarriesTheBytesOfAMessage) {
  RingBench bench(carvnet(5));
  Core core(bench.simulation, bench.interconnect.cluster(), "receiver");
  Context receiver(bench.interconnect, core, {.node = 3});
  const Address from = bench.interconnect.open(1, 0);
  bench.interconnect.submit(from, receiver.address(), bytes_of(61, 5));
  bench.simulation.spawn("receiver", [&] {
    const auto message = receiver.receive();
    EXPECT_EQ(message->from, from);
    EXPECT_EQ(message->payload, bytes_of(61, 5));
    EXPECT_FALSE(receiver.try_receive().has_value());
  });
  bench.simulation.run();
  EXPECT_TRUE(bench.simulation.blocked().empty());
}

TEST(Mailbox, AFullMailboxHoldsItsSendersBackAndLosesNothing) {
  RingBench bench(carvnet());
  const Address from = bench.interconnect.open(0, 0), to = bench.interconnect.open(1, 0);
  int sent = 0;
  for (; bench.interconnect.has_room(from); ++sent) {
    bench.interconnect.submit(from, to, bytes_of(8, sent));
    bench.simulation.run();
  }
  EXPECT_EQ(sent, 8 + 4);  // in the mailbox, and before it
  EXPECT_EQ(bench.interconnect.packets(to), 8u);
  for (int i = 0; i < sent; ++i) {
    bench.simulation.run();
    EXPECT_EQ(bench.interconnect.first(to).payload, bytes_of(8, i));
    bench.interconnect.release(to);
  }
  bench.simulation.run();
  EXPECT_EQ(bench.interconnect.notices(from), (Notices{.acknowledged = 12}));
}

TEST(Mailbox, AFullMailboxThatDropsTellsTheSender) {
  machine::MailboxCluster cluster = carvnet();
  cluster.mailbox.drops_when_full = true;
  RingBench bench(cluster);
  const Address from = bench.interconnect.open(0, 0), to = bench.interconnect.open(1, 0);
  for (int i = 0; i < 11; ++i) {
    bench.interconnect.submit(from, to, bytes_of(8, i));
    bench.simulation.run();
  }
  EXPECT_EQ(bench.interconnect.notices(from), (Notices{.acknowledged = 8, .full = 3}));
  EXPECT_EQ(bench.interconnect.packets(to), 8u);
}

TEST(Mailbox, AProcessCannotFillTheMailboxOfAnotherDomain) {
  RingBench bench(carvnet());
  const Address from = bench.interconnect.open(0, 7), to = bench.interconnect.open(1, 8);
  bench.interconnect.submit(from, to, bytes_of(8));
  bench.interconnect.submit(from, {1, 15}, bytes_of(8));  // nobody has opened it
  bench.interconnect.submit(from, {1, 99}, bytes_of(8));  // there is none
  bench.simulation.run();
  EXPECT_EQ(bench.interconnect.packets(to), 0u);
  EXPECT_EQ(bench.interconnect.notices(from), (Notices{.refused = 3}));
}

TEST(Mailbox, ContextsOfANodeAreCountedAndUsedAgain) {
  RingBench bench(carvnet());
  std::deque<Context> contexts;
  Core core(bench.simulation, bench.interconnect.cluster(), "core");
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(
        contexts.emplace_back(bench.interconnect, core, Context::Options{.node = 1}).address(),
        (Address{1, i}));
  }
  EXPECT_EQ(error_of([&] { bench.interconnect.open(1, 0); }),
            "all 16 contexts of node 1 of cluster 'carvnet' are open");
  contexts.pop_front();
  EXPECT_EQ(bench.interconnect.open(1, 0), (Address{1, 0}));
}

// Otherwise its acknowledgement would be the new owner's.
TEST(Mailbox, AContextIsNotReusedWhileItsPacketsAreUnacknowledged) {
  RingBench bench(carvnet());
  const Address first = bench.interconnect.open(0, 0), to = bench.interconnect.open(1, 0);
  bench.interconnect.submit(first, to, bytes_of(8));
  bench.interconnect.close(first);
  const Address second = bench.interconnect.open(0, 0);
  EXPECT_EQ(second, (Address{0, 1}));
  bench.simulation.run();
  EXPECT_EQ(bench.interconnect.notices(second), Notices());
  EXPECT_EQ(bench.interconnect.open(0, 0), first);
  EXPECT_EQ(bench.interconnect.notices(first), Notices());
}

TEST(Mailbox, WhatWaitsBeforeAMailboxThatClosesIsRefused) {
  RingBench bench(carvnet());
  const Address from = bench.interconnect.open(0, 0), to = bench.interconnect.open(1, 0);
  for (int i = 0; i < 12; ++i) {
    bench.interconnect.submit(from, to, bytes_of(8));
    bench.simulation.run();
  }
  bench.interconnect.close(to);
  bench.simulation.run();
  EXPECT_EQ(bench.interconnect.notices(from), (Notices{.acknowledged = 8, .refused = 4}));
}

// Behind a packet to node 2, which goes upwards too, one to node 1 waits for the link.
TEST(Mailbox, APacketHalfwayRoundGoesUpwards) {
  const auto visible_at_node_1 = [](int first_to) {
    RingBench bench(carvnet(4));
    mailbox::Interconnect& interconnect = bench.interconnect;
    const Address one = interconnect.open(0, 0), two = interconnect.open(0, 0);
    const Address to = interconnect.open(1, 0);
    interconnect.submit(one, interconnect.open(first_to, 0), bytes_of(64));
    interconnect.submit(two, to, bytes_of(64));
    bench.simulation.run();
    return *interconnect.visible_from(to);
  };
  EXPECT_GT(visible_at_node_1(2), visible_at_node_1(3));
}

TEST(Mailbox, RefusesWhatIsNoPacket) {
  RingBench bench(carvnet());
  const Address from = bench.interconnect.open(0, 0);
  EXPECT_EQ(error_of([&] { bench.interconnect.submit(from, {2, 0}, bytes_of(8)); }),
            "cluster 'carvnet' has no node 2; it has 0 to 1");
  EXPECT_EQ(error_of([&] { bench.interconnect.submit(from, {1, 0}, {}); }),
            "a packet carries 0 bytes; it must carry 1 to 64");
  EXPECT_EQ(error_of([&] { bench.interconnect.submit(from, {1, 0}, bytes_of(65)); }),
            "a packet carries 65 bytes; it must carry 1 to 64");
  machine::MailboxCluster wrong = carvnet();
  wrong.software.poll_cycles = 4;
  EXPECT_EQ(error_of([&] { machine::build_mailbox_cluster(wrong); }),
            "cluster 'carvnet': software.poll_cycles is 4; it must be at least 5, the load_cycles");
}

// Random sizes, senders and pauses on rings of random size: every mailbox gets what was sent to it,
// once, and in order per sender.
TEST(Mailbox, AnyTrafficArrivesOnceAndInOrderPerSender) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    sim::Random random(seed, "traffic");
    const int nodes = static_cast<int>(random.between(1, 9));
    machine::MailboxCluster cluster = carvnet(nodes);
    cluster.mailbox.depth_packets = static_cast<int>(random.between(1, 5));
    cluster.packetizer.packets_unacknowledged_max = static_cast<int>(random.between(1, 6));
    if (seed % 3 == 0) cluster.interruptions = {{"tick", 5_us, 100_ns, 2_us}};
    RingBench bench(cluster, seed);
    constexpr int kEach = 30;
    std::deque<Core> cores;
    std::deque<Context> contexts;
    for (int node = 0; node < nodes; ++node) {
      for (const char* role : {"sender", "receiver"}) {
        Core& core = cores.emplace_back(bench.simulation, bench.interconnect.cluster(),
                                        std::string(role) + std::to_string(node));
        contexts.emplace_back(bench.interconnect, core, Context::Options{.node = node});
      }
    }
    std::map<std::pair<Address, Address>, std::vector<std::vector<std::byte>>> sent, received;
    for (int node = 0; node < nodes; ++node) {
      bench.simulation.spawn("sender", [&, node] {
        sim::Random mine(seed, "sender " + std::to_string(node));
        Context& context = contexts[static_cast<std::size_t>(2 * node)];
        for (int i = 0; i < kEach * nodes; ++i) {
          const Address to{i % nodes, 1};  // the receiver's context is the second of each node
          auto bytes = bytes_of(1 + mine.below(64), i + 1000 * node);
          context.core().spend(static_cast<int>(mine.below(60)));
          context.send(to, bytes);
          sent[{context.address(), to}].push_back(std::move(bytes));
        }
        context.flush();
      });
      bench.simulation.spawn("receiver", [&, node] {
        sim::Random mine(seed, "receiver " + std::to_string(node));
        Context& context = contexts[static_cast<std::size_t>(2 * node + 1)];
        for (int i = 0; i < kEach * nodes; ++i) {
          auto message = *context.receive();
          context.core().spend(static_cast<int>(mine.below(90)));
          received[{message.from, context.address()}].push_back(std::move(message.payload));
        }
      });
    }
    bench.simulation.run();
    EXPECT_TRUE(bench.simulation.blocked().empty()) << "seed " << seed;
    EXPECT_TRUE(sent == received) << "seed " << seed;
  }
}

TEST(Mailbox, TheSameSeedGivesTheSameRoundTrips) {
  machine::MailboxCluster cluster = carvnet();
  cluster.interruptions = {{"tick", 20_us, 100_ns, 2_us}};
  cluster.page_walks = {0.05, 20, 56};
  const auto built = machine::build_mailbox_cluster(cluster);
  const auto cycles = [&](std::uint64_t seed) {
    return riscv_mailbox::run_ping_pong(built, {.iterations = 500, .seed = seed}).round_trip_cycles;
  };
  EXPECT_EQ(cycles(1), cycles(1));
  EXPECT_NE(cycles(1), cycles(2));
}

// Six pairs share one packetizer, link and mailbox memory each way; each of their links is free
// most of the time, so that nobody is much slower than alone.
TEST(Mailbox, SeveralPairsOfProcessesShareTheirNodes) {
  const auto cluster = machine::build_mailbox_cluster(carvnet());
  const auto result = riscv_mailbox::run_ping_pong(cluster, {.iterations = 200, .pairs = 6});
  ASSERT_EQ(result.round_trip_cycles.size(), 1200u);
  EXPECT_GE(*std::ranges::min_element(result.round_trip_cycles), 139);
  EXPECT_GT(*std::ranges::max_element(result.round_trip_cycles), 144);
  EXPECT_LT(*std::ranges::max_element(result.round_trip_cycles), 2 * 144);
}

TEST(PingPong, SaysWhatItCannotMeasure) {
  const auto cluster = machine::build_mailbox_cluster(carvnet());
  EXPECT_EQ(error_of([&] { riscv_mailbox::run_ping_pong(cluster, {.hops = 2}); }),
            "cluster 'carvnet': hops is 2; it must be 0 to 1 on this ring");
  EXPECT_EQ(error_of([&] { riscv_mailbox::run_ping_pong(cluster, {.pairs = 17}); }),
            "cluster 'carvnet': 17 programs would run on a node; it must have 1 to 16, by its "
            "cores and contexts");
  EXPECT_EQ(error_of([&] { riscv_mailbox::run_ping_pong(cluster, {.size_bytes = 65}); }),
            "a packet carries 65 bytes; it must carry 1 to 64");
}

TEST(MailboxSession, SendsAndReceivesCallByCall) {
  riscv_mailbox::MailboxSession session(machine::build_mailbox_cluster(carvnet()));
  Context& one = session.open(0, 0);
  Context& other = session.open(1, 0);
  session.send(one, other.address(), bytes_of(32));
  EXPECT_EQ(session.now(), 180_ns);
  EXPECT_EQ(session.receive(other, 1_ms)->payload, bytes_of(32));
  EXPECT_FALSE(session.try_receive(other).has_value());
  EXPECT_FALSE(session.receive(other, 1_us).has_value());
}

TEST(MailboxSession, AReceiveThatNothingCanEndSaysSo) {
  riscv_mailbox::MailboxSession session(machine::build_mailbox_cluster(carvnet()));
  Context& one = session.open(0, 0);
  EXPECT_EQ(error_of([&] { session.receive(one, Time::max()); }),
            "receive cannot end: no event is left, and its mailbox is empty");
  EXPECT_EQ(error_of([&] { session.flush(one); }), "nothing was thrown");
}

TEST(MailboxSession, ASendThatNothingCanEndSaysSoAndGoesLater) {
  riscv_mailbox::MailboxSession session(machine::build_mailbox_cluster(carvnet()));
  Context& one = session.open(0, 0);
  Context& other = session.open(1, 0);
  for (int i = 0; i < 12; ++i) session.send(one, other.address(), bytes_of(8, i));
  EXPECT_EQ(error_of([&] { session.send(one, other.address(), bytes_of(8, 12)); }),
            "send cannot end: no event is left, and the mailbox of its target is full");
  for (int i = 0; i < 13; ++i) {
    EXPECT_EQ(session.receive(other, 1_ms)->payload, bytes_of(8, i)) << i;
  }
}

}  // namespace
}  // namespace towpath::mailbox
