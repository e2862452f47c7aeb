// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/direct/faster_way.hpp"

#include <gtest/gtest.h>

namespace towpath::collective::direct {
namespace {

using namespace literals;

// How many of so many calls go the second way, where calls take the times that are given.
int seconds_among(FasterWay& ways, int calls, Time first, Time second, std::uint64_t size = 1000) {
  int count = 0;
  for (int i = 0; i < calls; ++i) {
    const FasterWay::Choice choice = ways.choose(Kind::broadcast, size);
    count += choice.is_second ? 1 : 0;
    if (choice.is_trial) {
      ways.note(Kind::broadcast, size, choice.is_second, choice.is_second ? second : first);
    }
  }
  return count;
}

TEST(FasterWay, TheFasterOneIsTakenButForAFewTrials) {
  FasterWay ways;
  EXPECT_EQ(seconds_among(ways, 256, 2_us, 1_us), 252);
  FasterWay others;
  EXPECT_EQ(seconds_among(others, 256, 1_us, 2_us), 4);
}

TEST(FasterWay, AChangeIsNoticed) {
  FasterWay ways;
  seconds_among(ways, 256, 2_us, 1_us);
  EXPECT_EQ(seconds_among(ways, 256, 1_us, 2_us), 4);
}

TEST(FasterWay, EachSizeHasItsOwn) {
  FasterWay ways;
  seconds_among(ways, 200, 2_us, 1_us, 1000);
  EXPECT_EQ(seconds_among(ways, 200, 1_us, 2_us, 5000), 4);
  EXPECT_EQ(seconds_among(ways, 56, 2_us, 1_us, 1000), 56);
}

}  // namespace
}  // namespace towpath::collective::direct
