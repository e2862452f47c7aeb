// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <string>

#include "fabric_programs.hpp"
#include "program_generator.hpp"

// Contract of hazards: no correct program is accused, and every program with one mistake is, of the
// right one, at the right core. TOWPATH_LONG_TESTS=1 tries 10,000.

namespace towpath::tenstorrent::kernels {
namespace {

std::uint64_t programs(std::uint64_t few) {
  return std::getenv("TOWPATH_LONG_TESTS") != nullptr ? 10'000 : few;
}

TEST(HazardContract, CorrectProgramsRunClean) {
  for (std::uint64_t seed = 1; seed <= programs(300); ++seed) {
    const Plan plan = random_plan(seed);
    const Outcome outcome = run(plan);
    ASSERT_EQ(outcome.hazard, "none") << outcome.sentence << "\n" << plan.describe();
  }
}

TEST(HazardContract, OneMistakeIsReportedByItsNameAndCore) {
  std::string missed;
  for (std::uint64_t seed = 1; seed <= programs(300); ++seed) {
    const auto mistake = static_cast<Mistake>(1 + seed % kMistakes);
    Plan plan = random_plan(seed);
    const Expected expected = inject(plan, mistake, seed);
    const Outcome outcome = run(plan);
    if (is_right(outcome, expected)) continue;
    missed += fmt::format("{}: {} {}\n  {}\n", name_of(mistake), outcome.hazard, outcome.sentence,
                          plan.describe());
  }
  EXPECT_EQ(missed, "");
}

// The same programs with their workers and their kernels on Ethernet cores in source form.
TEST(HazardContract, CorrectProgramsInSourceFormRunClean) {
  for (std::uint64_t seed = 1; seed <= programs(60); ++seed) {
    const Plan plan = random_plan(seed, true);
    const Outcome outcome = run(plan);
    ASSERT_EQ(outcome.hazard, "none") << outcome.sentence << "\n" << plan.describe();
  }
}

TEST(HazardContract, OneMistakeInSourceFormIsReportedByItsNameAndCore) {
  std::string missed;
  for (std::uint64_t seed = 1; seed <= programs(60); ++seed) {
    const auto mistake = static_cast<Mistake>(1 + seed % kMistakes);
    Plan plan = random_plan(seed, true);
    const Expected expected = inject(plan, mistake, seed);
    const Outcome outcome = run(plan);
    if (is_right(outcome, expected)) continue;
    missed += fmt::format("{}: {} {}\n  {}\n", name_of(mistake), outcome.hazard, outcome.sentence,
                          plan.describe());
  }
  EXPECT_EQ(missed, "");
}

// --- over the fabric's routers -------------------------------------------------------------------

// A tenth of the long run each; without it the first part runs a few.
class FabricContract : public testing::TestWithParam<std::uint64_t> {
 protected:
  template <typename Action>
  static void each_seed(Action action) {
    const std::uint64_t all = programs(0) / kParts;
    const std::uint64_t count = all > 0 ? all : (GetParam() == 0 ? 40 : 0);
    if (count == 0) GTEST_SKIP() << "a part of the long run";
    for (std::uint64_t i = 1; i <= count; ++i) action(GetParam() * all + i);
  }

 public:
  static constexpr std::uint64_t kParts = 10;
};

TEST_P(FabricContract, CorrectProgramsRunClean) {
  each_seed([](std::uint64_t seed) {
    const FabricPlan plan = random_fabric_plan(seed);
    const Outcome outcome = run(plan);
    ASSERT_EQ(outcome.hazard, "none") << outcome.sentence << "\n" << plan.describe();
  });
}

TEST_P(FabricContract, OneMistakeIsReportedByItsNameAndCore) {
  std::string missed;
  each_seed([&](std::uint64_t seed) {
    const Mistake mistake = kFabricMistakes[seed % std::size(kFabricMistakes)];
    FabricPlan plan = random_fabric_plan(seed);
    const Expected expected = inject(plan, mistake, seed);
    const Outcome outcome = run(plan);
    if (is_right(outcome, expected)) return;
    missed += fmt::format("{}: {} {}\n  {}\n", name_of(mistake), outcome.hazard, outcome.sentence,
                          plan.describe());
  });
  EXPECT_EQ(missed, "");
}

// A sender that has happened to see more than it waited for, and a receiver that sees the next
// message's word with its own: neither may rely on it.
TEST(HazardContract, WhatAWaitHappensToSeeIsNotKnown) {
  for (const std::uint64_t seed : {145, 313, 619, 691, 1081, 1099, 1201, 1279}) {
    FabricPlan plan = random_fabric_plan(seed);
    const Mistake mistake = kFabricMistakes[seed % std::size(kFabricMistakes)];
    const Expected expected = inject(plan, mistake, seed);
    const Outcome outcome = run(plan);
    EXPECT_TRUE(is_right(outcome, expected)) << outcome.hazard << "\n" << plan.describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, FabricContract,
                         testing::Range<std::uint64_t>(0, FabricContract::kParts));

// For each chip the worker, the mover that sends and the one of the next chip that receives.
TEST(HazardContract, CycleOfADeadlockAroundTheRingIsReported) {
  int rings = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Plan plan = random_plan(seed);
    if (!plan.shape.is_ring) continue;
    ++rings;
    const Expected expected = inject(plan, Mistake::buffer_chain_too_small, seed);
    const Outcome outcome = run(plan);
    EXPECT_TRUE(is_right(outcome, expected)) << outcome.sentence;
    EXPECT_EQ(outcome.cores.size(), static_cast<std::size_t>(3 * plan.shape.chips))
        << outcome.sentence;
  }
  EXPECT_GT(rings, 10);
}

}  // namespace
}  // namespace towpath::tenstorrent::kernels
