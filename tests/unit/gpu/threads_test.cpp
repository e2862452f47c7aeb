// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"
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

}  // namespace
}  // namespace towpath::gpu
