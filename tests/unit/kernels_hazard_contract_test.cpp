// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

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
