// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/dispatch/host_routes.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "host_cluster.hpp"

// Routes of the host to chips that are not on PCIe.

namespace towpath::tenstorrent {
namespace {

using machine::ChipCluster;
using machine::EthernetEnd;

TEST(HostRoutes, PreferFewLinksThenThoseOfTheDispatcher) {
  const auto cluster = board();
  const HostRoutes routes(*cluster);
  EXPECT_EQ(routes.to(0).links, 0);
  EXPECT_EQ(routes.to(1).links, 1);
  EXPECT_EQ(routes.gateway(1), (EthernetEnd{0, 1}));
  EXPECT_EQ(routes.to(1).far, (EthernetEnd{1, 1}));
}

// 0 - 1 - 3 over free links, 0 - 2 - 3 with one that is reserved, described later.
TEST(HostRoutes, PreferWaysWithMoreOfTheDispatchersLinks) {
  ChipCluster cluster = chips_with_host(5, {0});
  cluster.links = {
      {{{{0, 0}, {1, 0}}}}, {{{{1, 1}, {3, 0}}}}, {{{{0, 1}, {2, 0}}}, true}, {{{{2, 1}, {3, 1}}}}};
  const HostRoutes routes(*machine::build_chip_cluster(std::move(cluster)));
  EXPECT_EQ(routes.to(3).links, 2);
  EXPECT_EQ(routes.gateway(3), (EthernetEnd{0, 1}));
  EXPECT_EQ(routes.next(2, 3), (EthernetEnd{2, 1}));
  EXPECT_FALSE(routes.is_reached(4));
}

TEST(HostRoutes, TakeAsManyLinksAsAMeshHasBetweenItsChips) {
  const HostRoutes routes(*mesh(8, 4));
  for (int chip = 0; chip < 32; ++chip) EXPECT_EQ(routes.to(chip).links, chip % 8 + chip / 8);
}

}  // namespace
}  // namespace towpath::tenstorrent
