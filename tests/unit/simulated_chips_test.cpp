// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "fabrics.hpp"
#include "sentence.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/plan.hpp"
#include "towpath/run/simulated_run.hpp"

namespace towpath::run {
namespace {

using collective::AlgorithmOptions;
using collective::Buffers;

struct Result {
  Time time;
  std::vector<std::vector<std::int32_t>> outputs;
};

// All-reduce of `count` integers on four chips in a ring; rank r has r + i in place i.
Result all_reduce(std::uint64_t count, int channels, std::uint64_t seed) {
  AlgorithmOptions options;
  options.ranks = 4;
  options.channels = channels;
  const auto plan = collective::make_plan(
      std::make_shared<collective::Schedule>(collective::ring_all_reduce(options)), count,
      {transport::DataType::int32, transport::ReductionOperation::sum});
  SimulatedRunOptions run_options;
  run_options.seed = seed;
  SimulatedRun run(machine::chips_on_grid(4, 1, true, 1), plan, run_options);
  std::vector<std::vector<std::int32_t>> inputs(4, std::vector<std::int32_t>(count));
  Result result{Time(), inputs};
  std::vector<Buffers> buffers;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::size_t i = 0; i < count; ++i) {
      inputs[rank][i] = static_cast<std::int32_t>(rank + i);
    }
    buffers.push_back({reinterpret_cast<const std::byte*>(inputs[rank].data()),
                       reinterpret_cast<std::byte*>(result.outputs[rank].data())});
  }
  result.time = run.invoke(buffers);
  return result;
}

TEST(SimulatedChips, AnAllReduceGivesTheSumOnAllRanks) {
  for (const std::uint64_t count : {12u, 1'200u, 60'000u}) {
    for (const int channels : {1, 3}) {
      const Result result = all_reduce(count, channels, 1);
      for (const auto& output : result.outputs) {
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(output[i], static_cast<std::int32_t>(6 + 4 * i)) << i << " of " << count;
        }
      }
    }
  }
}

TEST(SimulatedChips, JitterIsRefused) {
  AlgorithmOptions algorithm;
  algorithm.ranks = 4;
  const auto plan = collective::make_plan(
      std::make_shared<collective::Schedule>(collective::ring_all_reduce(algorithm)), 12,
      {transport::DataType::int32, transport::ReductionOperation::sum});
  SimulatedRunOptions options;
  options.jitter_max = Time::from_ns(5);
  EXPECT_EQ(
      sentence_of([&] { SimulatedRun(machine::chips_on_grid(4, 1, true, 1), plan, options); }),
      "cluster 'grid': a cluster of chips has no jitter, of which up to 5 ns are asked for; a "
      "seed is enough");
}

TEST(SimulatedChips, TheSameRunTakesTheSameTime) {
  EXPECT_EQ(all_reduce(6'000, 2, 1).time.ps(), all_reduce(6'000, 2, 1).time.ps());
}

TEST(SimulatedChips, ACallTakesAtLeastItsEntryAndTheWayRoundTheRing) {
  // Six steps one after the other, each over a link of 400 ns, after a greeting over one.
  EXPECT_GT(all_reduce(12, 1, 1).time, Time::from_ns(7 * 400));
}

}  // namespace
}  // namespace towpath::run
