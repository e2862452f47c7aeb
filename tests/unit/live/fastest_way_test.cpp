// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/fastest_way.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace towpath::live {
namespace {

using namespace literals;

using Times = std::array<Time, 3>;  // by way
using Counts = std::array<int, 3>;  // of calls, by way

// How many of so many calls go each way, where calls take the times that are given.
Counts ways_of(FastestWay& ways, int calls, const Times& times, std::uint64_t size = 1024,
               bool may_read = true) {
  Counts counts{};
  for (int i = 0; i < calls; ++i) {
    const FastestWay::Choice choice = ways.choose(Kind::broadcast, size, may_read);
    const auto way = static_cast<std::size_t>(choice.way);
    ++counts[way];
    if (choice.is_timed) ways.note(Kind::broadcast, size, choice.way, times[way]);
  }
  return counts;
}

// A call of this size uses the whole stage: one is not timed, and four are, of each way.
constexpr std::uint64_t kStageBytes = 1024;
constexpr int kTrials = 5;
constexpr int kFirstPeriod = 8 * kTrials;
constexpr int kPeriod = 256 * kTrials;

TEST(FastestWay, ItIsTakenButForAFewTrials) {
  const std::array<Times, 3> cases{Times{1_us, 2_us, 3_us}, Times{2_us, 1_us, 3_us},
                                   Times{3_us, 2_us, 1_us}};
  for (std::size_t fastest = 0; fastest < 3; ++fastest) {
    FastestWay ways(kStageBytes);
    ways_of(ways, kFirstPeriod, cases[fastest]);
    for (int i = 0; i < 2; ++i) {
      Counts expected{kTrials, kTrials, kTrials};
      expected[fastest] = kPeriod - 2 * kTrials;
      EXPECT_EQ(ways_of(ways, kPeriod, cases[fastest]), expected);
    }
  }
}

// Until the stage has been used once in the new way, times are those of the way before.
TEST(FastestWay, SmallCallsAreTimedOnceTheStageHasBeenUsed) {
  FastestWay ways(kStageBytes);
  const std::array<Way, 3> order{Way::staged, Way::read, Way::streamed};
  for (int i = 0; i < 3 * 16; ++i) {
    const FastestWay::Choice choice = ways.choose(Kind::broadcast, kStageBytes / 8, true);
    EXPECT_EQ(choice.way, order[static_cast<std::size_t>(i / 16)]);
    EXPECT_EQ(choice.is_timed, i % 16 >= 8);
    EXPECT_EQ(choice.is_whole, i % 16 == 11 || i % 16 == 15);
  }
}

TEST(FastestWay, LargeCallsAreTimedTwice) {
  FastestWay ways(kStageBytes);
  const std::uint64_t size = 100 * kStageBytes;
  EXPECT_EQ(ways_of(ways, 8 * 3, {2_us, 3_us, 1_us}, size), (Counts{3, 3, 18}));
}

// Of half a stage: two calls are not timed, and eight are.
constexpr std::uint64_t kHalfStage = kStageBytes / 2;
constexpr int kHalfTrials = 10;

// The expected way is used first, and five times as often before each other one is tried.
TEST(FastestWay, TheFirstCallsGoTheWayThatIsExpected) {
  for (const Way expected : {Way::staged, Way::streamed}) {
    FastestWay ways(kStageBytes);
    ways.expect(expected);
    const auto index = static_cast<std::size_t>(expected);
    const Times times = expected == Way::staged ? Times{1_us, 2_us, 3_us} : Times{3_us, 1_us, 2_us};
    const auto next = [&](int rounds) {
      return ways_of(ways, rounds * kHalfTrials, times, kHalfStage);
    };
    EXPECT_EQ(next(6)[index], 6 * kHalfTrials);
    EXPECT_EQ(next(1), (Counts{0, 0, kHalfTrials}));
    EXPECT_EQ(next(5)[index], 5 * kHalfTrials);
    EXPECT_EQ(next(1)[1 - index], kHalfTrials);
  }
}

TEST(FastestWay, LargeCallsGoEachWayAtOnceWhateverIsExpected) {
  FastestWay ways(kStageBytes);
  ways.expect(Way::streamed);
  EXPECT_EQ(ways_of(ways, 3 * kTrials, {3_us, 2_us, 1_us}), (Counts{kTrials, kTrials, kTrials}));
}

TEST(FastestWay, AnotherExpectationForgetsWhatWasFound) {
  FastestWay ways(kStageBytes);
  ways.expect(Way::staged);
  const auto next = [&] { return ways_of(ways, 6 * kHalfTrials, {1_us, 2_us, 3_us}, kHalfStage); };
  EXPECT_EQ(next(), (Counts{6 * kHalfTrials, 0, 0}));
  ways.expect(Way::staged);
  EXPECT_EQ(next(), (Counts{5 * kHalfTrials, 0, kHalfTrials}));  // goes on
  ways.expect(Way::streamed);
  EXPECT_EQ(next(), (Counts{0, 6 * kHalfTrials, 0}));
}

// The way that is chosen after trials in which the first way took some times and the others 2 us.
Way way_after(const std::vector<Time>& first_times) {
  FastestWay ways(kStageBytes);
  ways_of(ways, kFirstPeriod, {1_us, 2_us, 3_us});
  std::size_t next = 0;
  for (int i = 0; i < 3 * kTrials; ++i) {
    const FastestWay::Choice choice = ways.choose(Kind::broadcast, kStageBytes, true);
    if (!choice.is_timed) continue;
    const bool is_first = choice.way == Way::staged;
    ways.note(Kind::broadcast, kStageBytes, choice.way, is_first ? first_times.at(next++) : 2_us);
  }
  return ways.choose(Kind::broadcast, kStageBytes, true).way;
}

TEST(FastestWay, AnInterruptionOfATrialDoesNotCount) {
  EXPECT_EQ(way_after({1_us, 50_us, 1_us, 1_us}), Way::staged);
}

TEST(FastestWay, AShortCallCountsWithTheLongOneBesideIt) {
  EXPECT_NE(way_after({4_us, 1_us, 4_us, 1_us}), Way::staged);
}

// The way of the next call, after trials of 1, 2 and 3 us and calls that take the times given.
Way way_after_calls(const std::vector<Time>& times) {
  FastestWay ways(kStageBytes);
  ways_of(ways, kFirstPeriod + 3 * kTrials, {1_us, 2_us, 3_us});
  std::size_t next = 0;
  while (next < times.size()) {
    const FastestWay::Choice choice = ways.choose(Kind::broadcast, kStageBytes, true);
    EXPECT_EQ(choice.way, Way::staged);
    if (choice.is_timed) ways.note(Kind::broadcast, kStageBytes, choice.way, times[next++]);
  }
  const Counts counts = ways_of(ways, 3 * kTrials, {9_us, 2_us, 3_us});
  return counts[static_cast<std::size_t>(Way::streamed)] > 0 ? Way::streamed : Way::staged;
}

TEST(FastestWay, CallsThatTakeFarLongerThanTrialsDidAreTriedAnew) {
  EXPECT_EQ(way_after_calls({3_us, 3_us, 3_us}), Way::streamed);
}

TEST(FastestWay, InterruptionsAreNoChange) {
  EXPECT_EQ(way_after_calls({9_us, 9_us, 1_us, 9_us}), Way::staged);
  EXPECT_EQ(way_after_calls({2_us, 2_us, 2_us, 2_us}), Way::staged);
}

TEST(FastestWay, WhatCannotBeReadIsStaged) {
  FastestWay ways(kStageBytes);
  ways_of(ways, kFirstPeriod, {3_us, 2_us, 1_us}, kStageBytes, false);
  EXPECT_EQ(ways_of(ways, kPeriod, {3_us, 2_us, 1_us}, kStageBytes, false),
            (Counts{2 * kTrials, kPeriod - 2 * kTrials, 0}));
}

// The same size, once from an array that others may read and once from one that they may not.
TEST(FastestWay, WhatMayBeReadForOneCallIsStagedForAnother) {
  FastestWay ways(kStageBytes);
  ways_of(ways, kFirstPeriod, {3_us, 2_us, 1_us});
  EXPECT_EQ(ways_of(ways, 20, {3_us, 2_us, 1_us}), (Counts{kTrials, kTrials, 20 - 2 * kTrials}));
  EXPECT_EQ(ways_of(ways, 20, {3_us, 2_us, 1_us}, kStageBytes, false), (Counts{0, 20, 0}));
}

TEST(FastestWay, AChangeIsNoticed) {
  FastestWay ways(kStageBytes);
  ways_of(ways, kFirstPeriod, {2_us, 1_us, 3_us});
  EXPECT_EQ(ways_of(ways, kPeriod, {1_us, 2_us, 3_us}),
            (Counts{kPeriod - 2 * kTrials, kTrials, kTrials}));
}

// They share what is found out, and trials come again however they take turns.
TEST(FastestWay, NeighbouringSizesAreTriedTogether) {
  FastestWay ways(kStageBytes);
  int trials = 0;
  for (int i = 0; i < kFirstPeriod + 2 * kPeriod; ++i) {
    const std::uint64_t size = kStageBytes + static_cast<std::uint64_t>(i % 3) * 200;
    const FastestWay::Choice choice = ways.choose(Kind::broadcast, size, true);
    trials += choice.way != Way::staged ? 1 : 0;
    if (!choice.is_timed) continue;
    const auto slowness = static_cast<std::int64_t>(choice.way) + 1;
    ways.note(Kind::broadcast, size, choice.way,
              Time::from_ps(slowness * static_cast<std::int64_t>(size)));
  }
  EXPECT_EQ(trials, 3 * 2 * kTrials);
}

TEST(FastestWay, EachSizeHasItsOwn) {
  FastestWay ways(kStageBytes);
  ways_of(ways, kFirstPeriod - 10, {2_us, 1_us, 3_us});
  EXPECT_EQ(ways_of(ways, 8 * 3, {1_us, 2_us, 3_us}, 5 * kStageBytes), (Counts{18, 3, 3}));
  EXPECT_EQ(ways_of(ways, 10, {2_us, 1_us, 3_us}), (Counts{0, 10, 0}));
}

}  // namespace
}  // namespace towpath::live
