// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <span>
#include <tuple>

#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/verify/verify.hpp"

namespace towpath::collective {
namespace {

// --- trees ----------------------------------------------------------------------------------

TEST(TreeAllReduce, TakesTheTreesItIsGiven) {
  AlgorithmOptions options;
  options.ranks = 5;
  options.channels = 2;
  options.trees = {{-1, 0, 0, 0, 0}, {1, 2, 3, 4, -1}};
  const Schedule schedule = tree_all_reduce(options);
  EXPECT_TRUE(verify(schedule, 999, 4).is_correct());
  // The star's middle has a thread block per child and direction; the chain's rank 2 has two.
  EXPECT_EQ(schedule.ranks[0].blocks.size(), 4u + 3 + 2);
  EXPECT_EQ(schedule.ranks[2].blocks.size(), 2u + 2);
}

TEST(TreeAllReduce, RefusesWhatIsNoTree) {
  AlgorithmOptions options;
  options.ranks = 3;
  for (const std::vector<int>& parents : std::vector<std::vector<int>>{
           {-1, 0}, {-1, -1, 0}, {1, 0, -1}, {-1, 0, 3}, {-1, 0, -2}, {-1, 1, 0}}) {
    options.trees = {parents};
    EXPECT_THROW(tree_all_reduce(options), std::invalid_argument);
  }
  options.trees = {{-1, 0, 0}, {-1, 0, 0}};
  EXPECT_THROW(tree_all_reduce(options), std::invalid_argument);
}

// (sender, receiver) of every connection of a channel between hosts.
std::set<std::pair<int, int>> between_hosts(const Schedule& schedule, int channel, int gpus) {
  std::set<std::pair<int, int>> found;
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    for (const ThreadBlock& block : schedule.ranks[static_cast<std::size_t>(rank)].blocks) {
      if (block.channel == channel && block.send_peer != kNone &&
          block.send_peer / gpus != rank / gpus) {
        found.insert({rank, block.send_peer});
      }
    }
  }
  return found;
}

TEST(DoubleBinaryTree, IsNcclsForFourHosts) {
  AlgorithmOptions options;
  options.ranks = 16;
  options.gpus_per_host = 4;
  options.channels = 4;
  const Schedule schedule = double_binary_tree_all_reduce(options);
  using Hops = std::set<std::pair<int, int>>;
  // NCCL's tree of 4: 0 above 2, 2 above 1 and 3. The left child, 1, is served by the second GPU.
  EXPECT_EQ(between_hosts(schedule, 0, 4),
            (Hops{{8, 0}, {0, 8}, {4, 9}, {9, 4}, {12, 8}, {8, 12}}));
  // The same on the next rail, and the mirrored tree on the second half: 3 above 1, 1 above 2 and
  // 0.
  EXPECT_EQ(between_hosts(schedule, 1, 4),
            (Hops{{9, 1}, {1, 9}, {5, 10}, {10, 5}, {13, 9}, {9, 13}}));
  EXPECT_EQ(between_hosts(schedule, 2, 4),
            (Hops{{4, 12}, {12, 4}, {8, 5}, {5, 8}, {0, 4}, {4, 0}}));
}

TEST(DoubleBinaryTree, HasEveryHostButOneAsALeafInOneTree) {
  for (int hosts = 2; hosts <= 33; ++hosts) {
    AlgorithmOptions options;
    options.ranks = hosts;
    options.channels = 2;
    const Schedule schedule = double_binary_tree_all_reduce(options);
    int leaves_in_none = 0;
    for (const RankProgram& program : schedule.ranks) {
      std::map<int, std::set<int>> peers;
      for (const ThreadBlock& block : program.blocks) {
        for (const int peer : {block.send_peer, block.receive_peer}) {
          if (peer != kNone) peers[block.channel].insert(peer);
        }
      }
      if (peers[0].size() > 1 && peers[1].size() > 1) ++leaves_in_none;
    }
    EXPECT_LE(leaves_in_none, 1) << hosts;
  }
}

TEST(HierarchicalAllReduce, SendsBetweenHostsOnlyOnRailsAndOnlyItsShare) {
  AlgorithmOptions options;
  options.ranks = 12;
  options.gpus_per_host = 4;
  options.channels = 2;
  const Schedule schedule = hierarchical_all_reduce(options);
  std::size_t chunks_between_hosts = 0;
  for (int rank = 0; rank < 12; ++rank) {
    for (const ThreadBlock& block : schedule.ranks[static_cast<std::size_t>(rank)].blocks) {
      if (block.send_peer / 4 == rank / 4) continue;
      EXPECT_EQ(block.send_peer % 4, rank % 4);
      for (const Step& step : block.steps) chunks_between_hosts += sends(step.type) ? 1 : 0;
    }
  }
  // 2 S (H-1)/H from each host.
  EXPECT_EQ(chunks_between_hosts, 3 * 2 * schedule.chunks * 2 / 3);
}

TEST(HierarchicalAllReduce, RefusesMoreChannelsThanThereAreForTwoRings) {
  AlgorithmOptions options;
  options.ranks = 4;
  options.gpus_per_host = 2;
  options.channels = 33;
  EXPECT_THROW(hierarchical_all_reduce(options), std::invalid_argument);
}

// The transfers that data and dependencies have follow each other over the wire, at the most.
int longest_chain(const Schedule& schedule) {
  struct Place {
    int rank;
    std::size_t block;
  };
  std::vector<std::vector<std::vector<int>>> depths;  // after each step
  std::vector<std::vector<int>> waits;                // for other thread blocks
  std::map<std::tuple<int, int, int>, std::deque<int>> fifos;
  for (const RankProgram& program : schedule.ranks) {
    depths.emplace_back(program.blocks.size());
    waits.emplace_back(program.blocks.size());
  }
  int longest = 0;
  bool has_moved = true;
  while (has_moved) {
    has_moved = false;
    for (int rank = 0; rank < schedule.rank_count(); ++rank) {
      const RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
      auto& of_rank = depths[static_cast<std::size_t>(rank)];
      for (std::size_t b = 0; b < program.blocks.size(); ++b) {
        const ThreadBlock& block = program.blocks[b];
        while (of_rank[b].size() < block.steps.size()) {
          const Step& step = block.steps[of_rank[b].size()];
          int& waited = waits[static_cast<std::size_t>(rank)][b];
          if (step.depends_on_block != kNone) {
            const auto& awaited = of_rank[static_cast<std::size_t>(step.depends_on_block)];
            if (awaited.size() <= static_cast<std::size_t>(step.depends_on_step)) break;
            waited = std::max(waited, awaited[static_cast<std::size_t>(step.depends_on_step)]);
          }
          int depth = waited;
          if (receives(step.type)) {
            auto& fifo = fifos[{block.receive_peer, rank, block.channel}];
            if (fifo.empty()) break;
            depth = std::max(depth, fifo.front());
            fifo.pop_front();
          }
          if (sends(step.type)) {
            fifos[{rank, block.send_peer, block.channel}].push_back(depth + 1);
          }
          longest = std::max(longest, depth);
          of_rank[b].push_back(depth);
          has_moved = true;
        }
      }
    }
  }
  return longest;
}

TEST(Algorithms, TakeTheStepsThatTheirCostSays) {
  AlgorithmOptions options;
  options.ranks = 16;
  const auto steps = [&](const char* name) { return longest_chain(make_schedule(name, options)); };
  EXPECT_EQ(steps("ring_all_reduce"), 30);
  EXPECT_EQ(steps("simple_ring_all_reduce"), 30);
  EXPECT_EQ(steps("two_shot_all_reduce"), 2);
  EXPECT_EQ(steps("halving_doubling_all_reduce"), 8);
  EXPECT_EQ(steps("bruck_all_gather"), 4);
  EXPECT_EQ(steps("pat_all_gather"), 4);
  EXPECT_EQ(steps("pat_reduce_scatter"), 4);
  EXPECT_EQ(steps("bruck_all_to_all"), 4);
  EXPECT_EQ(steps("direct_gather"), 1);
  EXPECT_EQ(steps("binomial_gather"), 4);
  EXPECT_EQ(steps("binomial_scatter"), 4);
  EXPECT_EQ(steps("all_pairs_all_to_all_v"), 1);
  EXPECT_EQ(steps("doubling_barrier"), 4);
  options.gpus_per_host = 4;
  EXPECT_EQ(steps("hierarchical_all_reduce"), 2 * 3 + 2 * 3);
  options.gpus_per_host = 1;
  options.ranks = 15;
  EXPECT_EQ(steps("halving_doubling_all_reduce"), 6 + 2);
  EXPECT_EQ(steps("doubling_barrier"), 3 + 2);
  EXPECT_EQ(steps("pat_all_gather"), 3);  // no offset below 15 has more bits
}

TEST(Algorithms, UnknownNameIsRefusedWithThoseThatExist) {
  try {
    make_schedule("butterfly", {});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("ring_all_reduce, one_shot"), std::string::npos);
  }
}

TEST(Algorithms, RefuseASizeThatIsNotForMemory) {
  AlgorithmOptions options;
  options.ranks = 16'384;
  EXPECT_THROW(ring_all_reduce(options), std::invalid_argument);
  EXPECT_THROW(all_pairs_all_to_all(options), std::invalid_argument);
}

TEST(RingAllReduce, TakesTwoStepsPerRankLessOne) {
  AlgorithmOptions options;
  options.ranks = 8;
  options.channels = 2;
  const Schedule schedule = ring_all_reduce(options);
  for (const RankProgram& program : schedule.ranks) {
    ASSERT_EQ(program.blocks.size(), 2u);
    EXPECT_EQ(program.blocks[0].steps.size(), 2u * 8 - 1);
  }
  EXPECT_EQ(schedule.chunks, 16u);
}

// --- rail_rings -----------------------------------------------------------------------------

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
