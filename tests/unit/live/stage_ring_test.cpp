// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/stage_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace towpath::live {
namespace {

// What is taken and not ended yet is never taken again, whatever the sizes.
TEST(StageRing, ABlockIsReusedOnlyWhenItsLastStepHasEnded) {
  for (const int ranks : {2, 3, 8, 64}) {
    StageRing ring(ranks);
    std::vector<std::uint64_t> last_step(StageRing::bytes(ranks), 0);  // by byte
    std::mt19937 random(1);
    std::uniform_int_distribution<std::uint64_t> sizes(1, StageRing::bytes(ranks) / 2);
    for (std::uint64_t step = 1; step <= 200; ++step) {
      const std::uint64_t size = step % 3 == 0 ? sizes(random) % 9000 + 1 : sizes(random);
      const std::uint64_t busy_until = ring.busy_until(size);
      const std::uint64_t place = ring.take(size, step);
      ASSERT_LE(place + size, last_step.size());
      for (std::uint64_t byte = place; byte < place + size; ++byte) {
        ASSERT_LE(last_step[byte], busy_until) << "step " << step;
        last_step[byte] = step;
      }
    }
  }
}

TEST(StageRing, TwoOfTheLargestBlocksFit) {
  for (const int ranks : {1, 2, 8, 1024}) {
    StageRing ring(ranks);
    ring.take(StageRing::kBlockBytesMost, 1);
    EXPECT_EQ(ring.busy_until(StageRing::kBlockBytesMost), 0U) << ranks;
  }
}

}  // namespace
}  // namespace towpath::live
