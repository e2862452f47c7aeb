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
  Bell bell;
  std::atomic<int> news{0};
};

// Waits for news, asleep where there are none. Returns whether a sleep ended without being rung.
bool await(End& end, const StoreOrder& order, int news) {
  bool is_overslept = false;
  while (end.news.load(std::memory_order_acquire) < news) {
    end.bell.announce();
    order.wait_for_stores_of_all();
    if (end.news.load(std::memory_order_acquire) < news) is_overslept |= !end.bell.sleep(60_s);
    end.bell.withdraw();
  }
  return is_overslept;
}

void tell(End& end, const StoreOrder& order, int news) {
  end.news.store(news, std::memory_order_release);
  order.order_before_bell();
  if (end.bell.is_awaited()) end.bell.ring();
}

TEST(Bell, NoSleeperMissesWhatIsTold) {
  constexpr int kRounds = 3000;
  const StoreOrder order;
  if (!order.wait_for_stores_of_all()) GTEST_SKIP() << "this kernel has no membarrier";
  std::array<End, 2> ends;
  std::array<bool, 2> overslept{};
  std::array<std::thread, 2> threads;
  for (std::size_t self = 0; self < 2; ++self) {
    threads[self] = std::thread([&, self] {
      for (int round = 1; round <= kRounds; ++round) {
        if (self == 0) tell(ends[1], order, round);
        overslept[self] |= await(ends[self], order, round);
        if (self == 1) tell(ends[0], order, round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overslept[0]);
  EXPECT_FALSE(overslept[1]);
}

TEST(Bell, ASleepThatNobodyEndsSaysThatItsTimeWasUp) {
  Bell bell;
  bell.announce();
  EXPECT_FALSE(bell.sleep(1_ms));
}

TEST(Bell, ABellThatWasRungKeepsNobodyAsleep) {
  Bell bell;
  bell.announce();
  bell.ring();
  EXPECT_FALSE(bell.is_awaited());
  EXPECT_TRUE(bell.sleep(60_s));
}

}  // namespace
}  // namespace towpath::os
