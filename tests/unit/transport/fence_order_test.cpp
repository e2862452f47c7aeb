// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/simulated/fence_order.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace towpath::transport::simulated {
namespace {

struct Numbered {
  int number = 0;
  std::uint64_t epoch = 0;
  std::uint64_t before = 0;
};

struct Peer {
  FenceOrder<Numbered> order;
  std::vector<int> visible;

  void add(Numbered& delivery) { order.add(delivery); }
  void arrived(Numbered& delivery) {
    order.arrived(delivery, [this](const Numbered& next) { visible.push_back(next.number); });
  }
};

TEST(FenceOrder, WhatNoFenceDividesIsVisibleAsItArrives) {
  Peer peer;
  Numbered one{1, 0}, two{2, 0};
  for (Numbered* each : {&one, &two}) peer.add(*each);
  peer.arrived(two);
  peer.arrived(one);
  EXPECT_EQ(peer.visible, (std::vector{2, 1}));
}

TEST(FenceOrder, WhatComesBehindFencesWaitsForAllBeforeThem) {
  Peer peer;
  Numbered one{1, 0}, two{2, 0}, three{3, 1}, four{4, 3}, five{5, 3};
  for (Numbered* each : {&one, &two, &three, &four, &five}) peer.add(*each);
  peer.arrived(five);
  peer.arrived(three);
  peer.arrived(two);
  EXPECT_EQ(peer.visible, (std::vector{2}));
  peer.arrived(one);
  EXPECT_EQ(peer.visible, (std::vector{2, 1, 3, 5}));
  peer.arrived(four);
  EXPECT_EQ(peer.visible, (std::vector{2, 1, 3, 5, 4}));
}

TEST(FenceOrder, WhatIsAddedWhileSomethingBecomesVisibleKeepsItsTurn) {
  FenceOrder<Numbered> order;
  std::vector<int> visible;
  Numbered one{1, 0}, two{2, 1};
  order.add(one);
  order.arrived(one, [&](const Numbered& next) {
    visible.push_back(next.number);
    order.add(two);
  });
  order.arrived(two, [&](const Numbered& next) { visible.push_back(next.number); });
  EXPECT_EQ(visible, (std::vector{1, 2}));
}

}  // namespace
}  // namespace towpath::transport::simulated
