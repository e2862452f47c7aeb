// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/clock.hpp"

#include <gtest/gtest.h>

#include "towpath/base/invariant.hpp"

namespace towpath::sim {
namespace {
using namespace literals;

TEST(Clock, CountsFromItsOrigin) {
  const Clock clock(Frequency::from_mhz(1000), 250_ps);
  EXPECT_EQ(clock.edge(Cycles(0)), 250_ps);
  EXPECT_EQ(clock.edge(Cycles(3)), 3'250_ps);
  EXPECT_EQ(clock.next_edge(251_ps), 1'250_ps);
}

TEST(Clock, HasNoEdgeBeforeItsOrigin) {
  const Clock clock(Frequency::from_mhz(1000), 10_ns);
  EXPECT_EQ(clock.cycle_at(0_ns), Cycles(0));
  EXPECT_EQ(clock.next_edge(0_ns), 10_ns);
}

TEST(Clock, CountsTheEdgesBetweenTwoTimes) {
  const Clock clock(Frequency::from_mhz(1000));
  EXPECT_EQ(clock.cycles_until(0_ps, 3_ns), Cycles(3));
  EXPECT_EQ(clock.cycles_until(1_ps, 3_ns), Cycles(2));
  EXPECT_EQ(clock.cycles_until(1_ps, 999_ps), Cycles(0));
}

TEST(Clock, FindsEveryEdgeAgain) {
  for (const std::int64_t hz : {1'350'000'000ll, 2'999'999'999ll, 32'768ll, 7ll}) {
    const Clock clock(Frequency::from_hz(hz), 17_ps);
    for (std::int64_t i = 0; i < 1'000; ++i) {
      const Cycles cycle(i * i * 31);
      ASSERT_EQ(clock.cycle_at(clock.edge(cycle)), cycle);
      ASSERT_EQ(clock.cycle_at(clock.edge(cycle) + 1_ps), cycle + Cycles(1));
    }
  }
}

TEST(Clock, RefusesAFrequencyThatIsNotPositive) {
  EXPECT_THROW(Clock(Frequency::from_hz(0)), InvariantError);
}

}  // namespace
}  // namespace towpath::sim
