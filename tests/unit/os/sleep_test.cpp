// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/sleep.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace towpath::os {
namespace {

using namespace literals;

struct End {
  WakeFlag flag;
  std::atomic<int> count{0};
};

// Sleeps until the count is there. Whether a sleep ended without a wake().
bool await(End& end, const StoreOrder& order, int count) {
  bool is_overslept = false;
  while (end.count.load(std::memory_order_acquire) < count) {
    end.flag.announce();
    order.wait_for_stores_of_all();
    if (end.count.load(std::memory_order_acquire) < count) is_overslept |= !end.flag.sleep(60_s);
    end.flag.withdraw();
  }
  return is_overslept;
}

void signal_count(End& end, const StoreOrder& order, int count) {
  end.count.store(count, std::memory_order_release);
  order.order_before_look();
  if (end.flag.is_awaited()) end.flag.wake();
}

TEST(WakeFlag, NoSleeperMissesAStore) {
  constexpr int kRounds = 3000;
  const StoreOrder order;
  if (!order.wait_for_stores_of_all()) GTEST_SKIP() << "this kernel has no membarrier";
  std::array<End, 2> ends;
  std::array<bool, 2> overslept{};
  std::array<std::thread, 2> threads;
  for (std::size_t self = 0; self < 2; ++self) {
    threads[self] = std::thread([&, self] {
      for (int round = 1; round <= kRounds; ++round) {
        if (self == 0) signal_count(ends[1], order, round);
        overslept[self] |= await(ends[self], order, round);
        if (self == 1) signal_count(ends[0], order, round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overslept[0]);
  EXPECT_FALSE(overslept[1]);
}

TEST(WakeFlag, ASleepThatNobodyEndsSaysThatItsTimeWasUp) {
  WakeFlag flag;
  flag.announce();
  EXPECT_FALSE(flag.sleep(1_ms));
}

TEST(WakeFlag, AFlagThatWasWokenKeepsNobodyAsleep) {
  WakeFlag flag;
  flag.announce();
  flag.wake();
  EXPECT_FALSE(flag.is_awaited());
  EXPECT_TRUE(flag.sleep(60_s));
}

}  // namespace
}  // namespace towpath::os
