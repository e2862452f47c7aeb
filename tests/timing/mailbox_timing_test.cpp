// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>

#include "mailbox_bench.hpp"
#include "towpath/riscv_mailbox/context.hpp"
#include "towpath/riscv_mailbox/ping_pong.hpp"

// Figures by which times can be told by hand: a cycle is 10 ns, a packet is formed in 2 of them, a
// hop takes 20, and a packet is seen 4 cycles after its header. 48 bytes, a header and 32 bytes of
// payload, take 38.4 ns on the wire.

namespace towpath::mailbox {
namespace {
using namespace literals;
using riscv_mailbox::Context;

// Becomes true at `when`, not a picosecond before.
void expect_at(RingBench& bench, Time when, const std::function<bool()>& holds) {
  bench.simulation.run_until(when - 1_ps);
  EXPECT_FALSE(holds()) << "before " << when.ps() << " ps";
  bench.simulation.run_until(when);
  EXPECT_TRUE(holds()) << "at " << when.ps() << " ps";
}

bool is_seen(const RingBench& bench, Address mailbox) {
  const auto from = bench.interconnect.visible_from(mailbox);
  return from.has_value() && *from <= bench.simulation.now();
}

TEST(MailboxTiming, APacketIsSeenFourCyclesAfterItsHeader) {
  RingBench bench(carvnet());
  const Address from = bench.interconnect.open(0, 0), to = bench.interconnect.open(1, 0);
  bench.interconnect.submit(from, to, bytes_of(32));
  expect_at(bench, 260_ns, [&] { return is_seen(bench, to); });  // 20 + 200 + 40
}

// 80 bytes are 64 ns behind the header: on the seventh edge.
TEST(MailboxTiming, ALargePacketIsSeenWhenItIsThereAsAWhole) {
  RingBench bench(carvnet());
  const Address from = bench.interconnect.open(0, 0), to = bench.interconnect.open(1, 0);
  bench.interconnect.submit(from, to, bytes_of(64));
  expect_at(bench, 290_ns, [&] { return is_seen(bench, to); });
}

TEST(MailboxTiming, AnAcknowledgementIsBackAfterTwoTraverses) {
  RingBench bench(carvnet());
  const Address from = bench.interconnect.open(0, 0), to = bench.interconnect.open(1, 0);
  bench.interconnect.submit(from, to, bytes_of(32));
  expect_at(bench, 420_ns, [&] { return bench.interconnect.notices(from).acknowledged == 1; });
}

TEST(MailboxTiming, EachHopIsATraverseMore) {
  for (const auto& [node, hops] : {std::pair(1, 1), {2, 2}, {3, 3}, {4, 2}, {5, 1}, {0, 0}}) {
    RingBench bench(carvnet(6));
    const Address from = bench.interconnect.open(0, 0), to = bench.interconnect.open(node, 0);
    bench.interconnect.submit(from, to, bytes_of(32));
    expect_at(bench, 60_ns + 200_ns * hops, [&] { return is_seen(bench, to); });
  }
}

// Packets are formed one after the other, whichever context they are from; the wire is free again.
TEST(MailboxTiming, ThePacketizerFormsOnePacketAtATime) {
  RingBench bench(carvnet());
  const Address one = bench.interconnect.open(0, 0), other = bench.interconnect.open(0, 0);
  const Address to = bench.interconnect.open(1, 0), second = bench.interconnect.open(1, 0);
  bench.interconnect.submit(one, to, bytes_of(8));
  bench.interconnect.submit(other, second, bytes_of(8));
  expect_at(bench, 260_ns, [&] { return is_seen(bench, to); });
  expect_at(bench, 280_ns, [&] { return is_seen(bench, second); });
}

// The first has 80 bytes: 64 ns on the wire from 20 ns on, while the second is formed at 40 ns.
TEST(MailboxTiming, APacketWaitsForTheWire) {
  RingBench bench(carvnet());
  const Address one = bench.interconnect.open(0, 0), other = bench.interconnect.open(0, 0);
  const Address to = bench.interconnect.open(1, 0), second = bench.interconnect.open(1, 0);
  bench.interconnect.submit(one, to, bytes_of(64));
  bench.interconnect.submit(other, second, bytes_of(8));
  expect_at(bench, 330_ns, [&] { return is_seen(bench, second); });  // 84 + 200, edge 290, + 40
}

// What waits before a full mailbox is seen 4 cycles after there is room.
TEST(MailboxTiming, AWaitingPacketEntersWhenOneIsReleased) {
  machine::MailboxCluster narrow = carvnet();
  narrow.mailbox.depth_packets = 1;
  RingBench bench(narrow);
  const Address from = bench.interconnect.open(0, 0), to = bench.interconnect.open(1, 0);
  bench.interconnect.submit(from, to, bytes_of(8, 1));
  bench.interconnect.submit(from, to, bytes_of(8, 2));
  bench.simulation.run_until(1000_ns);
  EXPECT_EQ(bench.interconnect.notices(from).acknowledged, 1u);
  bench.interconnect.release(to);
  expect_at(bench, 1040_ns, [&] { return is_seen(bench, to); });
  expect_at(bench, 1200_ns, [&] { return bench.interconnect.notices(from).acknowledged == 2; });
}

TEST(MailboxTiming, ASendTakesItsCallAndAStorePerWordAndDescriptor) {
  for (const auto& [size, cycles] : {std::pair(1, 15), {8, 15}, {9, 16}, {32, 18}, {64, 22}}) {
    RingBench bench(carvnet());
    Core core(bench.simulation, bench.interconnect.cluster(), "core");
    Context context(bench.interconnect, core, {.node = 0});
    const Address to = bench.interconnect.open(1, 0);
    Time end;
    bench.simulation.spawn("sender", [&] {
      context.send(to, bytes_of(static_cast<std::size_t>(size)));
      end = bench.simulation.now();
    });
    bench.simulation.run();
    EXPECT_EQ(end, 10_ns * cycles) << size << " bytes";
  }
}

// The second packet waits for the first acknowledgement, 420 ns after its submission at 150 ns.
TEST(MailboxTiming, AContextWaitsForRoomInThePacketizer) {
  machine::MailboxCluster narrow = carvnet();
  narrow.packetizer.packets_unacknowledged_max = 1;
  RingBench bench(narrow);
  Core core(bench.simulation, bench.interconnect.cluster(), "core");
  Context context(bench.interconnect, core, {.node = 0});
  const Address to = bench.interconnect.open(1, 0);
  std::vector<std::int64_t> ends_ns;
  bench.simulation.spawn("sender", [&] {
    for (int i = 0; i < 3; ++i) {
      context.send(to, bytes_of(8));
      ends_ns.push_back(bench.simulation.now().ps() / 1000);
    }
  });
  bench.simulation.run();
  EXPECT_EQ(ends_ns, (std::vector<std::int64_t>{150, 590, 1030}));
}

// Polls end at 170 ns and every 50 ns; a packet that is seen from 260 ns on is polled at 270, and
// its word read by 270 + 50 + 20.
TEST(MailboxTiming, AReceiveEndsAfterTheFirstPollThatSeesTheMessage) {
  for (int phase = 0; phase < 5; ++phase) {
    RingBench bench(carvnet());
    Core core(bench.simulation, bench.interconnect.cluster(), "core");
    Context context(bench.interconnect, core, {.node = 1});
    const Address from = bench.interconnect.open(0, 0);
    Time end;
    bench.simulation.spawn("receiver", [&] {
      core.spend(phase);
      context.receive();
      end = bench.simulation.now();
    });
    bench.interconnect.submit(from, context.address(), bytes_of(8));
    bench.simulation.run();
    const Time polled = phase == 4 ? 260_ns : 270_ns + 10_ns * phase;
    EXPECT_EQ(end, polled + 70_ns) << "phase " << phase;
  }
}

TEST(MailboxTiming, ATryReceiveThatSeesNothingTakesItsCallAndOneLoad) {
  RingBench bench(carvnet());
  Core core(bench.simulation, bench.interconnect.cluster(), "core");
  Context context(bench.interconnect, core, {.node = 0});
  bench.simulation.spawn("receiver", [&] {
    EXPECT_FALSE(context.try_receive().has_value());
    EXPECT_EQ(bench.simulation.now(), 170_ns);
    EXPECT_FALSE(context.receive(1000_ns).has_value());
    EXPECT_EQ(bench.simulation.now(), 1040_ns);  // polls end at 340 ns and every 50 ns
  });
  bench.simulation.run();
  EXPECT_EQ(bench.simulation.now(), 1040_ns);
}

// --- the published measurement

// The document's breakdown, in the phase in which it was captured.
TEST(MailboxTiming, TheBreakdownIsThePublishedOne) {
  const auto cluster = machine::build_mailbox_cluster(carvnet());
  std::map<std::pair<int, std::string>, std::int64_t> cycle_of;
  for (const auto& one : riscv_mailbox::ping_pong_breakdown(cluster, {.phase_cycles = 2})) {
    cycle_of[{one.node, one.event}] = one.cycle.count();  // the last, where there are several
  }
  EXPECT_EQ((cycle_of[{0, "header leaves"}]), 7);
  EXPECT_EQ((cycle_of[{0, "first poll"}]), 22);
  EXPECT_EQ((cycle_of[{1, "header arrives"}]), 27);
  EXPECT_EQ((cycle_of[{0, "acknowledgement arrives"}]), 47);
  EXPECT_EQ((cycle_of[{1, "header leaves"}]), 79);
  EXPECT_EQ((cycle_of[{0, "header arrives"}]), 99);
  EXPECT_EQ((cycle_of[{0, "poll sees the message"}]), 107);
  EXPECT_EQ((cycle_of[{0, "last word read"}]), 129);
  EXPECT_EQ((cycle_of[{0, "first store"}]), 144);
}

TEST(MailboxTiming, ARoundTripTakesAsLongInEveryPhaseOfThePolls) {
  const auto cluster = machine::build_mailbox_cluster(carvnet());
  for (int phase = 0; phase < 5; ++phase) {
    const auto cycles =
        riscv_mailbox::run_ping_pong(cluster, {.phase_cycles = phase}).round_trip_cycles;
    EXPECT_EQ(std::vector<std::int64_t>(cycles.begin() + 2, cycles.end()),
              std::vector<std::int64_t>(998, 144));
  }
}

// A hop is 20 cycles each way; in phases of 5 cycles, that is 40 more.
TEST(MailboxTiming, HopsAndPollsMoveTheRoundTrip) {
  const auto settled = [](const machine::MailboxCluster& cluster, int hops) {
    return riscv_mailbox::run_ping_pong(machine::build_mailbox_cluster(cluster), {.hops = hops})
        .round_trip_cycles.back();
  };
  EXPECT_EQ(settled(carvnet(8), 1), 144);
  EXPECT_EQ(settled(carvnet(8), 2), 184);
  EXPECT_EQ(settled(carvnet(8), 4), 264);
  machine::MailboxCluster slower = carvnet(8);
  slower.software.poll_cycles = 50;
  EXPECT_EQ(settled(slower, 1), 159);  // the answer is seen at 22 + 2 x 50, read 37 later
}

TEST(MailboxTiming, AnInterruptionLengthensTheWorkItFallsInto) {
  machine::MailboxCluster cluster = carvnet();
  cluster.interruptions = {{"tick", 1_us, 500_ns, 500_ns}};
  RingBench bench(cluster);
  Core core(bench.simulation, bench.interconnect.cluster(), "core");
  const Cycles calm = core.end_of(Cycles(0), 1);  // the first comes later than this
  ASSERT_EQ(calm, Cycles(1));
  Cycles begin(1);
  std::int64_t interruptions = 0;
  for (int i = 0; i < 2000; ++i) {
    const Cycles end = core.end_of(begin, 1);
    const std::int64_t extra = (end - begin).count() - 1;
    EXPECT_EQ(extra % 50, 0);
    interruptions += extra / 50;
    begin = end;
  }
  EXPECT_NEAR(static_cast<double>(interruptions), 20, 15);  // every 100 cycles of work
  core.set_interruptible(false);
  EXPECT_EQ(core.end_of(begin, 100'000), begin + Cycles(100'000));
}

}  // namespace
}  // namespace towpath::mailbox
