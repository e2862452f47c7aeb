// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "towpath/sim/clock.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/sim/timer.hpp"

namespace towpath::sim {
namespace {
using namespace literals;

void increment(void* context) { ++*static_cast<int*>(context); }

TEST(TimerTiming, FiresAtItsTimeAndNotAPicosecondBefore) {
  Simulation simulation;
  Timer timer;
  int count = 0;
  timer.arm(simulation, 100_ns, &increment, &count);
  simulation.run_until(Time::from_ps(99'999));
  EXPECT_EQ(count, 0);
  simulation.run_until(Time::from_ps(100'000));
  EXPECT_EQ(count, 1);
}

TEST(ProcessTiming, WakesAtItsTimeAndNotAPicosecondBefore) {
  Simulation simulation;
  bool is_awake = false;
  simulation.spawn("sleeper", [&] {
    simulation.sleep(1_ns);
    simulation.sleep(41_ns);
    is_awake = true;
  });
  simulation.run_until(Time::from_ps(41'999));
  EXPECT_FALSE(is_awake);
  simulation.run_until(Time::from_ps(42'000));
  EXPECT_TRUE(is_awake);
}

// 1.35 GHz: a cycle is 740.74.. ps. Cycle 27 is at 20,000 ps exactly, cycle 1 at 741, cycle 28 at
// 20,000 + 741. 27 periods rounded up to 741 ps would be 20,007 ps.
TEST(ClockTiming, DoesNotAddUpARoundedPeriod) {
  const Clock clock(Frequency::from_mhz(1350));
  EXPECT_EQ(clock.edge(Cycles(1)), 741_ps);
  EXPECT_EQ(clock.edge(Cycles(27)), 20'000_ps);
  EXPECT_EQ(clock.edge(Cycles(28)), 20'741_ps);
  EXPECT_EQ(clock.edge(Cycles(1'350'000'000)), 1_s);
}

TEST(ClockTiming, NextEdgeIsTheFirstOneNotBefore) {
  const Clock clock(Frequency::from_mhz(1350));
  EXPECT_EQ(clock.next_edge(0_ps), 0_ps);
  EXPECT_EQ(clock.next_edge(1_ps), 741_ps);
  EXPECT_EQ(clock.next_edge(741_ps), 741_ps);
  EXPECT_EQ(clock.next_edge(742_ps), 1'482_ps);
  EXPECT_EQ(clock.edge_after(742_ps, Cycles(25)), 20'000_ps);
}

}  // namespace
}  // namespace towpath::sim
