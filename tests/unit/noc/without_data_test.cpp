// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "chip_bench.hpp"
#include "towpath/noc/chip_network.hpp"

// Chips that keep time and only some of the bytes.

namespace towpath::noc {
namespace {

TEST(ChipNetwork, WordsAreCarriedWithoutData) {
  Bench bench({.carries_data = false});
  bench.put(kCore, 0, pattern(64, 1));
  bench.run(write(kFar, 64));
  EXPECT_EQ(bench.get(kFar, kTarget, 64), Data(64));
  bench.run(write(kFar, 4));
  EXPECT_EQ(bench.get(kFar, kTarget, 4), pattern(4, 1));
  bench.run(word_request(RequestKind::inline_write, kFar, 5));
  bench.run(word_request(RequestKind::atomic_increment, kFar, 2));
  EXPECT_EQ(bench.word(kFar, kTarget), 7u);
  Request request = read(kFar, 4);
  request.local_offset = 0x100;
  bench.run(request);
  EXPECT_EQ(bench.network.load_word(kCore, 0x100), 7u);
  bench.network.store(kCore, 0x200, pattern(8, 1));
  EXPECT_EQ(bench.get(kCore, 0x200, 8), Data(8));
}

TEST(ChipNetwork, WithoutItsBytesDramTakesTimeAlone) {
  Bench bench({.stores_dram = false});
  const Data there = pattern(64, 1), here = pattern(64, 2);
  bench.put(kDram, kTarget, there);
  bench.put(kCore, 0, here);
  bench.run(read(kDram, 64));
  EXPECT_EQ(bench.get(kCore, 0, 64), here);
  bench.run(write(kDram, 64));
  EXPECT_EQ(bench.get(kDram, kTarget, 64), there);
  bench.run(write(kFar, 64));
  EXPECT_EQ(bench.get(kFar, kTarget, 64), here);
}

}  // namespace
}  // namespace towpath::noc
