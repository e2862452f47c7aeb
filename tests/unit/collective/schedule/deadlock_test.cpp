// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/deadlock.hpp"

#include <gtest/gtest.h>

#include "schedules.hpp"

namespace towpath::collective {
namespace {
using namespace samples;

// The waits of a ring of `ranks` thread blocks, beginning with rank `first`.
std::vector<Blocked> ring_of_waits(int ranks, int first) {
  std::vector<Blocked> blocked;
  for (int i = 0; i < ranks; ++i) {
    const int rank = (first + i) % ranks;
    blocked.push_back({rank, 0, 0, WaitReason::slot, (rank + 1) % ranks, 0});
  }
  return blocked;
}

TEST(WaitChain, BeginsACycleAtItsLowestRank) {
  const WaitChain chain = find_wait_chain(ring_of_waits(4, 2));
  EXPECT_TRUE(chain.is_cycle);
  ASSERT_EQ(chain.links.size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(chain.links[static_cast<std::size_t>(rank)].rank, rank);
  }
}

TEST(WaitChain, LeavesOutWhoOnlyWaitsForACycle) {
  std::vector<Blocked> blocked = {{0, 0, 0, WaitReason::data, 1, 0},
                                  {1, 0, 0, WaitReason::data, 2, 0},
                                  {2, 0, 0, WaitReason::data, 1, 0}};
  const WaitChain chain = find_wait_chain(blocked);
  EXPECT_TRUE(chain.is_cycle);
  EXPECT_EQ(chain.links, std::vector<Blocked>(blocked.begin() + 1, blocked.end()));
}

TEST(WaitChain, FindsACycleThatTheFirstDoesNotReach) {
  const std::vector<Blocked> blocked = {{0, 0, 0, WaitReason::launch, 3, kNone},
                                        {1, 0, 0, WaitReason::data, 2, 0},
                                        {2, 0, 0, WaitReason::data, 1, 0}};
  const WaitChain chain = find_wait_chain(blocked);
  EXPECT_TRUE(chain.is_cycle);
  EXPECT_EQ(chain.links.front().rank, 1);
}

TEST(WaitChain, EndsAtTheOneWhoDoesNotWait) {
  const std::vector<Blocked> blocked = {{0, 0, 0, WaitReason::data, 1, 0},
                                        {1, 0, 0, WaitReason::data, 2, 0}};
  const WaitChain chain = find_wait_chain(blocked);
  EXPECT_FALSE(chain.is_cycle);
  EXPECT_EQ(chain.links, blocked);
}

TEST(WaitChain, IsEmptyWhenNobodyWaits) {
  EXPECT_TRUE(find_wait_chain({}).links.empty());
  EXPECT_EQ(describe_deadlock(Schedule(), {}), "nothing waits");
}

TEST(DescribeDeadlock, SaysForWhomAndForWhat) {
  const Schedule schedule = relayed_all_gather(3);
  const std::vector<Blocked> blocked = {{0, 1, 1, WaitReason::dependency, 0, 0},
                                        {0, 0, 0, WaitReason::data, 2, 1},
                                        {2, 1, 0, WaitReason::launch, 1, kNone}};
  EXPECT_EQ(describe_deadlock(schedule, blocked),
            "rank 0 thread block 1 (channel 0) step 1 send waits for step 0 of rank 0 thread block "
            "0, which at step 0 receive waits for data from rank 2 thread block 1, which at step 0 "
            "send waits for the launch of rank 1, which does not wait");
}

TEST(DescribeDeadlock, CutsLongChainsShort) {
  const Schedule schedule = ring_all_reduce(100, 1);
  const std::string sentence = describe_deadlock(schedule, ring_of_waits(100, 0));
  EXPECT_NE(sentence.find("and so on through 92 more thread blocks to rank 0 thread block 0, where "
                          "the circle closes"),
            std::string::npos)
      << sentence;
  EXPECT_LT(sentence.size(), 800u);
}

TEST(BlockedAt, FindsTheOtherEnd) {
  const Schedule schedule = relayed_all_gather(3);
  const Wiring wiring = wire(schedule);
  EXPECT_EQ(blocked_at(schedule, wiring, {1, 0, 0, WaitReason::data}),
            (Blocked{1, 0, 0, WaitReason::data, 0, 1}));
  EXPECT_EQ(blocked_at(schedule, wiring, {1, 1, 0, WaitReason::slot}),
            (Blocked{1, 1, 0, WaitReason::slot, 2, 0}));
  EXPECT_EQ(blocked_at(schedule, wiring, {1, 1, 1, WaitReason::dependency}),
            (Blocked{1, 1, 1, WaitReason::dependency, 1, 0}));
}

}  // namespace
}  // namespace towpath::collective
