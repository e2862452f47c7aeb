// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "towpath/collective/algorithms/algorithms.hpp"

namespace towpath::collective {
namespace {

struct RailCase {
  int hosts;
  int gpus;
};

class RailRings : public testing::TestWithParam<RailCase> {
 protected:
  int hosts() const { return GetParam().hosts; }
  int gpus() const { return GetParam().gpus; }

  // (sender, receiver) of every hop between hosts.
  std::vector<std::pair<int, int>> network_hops(const std::vector<int>& ring) const {
    std::vector<std::pair<int, int>> hops;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const int next = ring[(i + 1) % ring.size()];
      if (ring[i] / gpus() != next / gpus()) hops.emplace_back(ring[i], next);
    }
    return hops;
  }
};

TEST_P(RailRings, VisitEveryRankOnceAndEveryHostInOnePiece) {
  for (const auto& ring : rail_rings(hosts(), gpus(), 2 * gpus())) {
    EXPECT_EQ(std::set<int>(ring.begin(), ring.end()).size(),
              static_cast<std::size_t>(hosts() * gpus()));
    EXPECT_EQ(ring.size(), static_cast<std::size_t>(hosts() * gpus()));
    EXPECT_EQ(network_hops(ring).size(), static_cast<std::size_t>(hosts() > 1 ? hosts() : 0));
  }
}

TEST_P(RailRings, LeaveAndEnterHostsOnTheSameRail) {
  const bool is_impossible = gpus() == 2 && hosts() % 2 == 1;
  for (const auto& ring : rail_rings(hosts(), gpus(), gpus())) {
    int crossings = 0;
    for (const auto& [from, to] : network_hops(ring)) {
      if (from % gpus() != to % gpus()) ++crossings;
    }
    EXPECT_EQ(crossings, is_impossible && hosts() > 1 ? 1 : 0);
  }
}

TEST_P(RailRings, EveryGpuSendsToAndReceivesFromTheNetworkInAnEqualShareOfRings) {
  const int channels = 3 * gpus();
  std::map<int, int> sends;
  std::map<int, int> receives;
  for (const auto& ring : rail_rings(hosts(), gpus(), channels)) {
    for (const auto& [from, to] : network_hops(ring)) {
      ++sends[from];
      ++receives[to];
    }
  }
  if (hosts() == 1) {
    EXPECT_TRUE(sends.empty());
    return;
  }
  ASSERT_EQ(sends.size(), static_cast<std::size_t>(hosts() * gpus()));
  ASSERT_EQ(receives.size(), sends.size());
  for (const auto& [rank, count] : sends) EXPECT_EQ(count, channels / gpus()) << rank;
  for (const auto& [rank, count] : receives) EXPECT_EQ(count, channels / gpus()) << rank;
}

std::vector<RailCase> rail_cases() {
  std::vector<RailCase> cases = {{1, 8}, {1, 1}, {4, 1}, {5, 1}, {16, 8}, {64, 8}};
  for (int hosts = 2; hosts <= 9; ++hosts) {
    for (const int gpus : {2, 3, 4, 8}) cases.push_back({hosts, gpus});
  }
  return cases;
}

// Why an odd number of hosts with two GPUs each cannot do without a crossing: a ring without one
// leaves each host by the rail that the next one is entered on, and each host by another rail than
// it was entered on. All choices of rails are tried.
TEST(RailRingsOfTwoGpus, CrossOnceOnlyWhereNoChoiceOfRailsDoesWithout) {
  for (int hosts = 2; hosts <= 9; ++hosts) {
    bool is_possible = false;
    for (unsigned rails = 0; rails < 1u << hosts; ++rails) {
      bool alternates = true;
      for (int host = 0; host < hosts; ++host) {
        const int next = (host + 1) % hosts;
        alternates = alternates && (rails >> host & 1u) != (rails >> next & 1u);
      }
      is_possible = is_possible || alternates;
    }
    int crossings = 0;
    const std::vector<int> ring = rail_rings(hosts, 2, 1)[0];
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const int next = ring[(i + 1) % ring.size()];
      if (ring[i] / 2 != next / 2 && ring[i] % 2 != next % 2) ++crossings;
    }
    EXPECT_EQ(crossings, is_possible ? 0 : 1) << hosts << " hosts";
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, RailRings, testing::ValuesIn(rail_cases()),
                         [](const auto& info) {
                           return std::to_string(info.param.hosts) + "x" +
                                  std::to_string(info.param.gpus);
                         });

// --- trees ----------------------------------------------------------------------------------

TEST(TreeAllReduce, HostsWithChildrenInOneTreeAreLeavesInTheOther) {
  AlgorithmOptions options;
  options.ranks = 16;
  options.channels = 2;
  const Schedule schedule = tree_all_reduce(options);
  for (int rank = 0; rank < 16; ++rank) {
    std::set<int> with_children;
    for (const ThreadBlock& block : schedule.ranks[static_cast<std::size_t>(rank)].blocks) {
      const bool reduces = std::ranges::any_of(block.steps, [](const Step& step) {
        return receives(step.type) && reads_source(step.type);
      });
      if (reduces) with_children.insert(block.channel);
    }
    EXPECT_LE(with_children.size(), 1u) << rank;
  }
}

TEST(TreeAllReduce, OnlyOneGpuOfAHostTalksToOthersOnAChannel) {
  AlgorithmOptions options;
  options.ranks = 32;
  options.channels = 8;
  options.gpus_per_host = 8;
  const Schedule schedule = tree_all_reduce(options);
  for (int rank = 0; rank < 32; ++rank) {
    for (const ThreadBlock& block : schedule.ranks[static_cast<std::size_t>(rank)].blocks) {
      for (const int peer : {block.send_peer, block.receive_peer}) {
        if (peer == kNone || peer / 8 == rank / 8) continue;
        EXPECT_EQ(rank % 8, block.channel);
        EXPECT_EQ(peer % 8, block.channel);
      }
    }
  }
}

}  // namespace
}  // namespace towpath::collective
