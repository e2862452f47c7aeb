// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "towpath/causality/access_history.hpp"
#include "towpath/causality/knowledge.hpp"
#include "towpath/causality/range_map.hpp"
#include "towpath/sim/random.hpp"

namespace towpath::causality {
namespace {

// Against an array with a value, 0 for none, per byte.
TEST(RangeMap, HoldsWhatWasAssignedLast) {
  sim::Random random(1, "ranges");
  RangeMap<int> ranges;
  std::array<int, 64> expected{};
  for (int step = 1; step <= 3000; ++step) {
    const std::uint64_t first = random.below(64);
    const std::uint64_t end = first + 1 + random.below(64 - first);
    const bool is_erased = random.below(3) == 0;
    if (is_erased) {
      ranges.erase(first, end);
    } else {
      ranges.assign(first, end, step);
    }
    for (std::uint64_t at = first; at < end; ++at) expected[at] = is_erased ? 0 : step;
    const std::uint64_t from = random.below(64);
    const std::uint64_t to = from + 1 + random.below(64 - from);
    std::array<int, 64> seen{};
    std::uint64_t last = from;
    ranges.each(from, to, [&](std::uint64_t begin, std::uint64_t stop, int value) {
      EXPECT_GE(begin, last);
      EXPECT_LT(begin, stop);
      last = stop;
      for (std::uint64_t at = begin; at < stop; ++at) seen[at] = value;
    });
    EXPECT_LE(last, to);
    for (std::uint64_t at = from; at < to; ++at) ASSERT_EQ(seen[at], expected[at]);
  }
}

TEST(RangeMap, FindsTheValueOfAByte) {
  RangeMap<int> ranges;
  ranges.assign(100, 200, 1);
  ranges.assign(140, 160, 2);
  EXPECT_EQ(*ranges.find(139), 1);
  EXPECT_EQ(*ranges.find(140), 2);
  EXPECT_EQ(*ranges.find(159), 2);
  EXPECT_EQ(*ranges.find(160), 1);
  EXPECT_EQ(ranges.find(99), nullptr);
  EXPECT_EQ(ranges.find(200), nullptr);
}

TEST(RangeMap, ErasesWholeRangesThatMatch) {
  RangeMap<int> ranges;
  ranges.assign(100, 200, 1);
  ranges.assign(120, 140, 2);
  ranges.assign(300, 400, 1);
  ranges.erase_if(100, 200, [](int value) { return value == 1; });
  EXPECT_EQ(ranges.find(110), nullptr);
  EXPECT_EQ(*ranges.find(130), 2);
  EXPECT_EQ(ranges.find(150), nullptr);
  EXPECT_EQ(*ranges.find(350), 1);
}

TEST(RangeMap, SearchesARangeByItsBytes) {
  RangeMap<int> ranges;
  ranges.assign(100, 200, 1);
  const auto is_one = [](int value) { return value == 1; };
  EXPECT_NE(ranges.find_if(0, 101, is_one), nullptr);
  EXPECT_EQ(ranges.find_if(0, 101, [](int value) { return value != 1; }), nullptr);
  EXPECT_EQ(ranges.find_if(0, 100, is_one), nullptr);
  EXPECT_TRUE(ranges.has_any(199, 250));
  EXPECT_FALSE(ranges.has_any(200, 250));
}

TEST(RangeMap, BytesAroundOneHaveOneRangeOrNone) {
  RangeMap<int> ranges;
  ranges.assign(100, 200, 1);
  ranges.assign(300, 400, 2);
  const auto around = [&](std::uint64_t at) {
    const auto bounds = ranges.around(at);
    return std::pair(bounds.begin, bounds.end);
  };
  EXPECT_EQ(around(150), std::pair(std::uint64_t{100}, std::uint64_t{200}));
  EXPECT_EQ(around(250), std::pair(std::uint64_t{200}, std::uint64_t{300}));
  EXPECT_EQ(around(50), std::pair(std::uint64_t{0}, std::uint64_t{100}));
}

TEST(AccessHistory, NamesEachUnorderedAccess) {
  AccessHistory history;
  const auto never = [](const TimedAccess&) { return false; };
  const auto none = [](const TimedAccess&, bool) { FAIL(); };
  history.store({.agent = 0, .time = 1, .step = 1}, never, none);
  history.load({.agent = 0, .time = 2, .step = 2}, never, none);  // its own store
  std::vector<std::pair<int, bool>> found;
  const auto note = [&](const TimedAccess& earlier, bool stores) {
    found.emplace_back(earlier.agent, stores);
  };
  history.load({.agent = 1, .time = 1, .step = 3}, never, note);
  EXPECT_EQ(found, (std::vector<std::pair<int, bool>>{{0, true}}));
  found.clear();
  history.store({.agent = 2, .time = 1, .step = 4}, never, note);
  EXPECT_EQ(found, (std::vector<std::pair<int, bool>>{{0, true}, {0, false}, {1, false}}));
  history.load({.agent = 3, .time = 1, .step = 5}, [](const TimedAccess&) { return true; }, none);
}

TEST(ClockPool, ReusesReleasedClocks) {
  ClockPool pool(2);
  const std::array<std::uint32_t, 2> first{1, 5};
  const std::uint32_t number = pool.copy_of(first.data());
  std::array<std::uint32_t, 2> joined{3, 2};
  pool.join(joined.data(), pool.at(number));
  EXPECT_EQ(joined, (std::array<std::uint32_t, 2>{3, 5}));
  pool.release(number);
  EXPECT_EQ(pool.copy_of(joined.data()), number);
}

TEST(Learner, KnowsWhatWasKnownWhereAStampComesFrom) {
  Learner first(0, 0);
  Learner second(1, 0);
  Learner third(2, 0);
  const Stamp early = first.step();
  first.learn_arrival(7, 100);
  const Stamp late = first.step();
  second.learn(early);
  EXPECT_TRUE(second.knows(early));
  EXPECT_FALSE(second.knows(late));
  EXPECT_FALSE(second.knows_arrival(7, 1));
  third.learn(second.step());
  EXPECT_TRUE(third.knows(early));
  third.learn(late);
  EXPECT_TRUE(third.knows_arrival(7, 100));
  EXPECT_FALSE(third.knows_arrival(7, 101));
  EXPECT_FALSE(second.knows_arrival(7, 1));  // what others learn stays with them
}

TEST(Learner, KnowsItself) {
  Learner learner(3, 5);
  EXPECT_EQ(learner.clock(), 5u);
  EXPECT_TRUE(learner.knows(learner.step()));
  EXPECT_EQ(learner.clock(), 6u);
}

}  // namespace
}  // namespace towpath::causality
