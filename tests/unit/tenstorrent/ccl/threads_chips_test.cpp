// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fabrics.hpp"
#include "random_gpus.hpp"
#include "towpath/base/deadlock_error.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/sim/trace.hpp"
#include "towpath/simulate/simulated_run.hpp"
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"

// Chips that are simulated side by side, by any number of threads, against all in one simulation.

namespace towpath::tenstorrent::ccl {
namespace {

using simulate::SimulatedRun;
using namespace literals;
using collective::AlgorithmOptions;
using collective::Buffers;
using collective::Plan;
using machine::ChipCluster;

constexpr int kPlain = 0;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  int between(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool flip() { return between(0, 1) == 1; }

 private:
  std::mt19937_64 engine_;
};

struct Case {
  std::shared_ptr<const ChipCluster> cluster;
  std::shared_ptr<const Plan> plan;
  bool carries_data = true;
  std::uint64_t seed = 1;
  std::string text;
};

// Chips in a row, a ring, a mesh or a torus, joined by links of any length.
Case random_case(std::uint64_t seed) {
  Dice dice(seed);
  const int columns = dice.between(2, 4);
  const int rows = dice.between(1, columns > 3 ? 1 : 2);
  const bool has_rings = columns > 2 && dice.flip();
  const int links = dice.between(1, 2);
  ChipCluster cluster = *machine::chips_on_grid(columns, rows, has_rings, links);
  const Time path = Time::from_ps(dice.between(1, 700'000));
  for (auto& chip : cluster.chips) {
    machine::Chip changed = *chip.chip;
    changed.ethernet.path_time = path;
    chip.chip = std::make_shared<const machine::Chip>(std::move(changed));
  }
  AlgorithmOptions options;
  options.ranks = columns * rows;
  options.columns = columns;
  options.channels = dice.between(1, 3);
  constexpr std::array kAlgorithms = {
      "ring_all_reduce",      "ring_all_gather", "grid_all_reduce", "line_reduce_scatter",
      "all_pairs_all_to_all", "ring_broadcast",  "direct_gather",   "tree_all_reduce"};
  const char* const name = kAlgorithms[static_cast<std::size_t>(dice.between(0, 7))];
  const auto schedule =
      std::make_shared<const collective::Schedule>(collective::make_schedule(name, options));
  const auto elements =
      schedule->chunks * static_cast<std::uint64_t>(dice.between(1, 1 << dice.between(1, 12)));
  const std::string text =
      fmt::format("{} x {} chips{}, {} links of {} ps, {} of {}", columns, rows,
                  has_rings ? " in rings" : "", links, path.ps(), name, elements);
  return {std::make_shared<const ChipCluster>(std::move(cluster)),
          collective::make_plan(schedule, elements,
                                {transport::DataType::int32, transport::ReductionOperation::sum}),
          dice.flip(), seed, text};
}

struct Outcome {
  std::vector<Time> times;  // of two invocations, one after the other
  std::uint64_t events = 0;
  std::uint64_t hash = 0;
  std::vector<sim::LinkLoad> loads;
  std::vector<std::vector<std::int32_t>> outputs;
  std::size_t partitions = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const Case& all, int threads) {
  const int ranks = all.plan->schedule->rank_count();
  SimulatedChipsOptions options;
  options.carries_data = all.carries_data;
  options.run.seed = all.seed;
  options.run.threads = threads;
  auto chips = std::make_unique<SimulatedChips>(all.cluster, ranks, options);
  Outcome outcome;
  outcome.partitions = chips->simulations().partitions();
  chips->simulations().share_every_window();
  sim::Trace trace(sim::Trace::Mode::hash_only);
  SimulatedRun run(std::move(chips), all.plan, &trace);
  // Room for all that any collective reads or writes.
  const std::uint64_t count = all.plan->chunking.elements() * static_cast<std::uint64_t>(ranks);
  std::vector<std::vector<std::int32_t>> inputs;
  std::vector<Buffers> buffers;
  if (all.carries_data) {
    outcome.outputs.assign(static_cast<std::size_t>(ranks), std::vector<std::int32_t>(count));
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::int32_t>& input = inputs.emplace_back(count);
      for (std::size_t i = 0; i < count; ++i) {
        input[i] = static_cast<std::int32_t>(i * 7 + static_cast<std::size_t>(rank) * 1'000'003);
      }
      buffers.push_back(
          {reinterpret_cast<const std::byte*>(input.data()),
           reinterpret_cast<std::byte*>(outcome.outputs[static_cast<std::size_t>(rank)].data())});
    }
  }
  for (int i = 0; i < 2; ++i) outcome.times.push_back(run.invoke(buffers));
  outcome.events = run.events();
  outcome.hash = trace.hash();
  outcome.loads = run.loads();
  return outcome;
}

TEST(ThreadsOfChips, AgreeWithOneSimulationOnRandomMachines) {
  const int cases = std::getenv("TOWPATH_LONG_TESTS") != nullptr ? 200 : 8;
  for (int number = 0; number < cases; ++number) {
    const Case each = random_case(static_cast<std::uint64_t>(number));
    SCOPED_TRACE(fmt::format("case {}: {}", number, each.text));
    Outcome plain = run(each, kPlain);
    EXPECT_EQ(plain.partitions, 1u);
    plain.partitions = each.cluster->chips.size();
    for (const int threads : {1, 2, 4, 8}) {
      SCOPED_TRACE(threads);
      const Outcome parted = run(each, threads);
      EXPECT_EQ(parted.times, plain.times);
      EXPECT_EQ(parted.hash, plain.hash);
      expect_equal_loads(parted.loads, plain.loads);
      EXPECT_EQ(parted.events, plain.events);
      EXPECT_TRUE(parted.outputs == plain.outputs);
      EXPECT_EQ(parted.partitions, plain.partitions);
    }
  }
}

}  // namespace
}  // namespace towpath::tenstorrent::ccl
