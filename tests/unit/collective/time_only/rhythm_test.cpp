// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/rhythm.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace towpath::collective::time_only {
namespace {

using namespace literals;

Rhythm rhythm_of(std::initializer_list<int> ends_ns) {
  Rhythm rhythm;
  for (const int end : ends_ns) rhythm.add(Time::from_ns(end));
  return rhythm;
}

TEST(Rhythm, IsFoundOverThreeEqualCycles) {
  EXPECT_EQ(rhythm_of({5, 15, 25}).period(), Time());
  EXPECT_EQ(rhythm_of({5, 15, 25, 35}).period(), 10_ns);
  EXPECT_EQ(rhythm_of({0, 1, 3, 13, 23, 33}).period(), 10_ns);
  EXPECT_EQ(rhythm_of({5, 15, 25, 36}).period(), Time());
}

TEST(Rhythm, MayHaveCyclesOfSeveral) {
  EXPECT_EQ(rhythm_of({0, 3, 10, 13, 20, 23}).period(), Time());
  EXPECT_EQ(rhythm_of({0, 3, 10, 13, 20, 23, 30}).period(), 10_ns);
}

TEST(Rhythm, ForgetsWhatWasBeforeItWasCleared) {
  Rhythm rhythm = rhythm_of({0, 10, 20, 30});
  rhythm.clear();
  for (const int end : {31, 33, 35}) rhythm.add(Time::from_ns(end));
  EXPECT_EQ(rhythm.period(), Time());
  rhythm.add(37_ns);
  EXPECT_EQ(rhythm.period(), 2_ns);
}

TEST(Rhythm, IsThatOfTheLastEndsOfMany) {
  Rhythm rhythm;
  for (int i = 0; i < 100; ++i) rhythm.add(Time::from_ns(i * i));
  EXPECT_EQ(rhythm.period(), Time());
  for (int i = 0; i < 100; ++i) rhythm.add(Time::from_ns(10'000 + 7 * i));
  EXPECT_EQ(rhythm.period(), 7_ns);
}

}  // namespace
}  // namespace towpath::collective::time_only
