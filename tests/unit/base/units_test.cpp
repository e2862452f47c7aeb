// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/base/units.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"

namespace towpath {
namespace {
using namespace literals;

TEST(Time, ConvertsBetweenUnits) {
  EXPECT_EQ(5_ns, Time::from_ps(5'000));
  EXPECT_EQ(Time::from_ns(1.5), 1500_ps);
  EXPECT_DOUBLE_EQ((2_us).ns(), 2000.0);
}

TEST(TransferTime, IsNeverZeroForAByte) { EXPECT_EQ(transfer_time(1_B, 5000_GBps), 1_ps); }

TEST(TransferTime, Of64BytesAt100GigabytesPerSecondIs640Picoseconds) {
  EXPECT_EQ(transfer_time(64_B, 100_GBps), 640_ps);
}

TEST(TransferTime, NeedsAPositiveRate) {
  EXPECT_THROW(transfer_time(1_B, Rate()), InvariantError);
  EXPECT_THROW(transfer_time(0_B, Rate::from_bytes_per_second(-1)), InvariantError);
}

TEST(Index, IsThePlaceInAContainer) {
  const std::vector<int> values = {3, 5, 7};
  EXPECT_EQ(values[index(2)], 7);
}

TEST(TransferTime, DoesNotOverflowForATerabyte) {
  EXPECT_EQ(transfer_time(Bytes(1'000'000'000'000), 1_GBps), 1000_s);
}

TEST(Frequency, RoundsOnceFromTheOrigin) {
  // 3 GHz: 3e9 cycles are exactly one second, although one period is 333.3 ps.
  const Frequency clock = Frequency::from_hz(3'000'000'000);
  EXPECT_EQ(clock.time_of(Cycles(1)), 334_ps);
  EXPECT_EQ(clock.time_of(Cycles(3'000'000'000)), 1_s);
}

TEST(Frequency, CycleAtIsTheFirstEdgeNotBefore) {
  const Frequency clock = Frequency::from_hz(3'000'000'000);
  EXPECT_EQ(clock.cycle_at(334_ps), Cycles(1));
  EXPECT_EQ(clock.cycle_at(335_ps), Cycles(2));
  EXPECT_EQ(clock.cycle_at(0_ps), Cycles(0));
}

}  // namespace
}  // namespace towpath
