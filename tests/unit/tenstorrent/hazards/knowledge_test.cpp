// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/knowledge.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "towpath/sim/random.hpp"

namespace towpath::tenstorrent {
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
  EXPECT_FALSE(second.knows_arrived(7, 1));
  third.learn(second.step());
  EXPECT_TRUE(third.knows(early));
  third.learn(late);
  EXPECT_TRUE(third.knows_arrived(7, 100));
  EXPECT_FALSE(third.knows_arrived(7, 101));
  EXPECT_FALSE(second.knows_arrived(7, 1));  // what others learn stays with them
}

TEST(Learner, KnowsItself) {
  Learner learner(3, 5);
  EXPECT_EQ(learner.clock(), 5u);
  EXPECT_TRUE(learner.knows(learner.step()));
  EXPECT_EQ(learner.clock(), 6u);
}

}  // namespace
}  // namespace towpath::tenstorrent
