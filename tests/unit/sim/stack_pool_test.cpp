// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/stack_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <set>
#include <stdexcept>
#include <vector>

#include "towpath/sim/simulation.hpp"

namespace towpath::sim {
namespace {
using namespace literals;

TEST(StackPool, UsesAReleasedStackAgain) {
  StackPool pool;
  const auto first = pool.acquire(16 << 10);
  pool.release(first);
  EXPECT_EQ(pool.acquire(16 << 10).sp, first.sp);
}

TEST(StackPool, GivesAtLeastTheSizeAskedFor) {
  StackPool pool;
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{100'000}}) {
    for (int i = 0; i < 100; ++i) EXPECT_GE(pool.acquire(size).size, size);
  }
}

TEST(StackPool, GivesStacksThatDoNotOverlap) {
  StackPool pool;
  std::vector<boost::context::stack_context> stacks;
  for (int i = 0; i < 100; ++i) stacks.push_back(pool.acquire(8 << 10));
  std::set<std::uintptr_t> tops;
  for (const auto& stack : stacks) tops.insert(reinterpret_cast<std::uintptr_t>(stack.sp));
  for (const auto& stack : stacks) {
    const auto top = reinterpret_cast<std::uintptr_t>(stack.sp);
    const auto below = tops.lower_bound(top);
    if (below == tops.begin()) continue;
    EXPECT_LE(*std::prev(below), top - stack.size);
  }
}

TEST(StackPool, KeepsSizesApart) {
  StackPool pool;
  pool.release(pool.acquire(8 << 10));
  EXPECT_GE(pool.acquire(64 << 10).size, std::size_t{64 << 10});
}

TEST(StackPool, SaysWhenTheSystemHasNoMoreMemory) {
  StackPool pool;
  EXPECT_THROW(pool.acquire(std::size_t{1} << 46), std::runtime_error);
}

// ThreadSanitizer keeps memory for each process that ever was.
#if defined(__SANITIZE_THREAD__)
constexpr int kProcesses = 1'000;
#else
constexpr int kProcesses = 100'000;
#endif

TEST(StackPool, DoesNotGrowOverProcessesOneAfterTheOther) {
  Simulation simulation;
  int finished = 0;
  std::set<std::uintptr_t> stacks;
  simulation.spawn("parent", [&] {
    for (int i = 0; i < kProcesses; ++i) {
      simulation.spawn("child", [&] {
        stacks.insert(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
        ++finished;
      });
      simulation.sleep(1_ps);
    }
  });
  simulation.run();
  EXPECT_EQ(finished, kProcesses);
  EXPECT_EQ(stacks.size(), 1u);
}

}  // namespace
}  // namespace towpath::sim
