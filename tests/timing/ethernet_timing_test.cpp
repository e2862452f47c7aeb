// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "ethernet_bench.hpp"

// Parameters for times by hand: a command holds its queue for 56 ns and its bytes at
// 128 GB/s; a byte takes 80 ps on the wire and a frame has 50 more of them, so 16 B take 5.28 ns
// and 1500 B 124 ns, and once more at the far end; then 440 ns.

namespace towpath::ethernet {
namespace {
using namespace literals;

// Becomes true at `when`, not a picosecond before.
void expect_at(PortPair& pair, Time when, const std::function<bool()>& holds) {
  pair.simulation.run_until(when - 1_ps);
  EXPECT_FALSE(holds()) << "before " << when.ps() << " ps";
  pair.simulation.run_until(when);
  EXPECT_TRUE(holds()) << "at " << when.ps() << " ps";
}

// 1,050 bytes at 12.5 GB/s, and once checked at 80; the next frame, of 550 bytes, comes 44 ns
// later.
TEST(EthernetTiming, AFrameIsHandedOnAtTheRateOfDelivery) {
  machine::EthernetParameters figures = plain_figures();
  figures.delivery_rate = 80_GBps;
  figures.frame_payload_bytes_max = 1000;
  PortPair pair(figures);
  pair.a.send(0, write_of(0, 0, 1504));
  pair.simulation.run();
  ASSERT_EQ(pair.memory_b.writes.size(), 2u);
  EXPECT_EQ(pair.memory_b.writes[0].at, 84_ns + Time::from_ps(13'125) + figures.path_time);
  EXPECT_EQ(pair.memory_b.writes[1].at, 84_ns + Time::from_ps(44'320 + 6'925) + figures.path_time);
}

TEST(EthernetTiming, AQueueIsFreeWhenItsCommandHasBeenFetched) {
  PortPair pair(plain_figures());
  const auto is_free = [&] { return !pair.a.is_busy(0); };
  EXPECT_TRUE(is_free());
  pair.a.send(0, write_of(0, 0, 16));
  EXPECT_FALSE(pair.a.is_busy(1));
  expect_at(pair, 56'125_ps, is_free);  // 56 ns + 16 B / 128 GB/s
  pair.a.send(0, write_of(0, 0, 8192));
  expect_at(pair, 176'125_ps, is_free);  // 56 ns + 64 ns later
}

// The second command would be fetched after 240 ns, but the first has 8192 + 6 x 50 bytes on the
// wire: 679.36 ns.
TEST(EthernetTiming, AQueueOfTwoCommandsIsFreeWhenTheFirstIsOnTheWire) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 8192));
  pair.simulation.run_until(120_ns);
  pair.a.send(0, write_of(0, 0, 8192));
  expect_at(pair, 679'360_ps, [&] { return !pair.a.is_busy(0); });
}

TEST(EthernetTiming, AProcessIsWokenWhenTheQueueIsFree) {
  PortPair pair(plain_figures());
  Time woken;
  pair.a.send(0, write_of(0, 0, 16));
  pair.simulation.spawn("sender", [&] {
    pair.wait_until_free(pair.a, 0);
    woken = pair.simulation.now();
  });
  pair.simulation.run();
  EXPECT_EQ(woken, 56'125_ps);
}

// Software that looks at exactly that time sees it, in whichever order both were scheduled.
TEST(EthernetTiming, AProcessThatLooksAtTheTimeSeesTheQueueFree) {
  PortPair pair(plain_figures());
  bool is_busy = true;
  pair.simulation.spawn("sender", [&] {
    pair.simulation.sleep(56'125_ps);
    is_busy = pair.a.is_busy(0);
  });
  pair.simulation.spawn("other sender", [&] { pair.a.send(0, write_of(0, 0, 16)); });
  pair.simulation.run();
  EXPECT_FALSE(is_busy);
}

TEST(EthernetTiming, AFrameIsVisibleAfterTheWireTheFarEndAndThePath) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 16));
  expect_at(pair, 450'560_ps, [&] { return pair.memory_b.writes.size() == 1; });  // 2 x 5.28 + 440
}

// 1500 and 548 bytes: 124 and 47.84 ns on the wire. The far end hands on the first from 124 to 248,
// the second after it, not at 171.84.
TEST(EthernetTiming, FramesPassTheFarEndOneAfterTheOther) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 2048));
  expect_at(pair, 688'000_ps, [&] { return pair.memory_b.writes.size() == 1; });
  expect_at(pair, 735'840_ps, [&] { return pair.memory_b.writes.size() == 2; });
}

// A register travels as a word.
TEST(EthernetTiming, ARegisterIsWrittenLikeTheShortestFrame) {
  PortPair pair(plain_figures());
  pair.a.send(0, {.kind = Command::Kind::register_write, .destination = 0x60, .value = 7});
  expect_at(pair, 56'000_ps, [&] { return !pair.a.is_busy(0); });
  expect_at(pair, 450'560_ps, [&] { return pair.memory_b.registers[0x60] == 7; });
}

// The command on queue 1 goes after the frame that is on the wire: 124 + 5.28 ns; it passes the far
// end behind that frame, from 248 ns on. Queue 0 has 4096 + 3 x 50 bytes: 339.68 ns, and the word
// between.
TEST(EthernetTiming, AShortCommandOvertakesALongOneOfTheOtherQueue) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 4096));
  pair.a.send(1, write_of(0x8000, 0x8000, 16));
  pair.simulation.run();
  const std::vector<PlainMemory::Write> expected = {
      {688'000_ps, 0, 1500},     // 124 + 124 + 440
      {693'280_ps, 0x8000, 16},  // 248 + 5.28 + 440
      {817'280_ps, 1500, 1500},  // on the wire until 253.28; 124 more, and 440
      {908'960_ps, 3000, 1096},  // 377.28 + 91.68 + 440
  };
  EXPECT_EQ(pair.memory_b.writes, expected);
}

// Visible after 450.56 ns; 440 + 5.28 ns back.
TEST(EthernetTiming, ASourceIsReleasedWhenTheAcknowledgementIsBack) {
  PortPair pair(plain_figures());
  const CommandNumber command = pair.a.send(0, write_of(0x40, 0, 16));
  EXPECT_TRUE(pair.memory_a.is_held(command));
  EXPECT_EQ(pair.memory_a.held[command], (PlainMemory::Write{0_ps, 0x40, 16}));
  expect_at(pair, 895'840_ps, [&] { return !pair.memory_a.is_held(command); });
  EXPECT_TRUE(pair.a.is_idle());
}

// With a window of one frame, the second goes when the first is acknowledged: 688 + 445.28 ns.
TEST(EthernetTiming, AFullWindowWaitsForTheFirstAcknowledgement) {
  machine::EthernetParameters narrow = plain_figures();
  narrow.frames_unacknowledged_max = 1;
  PortPair pair(narrow);
  pair.a.send(0, write_of(0, 0, 2048));
  expect_at(pair, 1'133'280_ps, [&] { return pair.a.counters().frames_sent == 2; });
}

// A window of nine frames of 124 ns is full at 1116 ns, when the first acknowledgement, which frees
// a place at 1133.28 ns, is on its way already.
TEST(EthernetTiming, AWindowThatFillsLateWaitsForTheAcknowledgementOnItsWay) {
  machine::EthernetParameters narrow = plain_figures();
  narrow.frames_unacknowledged_max = 9;
  PortPair pair(narrow);
  pair.a.send(0, write_of(0, 0, 16384));
  expect_at(pair, 1'133'280_ps, [&] { return pair.a.counters().frames_sent == 10; });
}

// Acknowledgements cover all frames before: when that of the first command is lost, its source is
// released by that of the next frame: on the wire until 129.28 ns, past the far end at 253.28,
// there at 693.28, back 445.28 ns later.
TEST(EthernetTiming, ALaterAcknowledgementReleasesASourceToo) {
  bool is_found = false;
  for (std::uint64_t seed = 1; seed < 1000 && !is_found; ++seed) {
    PortPair pair(plain_figures(), {.frame_loss = 0.3}, seed);
    const CommandNumber command = pair.a.send(0, write_of(0, 0, 16));
    pair.a.send(1, write_of(0, 0, 4096));
    pair.simulation.run_until(895'840_ps);
    if (pair.a.counters().frames_lost > 0 || !pair.memory_a.is_held(command)) continue;
    pair.simulation.run_until(1'138'559_ps);
    EXPECT_TRUE(pair.memory_a.is_held(command));
    pair.simulation.run_until(1'138'560_ps);
    is_found = !pair.memory_a.is_held(command);
  }
  EXPECT_TRUE(is_found);
}

// Frames read their bytes when they go onto the wire: the second one at 124 ns.
TEST(EthernetTiming, AFrameIsReadWhenItGoesOntoTheWire) {
  PortPair pair(plain_figures());
  pair.a.send(0, write_of(0, 0, 4096));
  pair.simulation.run_until(123'999_ps);
  std::fill_n(pair.memory_a.bytes.begin(), 3000, std::byte{1});
  pair.simulation.run_until(124'000_ps);
  std::fill_n(pair.memory_a.bytes.begin(), 3000, std::byte{2});
  pair.simulation.run();
  EXPECT_EQ(pair.memory_b.bytes[0], std::byte{0});
  EXPECT_EQ(pair.memory_b.bytes[1499], std::byte{0});
  EXPECT_EQ(pair.memory_b.bytes[1500], std::byte{1});
  EXPECT_EQ(pair.memory_b.bytes[2999], std::byte{1});
}

// 5.28 ns on the wire and 20 us of timeout, when it is the first frame that is lost.
TEST(EthernetTiming, ALostFrameIsSentAgainAfterTheTimeout) {
  bool was_lost = false;
  for (std::uint64_t seed = 1; seed <= 100 && !was_lost; ++seed) {
    PortPair pair(plain_figures(), {.frame_loss = 0.5}, seed);
    pair.a.send(0, write_of(0, 0, 16));
    if (pair.a.counters().frames_lost == 0) continue;
    pair.memory_a.bytes[0] = std::byte{9};
    expect_at(pair, 20'005'280_ps, [&] { return pair.a.counters().frames_resent == 1; });
    pair.simulation.run();
    EXPECT_EQ(pair.memory_b.bytes[0], std::byte{9});  // read again
    was_lost = true;
  }
  EXPECT_TRUE(was_lost);
}

TEST(EthernetTiming, AFrameIsLostWhenTheLinkDropsBeforeItsLastByte) {
  for (const Time drop_at : {5'279_ps, 5'280_ps}) {
    PortPair pair(plain_figures(), {.drop_at = drop_at});
    pair.a.send(0, write_of(0, 0, 16));
    pair.simulation.run();
    EXPECT_EQ(pair.memory_b.writes.size(), drop_at == 5'280_ps ? 1u : 0u);
    EXPECT_EQ(pair.a.counters().frames_lost, drop_at == 5'280_ps ? 0u : 1u);
  }
}

// Up again training_time after the later of: either end's call, the line being alive.
TEST(EthernetTiming, ALinkIsUpWhenBothEndsHaveTrainedIt) {
  struct Case {
    Time ready_a;
    Time ready_b;
    Time up;
  };
  for (const Case& c : {Case{2_us, 15_us, 25_us}, Case{15_us, 2_us, 25_us},
                        Case{2_us, 3_us, 21_us}}) {  // dead until 11 us
    PortPair pair(plain_figures(), {.drop_at = 1_us, .dead_time = 10_us});
    pair.simulation.spawn("core A", [&] {
      pair.simulation.sleep(c.ready_a);
      pair.a.run_routing();
    });
    pair.simulation.spawn("core B", [&] {
      pair.simulation.sleep(c.ready_b);
      for (int i = 0; i < 10; ++i) {  // the first call counts
        pair.b.run_routing();
        pair.simulation.sleep(1_us);
      }
    });
    pair.simulation.run_until(1_us);
    EXPECT_FALSE(pair.a.is_link_up());
    pair.a.send(0, write_of(0, 0, 16));
    expect_at(pair, c.up, [&] { return pair.a.is_link_up(); });
    EXPECT_EQ(pair.link.down_time(), c.up - 1_us);
    expect_at(pair, c.up + 450'560_ps, [&] { return pair.memory_b.writes.size() == 1; });
  }
}

TEST(EthernetTiming, ALinkIsTrainedForAsLongAsItsFaultsSay) {
  PortPair pair(plain_figures(), {.drop_at = 1_us, .training_time = 3_us});
  pair.answer_routing();
  pair.simulation.run_until(1_us - 1_ps);
  EXPECT_TRUE(pair.link.is_up());
  pair.simulation.run_until(1_us);
  EXPECT_FALSE(pair.link.is_up());
  expect_at(pair, 4_us, [&] { return pair.link.is_up(); });
}

// Up from 104 us on and used, so it drops at 200 us.
TEST(EthernetTiming, AUsedLinkDropsAgainAfterThePeriod) {
  PortPair pair(plain_figures(), {.drop_at = 100_us, .drop_period = 100_us, .training_time = 4_us});
  pair.answer_routing();
  pair.simulation.run_until(150_us);
  pair.a.send(0, write_of(0, 0, 16));
  expect_at(pair, 200_us, [&] { return !pair.link.is_up(); });
}

}  // namespace
}  // namespace towpath::ethernet
