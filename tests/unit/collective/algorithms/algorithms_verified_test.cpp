// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/verify/verify.hpp"

namespace towpath::collective {
namespace {

// Bytes on the wire, in chunks that all ranks send.
std::size_t chunks_sent(const Schedule& schedule) {
  std::size_t count = 0;
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) {
      for (const Step& step : block.steps) count += sends(step.type) ? step.count : 0;
    }
  }
  return count;
}

class EveryVerifiedAlgorithm : public testing::TestWithParam<Algorithm> {};

// Those with one-sided steps are in one_sided_test.cpp.
std::vector<Algorithm> fifo_algorithms() {
  std::vector<Algorithm> found;
  std::ranges::copy_if(algorithms(), std::back_inserter(found),
                       [](const Algorithm& algorithm) { return algorithm.reach == Reach::fifo; });
  return found;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryVerifiedAlgorithm, testing::ValuesIn(fifo_algorithms()),
                         [](const auto& info) { return std::string(info.param.name); });

// Right for any order of thread blocks, with the slots there are, and without a race; with several
// chunks in a transfer, one chunk in one, and chunks that take several.
TEST_P(EveryVerifiedAlgorithm, IsVerifiedOnOneToTwentyRanksAndSeveralHosts) {
  for (int ranks = 1; ranks <= 20; ++ranks) {
    for (const int gpus : {1, 2, 3, 4}) {
      if (ranks % gpus != 0) continue;
      AlgorithmOptions options;
      options.ranks = ranks;
      options.gpus_per_host = gpus;
      options.channels = 1 + ranks % 2;
      if (has_root(GetParam().collective)) options.root = ranks / 2;
      options.protocol = ranks % 3 == 0 ? Protocol::ll : Protocol::simple;
      const Schedule schedule = GetParam()(options);
      for (const std::uint64_t chunk_elements : {1u, 100'000u, 1'200'000u}) {
        const Verdict verdict = verify(schedule, schedule.chunks * chunk_elements, 4);
        EXPECT_TRUE(verdict.is_correct() && verdict.not_checked.empty())
            << ranks << " ranks, " << gpus << " per host, chunks of " << chunk_elements << ": "
            << (verdict.findings.empty() ? "" : verdict.findings[0].sentence);
      }
    }
  }
}

TEST_P(EveryVerifiedAlgorithm, NeverHangsOnEightRanks) {
  AlgorithmOptions options;
  options.ranks = 8;
  options.gpus_per_host = 4;
  options.channels = 2;
  EXPECT_EQ(smallest_hanging_size(GetParam()(options), 4, std::uint64_t{1} << 31), std::nullopt);
}

// One put for each pair and channel, of which several thread blocks add up a piece each.
TEST(AllPairsReduceScatter, ThreadBlocksAddUpPiecesOfWhatAChannelBrings) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const int reducers : {1, 2, 3}) {
      AlgorithmOptions options;
      options.ranks = ranks;
      options.channels = 2;
      options.reducers = reducers;
      const Schedule schedule = all_pairs_reduce_scatter(options);
      EXPECT_TRUE(verify(schedule, 3 * schedule.chunks, 4).is_correct())
          << ranks << ", " << reducers;
      if (ranks == 1) continue;
      const auto local = static_cast<std::size_t>(2 * reducers);
      const std::size_t pairs = 2 * static_cast<std::size_t>(ranks - 1);
      EXPECT_EQ(schedule.ranks[0].blocks.size(), pairs + local);
    }
  }
}

TEST(AllToAllV, SendsOnlyWhatThePatternSays) {
  AlgorithmOptions options;
  options.ranks = 3;
  options.channels = 2;
  options.chunks_per_channel = 2;
  options.pattern = {1, 0, 4, 2, 3, 0, 4, 1, 2};
  const Schedule schedule = all_pairs_all_to_all_v(options);
  EXPECT_EQ(chunks_sent(schedule), 0u + 4 + 2 + 0 + 4 + 1);
  EXPECT_TRUE(verify(schedule, 12 * 5, 4).is_correct());
}

TEST(AllToAllV, OneChunkLessThanThePatternSaysIsWrongData) {
  AlgorithmOptions options;
  options.ranks = 3;
  options.pattern = {1, 2, 4, 2, 3, 0, 4, 1, 2};
  Schedule schedule = all_pairs_all_to_all_v(options);
  schedule.pattern[5] = 1;
  const Verdict verdict = verify(schedule, 12 * 5, 4);
  ASSERT_FALSE(verdict.is_correct());
  EXPECT_EQ(verdict.findings[0].kind, FindingKind::wrong_data);
  EXPECT_EQ(verdict.findings[0].rank, 2);
}

TEST(SendRecv, FollowsAnyPermutationAlsoWithRanksThatKeepTheirArray) {
  AlgorithmOptions options;
  options.ranks = 5;
  options.channels = 2;
  options.pattern = {3, 1, 4, 0, 2};
  const Schedule schedule = direct_send_recv(options);
  EXPECT_TRUE(verify(schedule, 101, 4).is_correct());
}

TEST(Patterns, ThatAreImpossibleAreRefused) {
  AlgorithmOptions options;
  options.ranks = 3;
  const auto refuses = [&](const Algorithm& algorithm, std::vector<std::uint32_t> pattern) {
    options.pattern = std::move(pattern);
    EXPECT_THROW(algorithm(options), std::invalid_argument);
  };
  refuses(direct_send_recv, {0, 1});
  refuses(direct_send_recv, {0, 1, 1});
  refuses(direct_send_recv, {0, 1, 3});
  refuses(all_pairs_all_to_all_v, {1, 1, 1});
  refuses(all_pairs_all_to_all_v, {1, 1, 1, 1, 5, 1, 1, 1, 1});
}

// --- trees ---------------------------------------------------------------------------------------

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
  EXPECT_EQ(steps("half_ring_reduce_scatter"), 8);
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
  EXPECT_EQ(steps("half_ring_reduce_scatter"), 7);
}

}  // namespace
}  // namespace towpath::collective
