// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "towpath/gpu/memory_monitor.hpp"
#include "towpath/gpu/thread_stack.hpp"

namespace towpath::gpu {
namespace {

using namespace literals;

#if !defined(__SANITIZE_ADDRESS__)  // it does not follow copies of a stack

struct Sum {
  ThreadStack* stack;
  int begin;
  int result = 0;
  static void add(void* argument) {
    auto& sum = *static_cast<Sum*>(argument);
    volatile int numbers[64];  // on the stack, across every wait
    for (int i = 0; i < 64; ++i) numbers[i] = sum.begin + i;
    for (int i = 0; i < 64; ++i) {
      sum.result += numbers[i];
      sum.stack->suspend();
    }
  }
};

TEST(GpuThreadStack, ThreadsKeepWhatTheyHaveOnTheStack) {
  ThreadStack stack;
  constexpr std::size_t kThreads = 100;
  std::vector<ThreadStack::Saved> saved(kThreads);
  std::vector<Sum> sums;
  for (std::size_t i = 0; i < kThreads; ++i) sums.push_back({&stack, static_cast<int>(1000 * i)});
  for (int round = 0; round < 64; ++round) {
    for (std::size_t i = 0; i < kThreads; ++i) {
      EXPECT_FALSE(stack.resume(saved[i], &Sum::add, &sums[i]));
    }
  }
  for (std::size_t i = 0; i < kThreads; ++i) {
    EXPECT_TRUE(stack.resume(saved[i], &Sum::add, &sums[i]));
    EXPECT_EQ(sums[i].result, 64 * static_cast<int>(1000 * i) + 63 * 32);
  }
}

TEST(GpuThreadStack, AThreadThatIsForgottenIsNotSaved) {
  ThreadStack stack;
  Sum sum{&stack, 0};
  {
    ThreadStack::Saved gone;
    EXPECT_FALSE(stack.resume(gone, &Sum::add, &sum));
    stack.forget(gone);
  }
  ThreadStack::Saved next;
  Sum other{&stack, 5};
  EXPECT_FALSE(stack.resume(next, &Sum::add, &other));
  EXPECT_EQ(other.result, 5);
  stack.forget(next);
}

#endif

MonitoredTransfer transfer(std::uint64_t number) { return {.identity = {.number = number}}; }

TEST(GpuMemoryMonitor, ALaterTransferTakesBytesOver) {
  MonitoredRanges ranges;
  ranges.add(100, 100, transfer(1));
  ranges.add(140, 20, transfer(2));
  EXPECT_EQ(ranges.find(139)->identity.number, 1u);
  EXPECT_EQ(ranges.find(140)->identity.number, 2u);
  EXPECT_EQ(ranges.find(159)->identity.number, 2u);
  EXPECT_EQ(ranges.find(160)->identity.number, 1u);
  EXPECT_EQ(ranges.find(99), nullptr);
  EXPECT_EQ(ranges.find(200), nullptr);
  ranges.add(50, 200, transfer(3));
  for (std::uintptr_t at = 50; at < 250; ++at) ASSERT_EQ(ranges.find(at)->identity.number, 3u);
}

TEST(GpuMemoryMonitor, ATransferIsForgottenWithItsBytes) {
  MonitoredRanges ranges;
  ranges.add(100, 100, transfer(1));
  ranges.add(300, 100, transfer(2));
  ranges.remove(100, 100, 1);
  EXPECT_EQ(ranges.find(150), nullptr);
  EXPECT_EQ(ranges.find(350)->identity.number, 2u);
}

TEST(GpuMemoryMonitor, ARangeIsSearchedByItsBytes) {
  MonitoredRanges ranges;
  ranges.add(100, 100, transfer(1));
  const auto is_there = [](const MonitoredTransfer& each) { return each.identity.number == 1; };
  const auto never = [](const MonitoredTransfer&) { return false; };
  EXPECT_NE(ranges.find_if(0, 101, is_there), nullptr);
  EXPECT_EQ(ranges.find_if(0, 101, never), nullptr);
  EXPECT_EQ(ranges.find_if(0, 100, is_there), nullptr);
  EXPECT_NE(ranges.find_if(199, 50, is_there), nullptr);
  EXPECT_EQ(ranges.find_if(200, 50, is_there), nullptr);
}

TEST(GpuMemoryMonitor, BytesAroundAnAddressHaveOneTransferOrNone) {
  MonitoredRanges ranges;
  ranges.add(100, 100, transfer(1));
  ranges.add(300, 100, transfer(2));
  EXPECT_EQ(ranges.around(150).begin, 100u);
  EXPECT_EQ(ranges.around(150).size, 100u);
  EXPECT_EQ(ranges.around(250).begin, 200u);
  EXPECT_EQ(ranges.around(250).size, 100u);
  EXPECT_EQ(ranges.around(50).begin, 0u);
  EXPECT_EQ(ranges.around(50).size, 100u);
}

}  // namespace
}  // namespace towpath::gpu
