// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/steps.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "schedules.hpp"
#include "sentence.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/schedule/symmetry.hpp"
#include "towpath/collective/schedule/wiring.hpp"

namespace towpath::collective {
namespace {
using namespace samples;

Step send_of(std::uint32_t chunk) {
  return {.type = StepType::send, .source_chunk = chunk, .destination_chunk = chunk, .count = 1};
}

// A grid of 2 rows of 3 chunks, of which the steps take all, and one chunk besides.
std::shared_ptr<StepList> grid() {
  auto list = std::make_shared<StepList>();
  list->rows = 2;
  list->columns = 3;
  for (std::uint32_t chunk = 0; chunk < 7; ++chunk) list->steps.push_back(send_of(chunk));
  return list;
}

std::vector<std::uint32_t> chunks_of(const Steps& steps) {
  std::vector<std::uint32_t> chunks;
  for (const Step& step : steps) {
    EXPECT_EQ(step.source_chunk, step.destination_chunk);
    chunks.push_back(step.source_chunk);
  }
  return chunks;
}

// The same with a list of steps for each thread block.
Schedule written_out(Schedule schedule) {
  for (RankProgram& program : schedule.ranks) {
    for (ThreadBlock& block : program.blocks) {
      const Steps& shared = block.steps;
      block.steps = std::vector<Step>(shared.begin(), shared.end());
    }
  }
  return schedule;
}

TEST(Steps, RotateRowsAndColumnsAndKeepOtherChunks) {
  using Chunks = std::vector<std::uint32_t>;
  EXPECT_EQ(chunks_of(Steps(grid(), {})), (Chunks{0, 1, 2, 3, 4, 5, 0}));
  EXPECT_EQ(chunks_of(Steps(grid(), {.row_shift = 1})), (Chunks{3, 4, 5, 0, 1, 2, 0}));
  EXPECT_EQ(chunks_of(Steps(grid(), {.column_shift = 2})), (Chunks{2, 0, 1, 5, 3, 4, 0}));
  EXPECT_EQ(chunks_of(Steps(grid(), {.row_shift = 1, .column_shift = 1, .first_chunk = 10})),
            (Chunks{14, 15, 13, 11, 12, 10, 10}));
}

TEST(Steps, OrderTheRowsAfterTheRotation) {
  auto list = grid();
  list->order = {1, 0};
  EXPECT_EQ(chunks_of(Steps(list, {})), (std::vector<std::uint32_t>{3, 4, 5, 0, 1, 2, 0}));
  EXPECT_EQ(chunks_of(Steps(list, {.row_shift = 1})),
            (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 0}));
}

TEST(Steps, AreEqualHoweverTheyAreKept) {
  const Steps shared(grid(), {.row_shift = 1});
  EXPECT_EQ(shared, Steps({send_of(3), send_of(4), send_of(5), send_of(0), send_of(1), send_of(2),
                           send_of(0)}));
  EXPECT_EQ(shared, Steps(grid(), {.row_shift = 1}));
  EXPECT_FALSE(shared == Steps(grid(), {}));
  EXPECT_EQ(Steps(), Steps(std::vector<Step>{}));
}

TEST(Steps, AChangeIsNobodyElses) {
  const auto list = grid();
  Steps changed(list, {.row_shift = 1});
  const Steps other(list, {});
  changed[0].count = 5;
  changed.push_back(send_of(9));
  EXPECT_EQ(chunks_of(std::as_const(changed)),
            (std::vector<std::uint32_t>{3, 4, 5, 0, 1, 2, 0, 9}));
  EXPECT_EQ(std::as_const(changed)[0].count, 5u);
  EXPECT_EQ(other[0].count, 1u);
  EXPECT_EQ(other.size(), 7u);

  Steps own = {send_of(1)};
  const Steps copy = own;
  own.clear();
  own.push_back(send_of(2));
  EXPECT_EQ(copy, Steps({send_of(1)}));
}

// --- schedules that share steps ------------------------------------------------------------------

std::vector<Schedule> schedules_that_share() {
  std::vector<Schedule> schedules;
  for (const char* name : {"ring_all_reduce", "ring_all_gather", "ring_reduce_scatter",
                           "half_ring_reduce_scatter", "hierarchical_all_reduce"}) {
    AlgorithmOptions options;
    options.ranks = 12;
    options.channels = 3;
    options.gpus_per_host = 3;
    schedules.push_back(make_schedule(name, options));
    options.rings = rail_rings(4, 3, 3);
    schedules.push_back(make_schedule(name, options));
  }
  return schedules;
}

TEST(SharedSteps, ChangeNothingForWhoReadsThem) {
  for (const Schedule& shared : schedules_that_share()) {
    const Schedule plain = written_out(shared);
    EXPECT_TRUE(shared == plain) << shared.name;
    EXPECT_EQ(fingerprint(shared), fingerprint(plain)) << shared.name;
    EXPECT_EQ(step_count(shared), step_count(plain)) << shared.name;
    EXPECT_EQ(rotation_period(shared), rotation_period(plain)) << shared.name;
    EXPECT_NO_THROW(check_structure(shared));
    EXPECT_NO_THROW(check_structure(plain));
  }
}

TEST(SharedSteps, AreOnePerListHoweverManyRanks) {
  AlgorithmOptions options;
  options.ranks = 100;
  options.channels = 4;
  int visited = 0;
  const Schedule ring = make_schedule("ring_all_reduce", options);
  any_distinct_steps(ring, [&visited](const ThreadBlock&) {
    ++visited;
    return false;
  });
  EXPECT_EQ(visited, 1);
}

TEST(SharedSteps, AreCheckedOnAllRanks) {
  Schedule schedule = make_schedule("ring_all_reduce", [] {
    AlgorithmOptions options;
    options.ranks = 6;
    return options;
  }());
  const StepList list = *schedule.ranks[4].blocks[0].steps.list();
  schedule.ranks[4].blocks[0].steps =
      Steps(std::make_shared<StepList>(list), {.row_shift = 4, .first_chunk = 1});
  EXPECT_NE(sentence_of<ScheduleError>([&] { check_structure(schedule); }).find("rank 4"),
            std::string::npos);
}

// --- the period ----------------------------------------------------------------------------------

TEST(RotationPeriod, IsTheLeastShiftOfRanksThatChangesNothing) {
  EXPECT_EQ(rotation_period(samples::ring_all_reduce(6, 2)), 1);
  AlgorithmOptions options;
  options.ranks = 12;
  options.gpus_per_host = 3;
  EXPECT_EQ(rotation_period(hierarchical_all_reduce(options)), 3);
  options.channels = 3;
  options.rings = rail_rings(4, 3, 3);  // an odd host leaves by another rail than an even one
  EXPECT_EQ(rotation_period(make_schedule("ring_all_gather", options)), 6);
}

TEST(RotationPeriod, IsAllRanksWhereOneDiffers) {
  AlgorithmOptions options;
  options.ranks = 8;
  EXPECT_EQ(rotation_period(tree_all_reduce(options)), 8);
  Schedule schedule = samples::ring_all_reduce(6, 2);
  schedule.ranks[5].blocks[0].channel = 1;
  EXPECT_EQ(rotation_period(schedule), 6);
  schedule = samples::ring_all_reduce(6, 2);
  schedule.ranks[2].blocks[0].steps[1].count = 0;
  EXPECT_EQ(rotation_period(schedule), 6);
}

TEST(RotationPeriod, DoesNotTakePeersThatDoNotExistForImages) {
  Schedule schedule = samples::ring_all_reduce(4, 1);
  for (RankProgram& program : schedule.ranks) program.blocks[0].send_peer = 9;
  EXPECT_EQ(rotation_period(schedule), 4);
  EXPECT_THROW(check_structure(schedule), ScheduleError);
}

}  // namespace
}  // namespace towpath::collective
