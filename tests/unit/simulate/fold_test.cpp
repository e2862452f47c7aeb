// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/fold.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "random_hosts.hpp"
#include "towpath/simulate/simulated_gpus.hpp"
#include "towpath/simulate/simulated_run.hpp"

namespace towpath::simulate {
namespace {
using namespace literals;
using namespace random_hosts;

std::vector<int> first_gpus(const Plan& plan) {
  return places_of_ranks({}, plan.schedule->rank_count());
}

struct Outcome {
  Time first;
  Time second;
  std::vector<gpu_links::LinkLoad> loads;
  int simulated_ranks;
  bool may_differ;
};

std::unique_ptr<SimulatedRun> simulated(const std::shared_ptr<const machine::Machine>& machine,
                                        const std::shared_ptr<const Plan>& plan, const Fold& fold,
                                        bool is_plain = false) {
  SimulatedGpusOptions options;
  options.carries_data = false;
  options.is_plain = is_plain;
  options.fold = fold;
  return std::make_unique<SimulatedRun>(
      std::make_unique<SimulatedGpus>(machine, plan->schedule->rank_count(), options), plan);
}

Outcome run(const std::shared_ptr<const machine::Machine>& machine,
            const std::shared_ptr<const Plan>& plan, const Fold& fold, bool is_plain = false) {
  const std::unique_ptr<SimulatedRun> made = simulated(machine, plan, fold, is_plain);
  SimulatedRun& run = *made;
  const Time first = run.invoke({});
  const Time second = run.invoke({});
  return {first, second, run.loads(), run.simulated_ranks(), run.may_differ()};
}

void expect_equal(const Outcome& folded, const Outcome& all) {
  EXPECT_EQ(folded.first.ps(), all.first.ps());
  EXPECT_EQ(folded.second.ps(), all.second.ps());
  expect_equal_loads(folded.loads, all.loads);
}

TEST(Fold, IsExactOnRandomMachines) {
  int folded = 0;
  int may_differ = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    sim::Random random(seed, "fold");
    Figures figures(random);
    const Size size{figures.between(1, 6), figures.between(1, 4)};
    if (size.hosts * size.gpus < 2) continue;
    const auto machine = RandomMachine(size, figures).build();
    const auto plan =
        plan_of(random_schedule(size, figures),
                static_cast<std::uint64_t>(figures.between(1, 1 << figures.between(1, 20))));
    SCOPED_TRACE(fmt::format("{} hosts of {} GPUs, {}, {} channels", size.hosts, size.gpus,
                             plan->schedule->name, plan->schedule->channels));
    if (!has_ways(*machine, *plan)) continue;
    const Fold fold = find_fold(*machine, *plan, first_gpus(*plan));
    if (!fold) continue;
    ++folded;
    const Outcome less = run(machine, plan, fold);
    EXPECT_EQ(less.simulated_ranks, fold.period);
    EXPECT_EQ(simulated(machine, plan, fold)->invoke_within(less.first), less.first);
    const Outcome plain = run(machine, plan, fold, true);
    EXPECT_EQ(plain.may_differ, less.may_differ);
    expect_equal(less, plain);
    if (less.may_differ) {
      ++may_differ;
    } else {
      expect_equal(less, run(machine, plan, {}));
    }
  }
  EXPECT_GE(folded, 600);
  EXPECT_GE(may_differ, 10);
}

}  // namespace
}  // namespace towpath::simulate
