// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/wiring.hpp"

#include <gtest/gtest.h>

#include <set>

#include "schedules.hpp"

namespace towpath::collective {
namespace {
using namespace samples;

// A sending block finds the block that receives from it, and each names the other's numbers.
void expect_ends_meet(const Schedule& schedule) {
  const Wiring wiring = wire(schedule);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t b = 0; b < schedule.ranks[rank].blocks.size(); ++b) {
      const ThreadBlock& block = schedule.ranks[rank].blocks[b];
      const BlockWiring& own = wiring.of(static_cast<int>(rank))[b];
      if (block.send_peer == kNone) {
        EXPECT_EQ(own.send_block, kNone);
        EXPECT_EQ(own.credit, kNone);
        continue;
      }
      ASSERT_NE(own.send_block, kNone);
      const BlockWiring& peer =
          wiring.of(block.send_peer)[static_cast<std::size_t>(own.send_block)];
      EXPECT_EQ(peer.receive_block, static_cast<int>(b));
      EXPECT_EQ(own.peer_fifo, peer.fifo);
      EXPECT_EQ(peer.peer_credit, own.credit);
    }
  }
}

TEST(Wiring, BothEndsOfAConnectionFindEachOther) {
  expect_ends_meet(ring_all_reduce(5, 3));
  expect_ends_meet(two_shot_all_reduce(4, 1));
  expect_ends_meet(relayed_all_gather(4));
  expect_ends_meet(there_and_back_all_reduce(4, 2));
}

TEST(Wiring, NumbersTheConnectionsOfARankWithoutGaps) {
  const Schedule schedule = two_shot_all_reduce(4, 2);
  const Wiring wiring = wire(schedule);
  EXPECT_EQ(wiring.fifos, 3u);
  EXPECT_EQ(wiring.credits, 3u);
  EXPECT_EQ(wiring.count_max, 2u);
  for (const auto& rank : wiring.ranks) {
    std::set<std::int32_t> fifos;
    for (const BlockWiring& block : rank) {
      if (block.fifo != kNone) fifos.insert(block.fifo);
    }
    EXPECT_EQ(fifos, (std::set<std::int32_t>{0, 1, 2}));
  }
}

TEST(Wiring, ChannelsToOnePeerAreDifferentConnections) {
  const Wiring wiring = wire(ring_all_reduce(2, 2));
  EXPECT_EQ(wiring.of(0)[0].send_block, 0);
  EXPECT_EQ(wiring.of(0)[1].send_block, 1);
  EXPECT_NE(wiring.of(0)[0].peer_fifo, wiring.of(0)[1].peer_fifo);
}

TEST(Wiring, ABlockThatNamesAPeerItDoesNotServeHasNoOtherEnd) {
  Schedule schedule = empty_schedule(Collective::broadcast, 2, 1);
  add_block(schedule, 0, 1, kNone);
  const Wiring wiring = wire(schedule);
  EXPECT_EQ(wiring.of(0)[0].send_block, kNone);
  EXPECT_EQ(wiring.of(0)[0].peer_fifo, kNone);
}

}  // namespace
}  // namespace towpath::collective
