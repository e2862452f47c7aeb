// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/profile.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "towpath/gpu_links/link_history.hpp"

namespace towpath::gpu {
namespace {
using namespace literals;

constexpr abi::Site kPut{"a.cu", 10, "nvshmem_putmem"};
constexpr abi::Site kWait{"a.cu", 11, "nvshmem_signal_wait_until"};
constexpr abi::Site kSync{"a.cu", 12, "__syncthreads"};
constexpr abi::Site kBarrier{"a.cu", 13, "nvshmemx_barrier_all_block"};

TEST(Ring, TheOldestMakeRoomAndAreCounted) {
  Ring<int> ring(3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ring.add(10 * i), static_cast<std::uint64_t>(i));
  EXPECT_EQ(ring.dropped(), 2u);
  EXPECT_EQ(ring.find(1), nullptr);
  EXPECT_EQ(ring.find(5), nullptr);
  EXPECT_EQ(*ring.find(2), 20);
  std::vector<int> kept;
  ring.for_each([&](int value) { kept.push_back(value); });
  EXPECT_EQ(kept, (std::vector<int>{20, 30, 40}));
}

class Timeline : public testing::Test {
 protected:
  Time now = 100_ns;
  Profile profile{[this] { return now; }, 100};
  int track = profile.track({.pe = 0, .stream = 0, .block = 0, .is_kernel = true});

  std::vector<Profile::Span> spans() {
    std::vector<Profile::Span> found;
    profile.spans().for_each([&](const Profile::Span& span) { found.push_back(span); });
    return found;
  }
};

TEST_F(Timeline, SpansHaveNoGapAndTheFirstActivityHidesTheOthers) {
  {
    BlockTimeline block(profile, track, "k");
    now = 110_ns;
    block.enter(Activity::sync, kSync);
    block.enter(Activity::sync, kSync);
    now = 120_ns;
    block.enter(Activity::put, kPut, 3, 64);
    now = 150_ns;
    block.leave(Activity::put, kPut);
    now = 160_ns;
    block.leave(Activity::sync, kSync, 2);
    now = 170_ns;
  }
  const std::vector<Profile::Span> found = spans();
  ASSERT_EQ(found.size(), 5u);
  const std::vector<Activity> expected{Activity::compute, Activity::sync, Activity::put,
                                       Activity::sync, Activity::compute};
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].activity, expected[i]);
    const Time before = i == 0 ? 100_ns : found[i - 1].end;
    EXPECT_EQ(found[i].begin, before);
  }
  EXPECT_EQ(found[1].calls, 2);
  EXPECT_EQ(found[2].peer, 3);
  EXPECT_EQ(found[2].size_bytes, 64u);
  EXPECT_EQ(found.back().end - found.front().begin, 70_ns);
}

TEST_F(Timeline, WorkThatEndsLaterComesBeforeWaiting) {
  {
    BlockTimeline block(profile, track, "k");
    block.work(256);
    block.works_until(140_ns);
    block.enter(Activity::wait, kWait);
    now = 180_ns;
    block.woken({64, 8});
    block.leave(Activity::wait, kWait);
  }
  const std::vector<Profile::Span> found = spans();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].activity, Activity::compute);
  EXPECT_EQ(found[0].end, 140_ns);
  EXPECT_EQ(found[0].size_bytes, 256u);
  EXPECT_EQ(found[1].activity, Activity::wait);
  EXPECT_EQ(found[1].woken_by.first, 64u);
}

TEST_F(Timeline, AllOfABarrierOfPesIsOneActivity) {
  {
    BlockTimeline block(profile, track, "k");
    block.enter(Activity::signal, kBarrier, 1);
    now = 120_ns;
    block.leave(Activity::signal, kBarrier);
    block.enter(Activity::wait, kBarrier);
    now = 140_ns;
    block.leave(Activity::wait, kBarrier);
  }
  for (const Profile::Span& span : spans()) EXPECT_EQ(span.activity, Activity::collective);
  EXPECT_EQ(profile.tracks()[0].times[static_cast<std::size_t>(Activity::collective)], 40_ns);
}

TEST_F(Timeline, ThePutsOfAWarpAreOneTransfer) {
  BlockTimeline block(profile, track, "k");
  std::uint64_t number = 0;
  for (std::uint64_t thread = 0; thread < 32; ++thread) {
    number = block.start({.peer = 1, .size_bytes = 4, .target = {4 * thread, 4}}, kPut);
  }
  block.start({.peer = 2, .size_bytes = 4, .target = {0, 4}}, kPut);
  EXPECT_EQ(profile.transfers().size(), 2u);
  const Profile::Transfer& all = *profile.transfer(number);
  EXPECT_EQ(all.calls, 32);
  EXPECT_EQ(all.size_bytes, 128u);
  EXPECT_EQ(all.target.size_bytes, 128u);
}

TEST_F(Timeline, WhatIsDroppedIsStillInTheSums) {
  Profile small([this] { return now; }, 2);
  const int own = small.track({.pe = 0, .stream = 0, .block = 0, .is_kernel = true});
  {
    BlockTimeline block(small, own, "k");
    for (int i = 0; i < 10; ++i) {
      block.enter(Activity::wait, kWait);
      now += 5_ns;
      block.leave(Activity::wait, kWait);
      now += 1_ns;
    }
  }
  EXPECT_EQ(small.spans().size(), 2u);
  EXPECT_EQ(small.spans().dropped(), 18u);
  EXPECT_EQ(small.tracks()[0].times[static_cast<std::size_t>(Activity::wait)], 50_ns);
}

TEST(LinkHistory, NoByteIsLostWhenIntervalsGrow) {
  gpu_links::LinkHistory history(2);
  std::uint64_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto size = static_cast<std::uint64_t>(1 + 37 * i % 1000);
    history.add(1, Time::from_ns(97.3 * i), Time::from_ns(97.3 * i + 60.1), Bytes(size));
    sent += size;
  }
  const std::vector<std::uint64_t>& carried = history.carried(1);
  EXPECT_EQ(std::accumulate(carried.begin(), carried.end(), std::uint64_t{0}), sent);
  EXPECT_TRUE(history.carried(0).empty());
  EXPECT_GE(history.interval().ps() * 512, Time::from_ns(97.3 * 999 + 60.1).ps());
}

TEST(LinkHistory, BytesAreWhereTheyWere) {
  gpu_links::LinkHistory history(1);
  history.add(0, 8_ns, 24_ns, Bytes(160));  // half in each of the first two intervals of 16 ns
  EXPECT_EQ(history.carried(0)[0], 80u);
  EXPECT_EQ(history.carried(0)[1], 80u);
  EXPECT_EQ(history.carried(0)[2], 0u);
}

}  // namespace
}  // namespace towpath::gpu
