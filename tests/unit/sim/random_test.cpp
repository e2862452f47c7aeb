// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "towpath/base/invariant.hpp"

namespace towpath::sim {
namespace {
using namespace literals;

TEST(Random, RepeatsForTheSameSeedAndStream) {
  Random first(5, "link"), second(5, "link");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(first.bits(), second.bits());
}

// The values of x86-64 with glibc, where bits() from the state {1, 2, 3, 4} also gave the sequence
// of the published xoshiro256**: 11520, 0, 1509978240, 1215971899390074240.
TEST(Random, GivesTheSameNumbersOnEveryPlatform) {
  Random random(1, "towpath");
  EXPECT_EQ(random.bits(), 0xa1bdb70d44716858u);
  EXPECT_EQ(random.bits(), 0x7bbb64f66a4dad14u);
  EXPECT_EQ(random.bits(), 0xe6f66dba10062f51u);
  EXPECT_EQ(random.exponential(), 0x1.609aef82feb62p-2);
  EXPECT_EQ(random.exponential(), 0x1.3fd9255131673p+0);
}

TEST(Random, DiffersBetweenSeedsAndBetweenStreams) {
  Random random(5, "link 0"), other_seed(6, "link 0"), other_stream(5, "link 1");
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t bits = random.bits();
    equal += bits == other_seed.bits();
    equal += bits == other_stream.bits();
  }
  EXPECT_EQ(equal, 0);
}

TEST(Random, BelowReachesEveryValueEquallyOften) {
  Random random(1, "dice");
  std::array<int, 6> counts{};
  constexpr int kDraws = 60'000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(6));
  // Standard deviation 91; 500 is more than five of them.
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 6, 500);
}

// With remainders of 64 bits, a bound of 3 * 2^62 would give the lowest third twice as often.
TEST(Random, BelowHasNoBiasAtLargeBounds) {
  Random random(1, "large");
  const std::uint64_t bound = std::uint64_t{3} << 62;
  int low = 0;
  constexpr int kDraws = 30'000;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t value = random.below(bound);
    ASSERT_LT(value, bound);
    low += value < bound / 3;
  }
  EXPECT_NEAR(low, kDraws / 3, 450);
}

TEST(Random, BetweenIncludesBothEnds) {
  Random random(1, "between");
  bool has_first = false, has_last = false;
  for (int i = 0; i < 1'000; ++i) {
    const std::int64_t value = random.between(-2, 2);
    ASSERT_GE(value, -2);
    ASSERT_LE(value, 2);
    has_first |= value == -2;
    has_last |= value == 2;
  }
  EXPECT_TRUE(has_first && has_last);
  random.between(INT64_MIN, INT64_MAX);
}

TEST(Random, RefusesAnEmptyRange) {
  Random random(1, "empty");
  EXPECT_THROW(random.below(0), InvariantError);
  EXPECT_THROW(random.between(1, 0), InvariantError);
}

TEST(Random, UniformIsEvenOverTheUnitInterval) {
  Random random(1, "uniform");
  double sum = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);  // standard error 0.0009
}

TEST(Random, ExponentialHasTheShapeOfItsDistribution) {
  Random random(1, "exponential");
  constexpr int kDraws = 200'000;
  double sum = 0;
  std::array<int, 4> above{};
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.exponential();
    sum += value;
    for (std::size_t j = 0; j < above.size(); ++j) above[j] += value > 0.5 * (1.0 + double(j));
  }
  EXPECT_NEAR(sum / kDraws, 1.0, 0.012);  // standard error 0.0022
  for (std::size_t j = 0; j < above.size(); ++j) {
    EXPECT_NEAR(double(above[j]) / kDraws, std::exp(-0.5 * (1.0 + double(j))), 0.006);
  }
}

TEST(Random, ExponentialTimeHasItsMean) {
  Random random(1, "time");
  constexpr int kDraws = 100'000;
  double sum_ns = 0;
  for (int i = 0; i < kDraws; ++i) sum_ns += random.exponential(40_ns).ns();
  EXPECT_NEAR(sum_ns / kDraws, 40, 0.7);
}

// 2^64 is not a multiple of the bound: scaled without another draw, multiples of 3 would come twice
// as often as other numbers.
TEST(Random, GivesAllNumbersBelowALargeBoundEquallyOften) {
  Random random(1, "a");
  std::array<int, 3> counts{};
  for (int i = 0; i < 30'000; ++i) ++counts[random.below(std::uint64_t{3} << 62) % 3];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

}  // namespace
}  // namespace towpath::sim
