// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/verify/verify.hpp"

namespace towpath::collective {
namespace {

// 16-byte elements, so that LL's transfers hold 2,048.
constexpr std::uint64_t kElementBytes = 16;

AlgorithmOptions options_of_grid(int columns, int rows, bool row_rings, bool column_rings) {
  AlgorithmOptions options;
  options.ranks = columns * rows;
  options.columns = columns;
  options.row_rings = row_rings;
  options.column_rings = column_rings;
  return options;
}

class LinesAndGrids : public testing::TestWithParam<Algorithm> {};

TEST_P(LinesAndGrids, ComputeTheirCollectiveOnMeshesAndTori) {
  constexpr std::array<std::pair<int, int>, 8> kSizes = {
      {{1, 1}, {1, 5}, {5, 1}, {2, 2}, {4, 2}, {2, 4}, {3, 3}, {8, 4}}};
  for (const auto& [columns, rows] : kSizes) {
    for (const int rings : {0, 1, 2, 3}) {
      for (const int channels : {1, 2}) {
        AlgorithmOptions options = options_of_grid(columns, rows, rings % 2 == 1, rings / 2 == 1);
        options.channels = channels;
        const Schedule schedule = GetParam()(options);
        const std::uint64_t elements = element_granularity(schedule) * 13;
        const Verdict verdict = verify(schedule, elements, kElementBytes);
        EXPECT_TRUE(verdict.is_correct() && verdict.not_checked.empty())
            << columns << " x " << rows << ", rings " << rings << ", " << channels
            << " channels: " << (verdict.findings.empty() ? "" : verdict.findings.front().sentence);
      }
    }
  }
}

TEST_P(LinesAndGrids, AreRightInSeveralIterationsAndWithRingsThatGoBack) {
  for (const bool is_torus : {false, true}) {
    AlgorithmOptions options = options_of_grid(4, 2, is_torus, is_torus);
    options.channels = 2;
    options.protocol = Protocol::ll;
    options.rings = {{0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}};
    const Schedule schedule = GetParam()(options);
    const std::uint64_t elements = schedule.chunks * 5'000ull;
    ASSERT_EQ(Chunking(schedule, elements, kElementBytes).iterations(), 3u);
    const Verdict verdict = verify(schedule, elements, kElementBytes);
    EXPECT_TRUE(verdict.is_correct())
        << (verdict.findings.empty() ? "" : verdict.findings.front().sentence);
    EXPECT_FALSE(smallest_hanging_size(schedule, 4, 1 << 22));
  }
}

// A rank copies its own part beside the block that sends it; in place, onto itself.
TEST(RingAllGather, HasNoRaceInPlace) {
  AlgorithmOptions options;
  options.ranks = 4;
  options.channels = 2;
  const Schedule schedule = ring_all_gather(options);
  ASSERT_TRUE(schedule.in_place);
  const Verdict verdict = verify(schedule, element_granularity(schedule) * 13, kElementBytes);
  EXPECT_TRUE(verdict.is_correct() && verdict.not_checked.empty())
      << (verdict.findings.empty() ? "" : verdict.findings.front().sentence);
}

void expect_neighbours(const Schedule& schedule, int columns, int rows, bool is_torus) {
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    for (const ThreadBlock& block : schedule.ranks[static_cast<std::size_t>(rank)].blocks) {
      if (block.send_peer == kNone) continue;
      const int across = std::abs(block.send_peer % columns - rank % columns);
      const int down = std::abs(block.send_peer / columns - rank / columns);
      const bool is_round =
          (across == columns - 1 && down == 0) || (across == 0 && down == rows - 1);
      EXPECT_TRUE(across + down == 1 || (is_torus && is_round)) << rank << " > " << block.send_peer;
    }
  }
}

TEST(GridAlgorithms, SendToNeighboursOnly) {
  for (const bool is_torus : {false, true}) {
    for (const char* name : {"grid_all_gather", "grid_reduce_scatter", "grid_all_reduce"}) {
      expect_neighbours(make_schedule(name, options_of_grid(4, 3, is_torus, is_torus)), 4, 3,
                        is_torus);
    }
  }
}

std::vector<Algorithm> grid_algorithms() {
  std::vector<Algorithm> found;
  std::ranges::copy_if(algorithms(), std::back_inserter(found), [](const Algorithm& algorithm) {
    return algorithm.name.starts_with("grid_") || algorithm.name.starts_with("line_");
  });
  return found;
}
INSTANTIATE_TEST_SUITE_P(Algorithms, LinesAndGrids, testing::ValuesIn(grid_algorithms()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GridAlgorithms, TakeTheColumnsFirstOnEveryOtherChannelOfAMesh) {
  for (const bool is_torus : {false, true}) {
    AlgorithmOptions options = options_of_grid(4, 4, is_torus, is_torus);
    options.channels = 2;
    std::map<int, std::size_t> along_rows;  // by channel
    const Schedule schedule = grid_all_gather(options);
    for (int rank = 0; rank < 16; ++rank) {
      for (const ThreadBlock& block : schedule.ranks[static_cast<std::size_t>(rank)].blocks) {
        if (block.send_peer == kNone || block.send_peer / 4 != rank / 4) continue;
        along_rows[block.channel] += block.steps.size();
      }
    }
    EXPECT_EQ(along_rows[0] == along_rows[1], is_torus);
    EXPECT_LE(along_rows[0], along_rows[1]);
  }
}

// By all ranks, in chunks.
std::size_t chunks_sent(const Schedule& schedule) {
  std::size_t count = 0;
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) {
      for (const Step& step : block.steps) count += sends(step.type) ? step.count : 0;
    }
  }
  return count;
}

TEST(GridAlgorithms, SendOnATorusTheBytesThatARingOfAllRanksSends) {
  const AlgorithmOptions torus = options_of_grid(4, 3, true, true);
  const auto of_array = [&](const char* name) {
    const Schedule schedule = make_schedule(name, torus);
    return static_cast<double>(chunks_sent(schedule)) / schedule.chunks;
  };
  EXPECT_DOUBLE_EQ(of_array("grid_all_gather"), 11);
  EXPECT_DOUBLE_EQ(of_array("grid_reduce_scatter"), 11);
  EXPECT_DOUBLE_EQ(of_array("grid_all_reduce"), 2.0 * 11);
}

}  // namespace
}  // namespace towpath::collective
