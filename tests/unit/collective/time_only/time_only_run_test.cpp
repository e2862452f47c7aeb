// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/time_only_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "random_gpus.hpp"
#include "schedules.hpp"
#include "sentence.hpp"
#include "towpath/base/deadlock_error.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/simulate/simulated_gpus.hpp"
#include "towpath/simulate/simulated_run.hpp"

// Runs of time alone, against executors over simulated GPUs as the reference.

namespace towpath::simulate {
namespace {

using namespace collective;
using namespace literals;

bool is_long() { return std::getenv("TOWPATH_LONG_TESTS") != nullptr; }

// Of GPUs around a switch that combines.
machine::GpuCost switched_cost(Figures& figures) {
  machine::GpuCost cost = random_cost(figures);
  cost.in_switch_reduction = true;
  if (figures.flip()) cost.in_switch_rate = figures.rate();
  return cost;
}

// Hosts of GPUs around a switch each, GPUs with an adapter each or in pairs, adapters at a leaf of
// their rail or of their host, leaves joined by spines. With adapters of their own, rings over
// rails meet no others between hosts.
std::shared_ptr<const machine::Machine> fat_tree(Figures& figures, int hosts, int gpus_per_host) {
  using machine::DeviceKind;
  using machine::LinkKind;
  machine::MachineBuilder builder("fat tree");
  const bool has_rails = figures.random.below(2) == 0;
  const int gpus_per_adapter = 1 + static_cast<int>(figures.random.below(2));
  const auto join = [&](int a, int b, machine::Link link) {
    link.from = a;
    link.to = b;
    builder.add_link(link);
    std::swap(link.from, link.to);
    builder.add_link(link);
  };
  const auto link_of = [&](LinkKind kind) {
    return machine::Link{0,
                         0,
                         kind,
                         figures.rate(),
                         figures.time(600_ns),
                         kind == LinkKind::network ? figures.time(50_ns) : 0_ns};
  };
  const machine::Link nvlink = link_of(LinkKind::nvlink);
  const machine::Link pcie = link_of(LinkKind::pcie);
  machine::Link cable = link_of(LinkKind::network);
  cable.latency += 1_us;
  std::vector<int> spines;
  for (int s = 0; s < 2; ++s) {
    spines.push_back(
        builder.add_device({fmt::format("spine {}", s), DeviceKind::network_switch, -1, true}));
  }
  std::vector<int> leaves;
  for (int l = 0; l < std::max(hosts, gpus_per_host); ++l) {
    leaves.push_back(
        builder.add_device({fmt::format("leaf {}", l), DeviceKind::network_switch, -1, true}));
    for (const int spine : spines) join(leaves.back(), spine, cable);
  }
  for (int h = 0; h < hosts; ++h) {
    const int crossbar =
        builder.add_device({fmt::format("switch {}", h), DeviceKind::nvswitch, h, true});
    int adapter = 0;
    for (int g = 0; g < gpus_per_host; ++g) {
      if (g % gpus_per_adapter == 0) {
        adapter = builder.add_device({fmt::format("nic {} {}", h, g), DeviceKind::nic, h, true});
        join(adapter, leaves[static_cast<std::size_t>(has_rails ? g : h)], cable);
      }
      const int gpu = builder.add_device({fmt::format("gpu {} {}", h, g), DeviceKind::gpu, h});
      join(gpu, crossbar, nvlink);
      join(gpu, adapter, pcie);
    }
  }
  builder.set_gpu_cost(switched_cost(figures));
  if (hosts > 1 && figures.random.below(4) == 0)
    builder.set_gpu_cost_of_host(1, switched_cost(figures));
  return std::move(builder).build();
}

// Each GPU joined to the next one, both ways.
std::shared_ptr<const machine::Machine> ring(Figures& figures, int gpus) {
  machine::MachineBuilder builder("ring");
  for (int g = 0; g < gpus; ++g) {
    builder.add_device({fmt::format("gpu {}", g), machine::DeviceKind::gpu, 0, true});
  }
  const machine::Link wire{
      0, 0, machine::LinkKind::nvlink, figures.rate(), figures.time(500_ns), figures.time(20_ns)};
  for (int g = 0; g < gpus; ++g) {
    const int next = (g + 1) % gpus;
    if (g == next || (gpus == 2 && g == 1)) continue;
    join(builder, g, next, wire);
  }
  builder.set_gpu_cost(random_cost(figures));
  return std::move(builder).build();
}

struct Case {
  std::string words;
  std::shared_ptr<const machine::Machine> machine;
  std::shared_ptr<const Plan> plan;
};

// Nothing where the algorithm does not go with the options.
std::unique_ptr<Case> random_case(std::uint64_t seed) {
  sim::Random random(seed, "time only");
  Figures figures(random);
  const int hosts = 1 + static_cast<int>(random.below(4));
  const int gpus = 1 + static_cast<int>(random.below(5));
  const int ranks = hosts * gpus;
  if (ranks < 2) return nullptr;
  AlgorithmOptions options;
  options.ranks = ranks;
  options.channels = 1 + static_cast<int>(random.below(4));
  options.protocol = one_of<Protocol>(random, {Protocol::simple, Protocol::ll, Protocol::ll128});
  const int root = static_cast<int>(random.below(static_cast<std::uint64_t>(ranks)));
  options.gpus_per_host = gpus;
  options.chunks_per_channel = 1 + static_cast<int>(random.below(5));
  const Algorithm& algorithm = algorithms()[random.below(algorithms().size())];
  options.root = has_root(algorithm.collective) ? root : 0;
  if (algorithm.name.find("ring") == 0 && hosts > 1 && random.below(2) == 0) {
    options.rings = rail_rings(hosts, gpus, options.channels);
  }
  std::shared_ptr<Schedule> schedule;
  try {
    schedule = std::make_shared<Schedule>(algorithm(options));
  } catch (const std::invalid_argument&) {
    return nullptr;
  }
  if (has_one_sided_steps(*schedule)) return nullptr;
  const std::uint64_t granularity = element_granularity(*schedule);
  const std::uint64_t most = std::uint64_t{1} << (4 + random.below(20));
  const std::uint64_t elements = (1 + random.below(most) / granularity) * granularity;
  const auto slots_factor = static_cast<std::uint32_t>(1 + random.below(8) / 7);
  const bool is_ring = random.below(4) == 0;
  return std::make_unique<Case>(Case{
      fmt::format("seed {}: {} of {} elements, {} channels, protocol {}, {} hosts of {} GPUs{}",
                  seed, algorithm.name, elements, options.channels,
                  static_cast<int>(options.protocol), hosts, gpus, is_ring ? " in a ring" : ""),
      is_ring ? ring(figures, ranks) : fat_tree(figures, hosts, gpus),
      make_plan(schedule, elements, {}, slots_factor)});
}

struct Result {
  std::vector<Time> times;  // of two invocations, and the end of all
  std::vector<gpu_links::LinkLoad> loads;
};

std::unique_ptr<SimulatedRun> simulated(const Case& sample, bool is_plain) {
  SimulatedGpusOptions options;
  options.carries_data = false;
  options.is_plain = is_plain;
  return std::make_unique<SimulatedRun>(
      std::make_unique<SimulatedGpus>(sample.machine, sample.plan->schedule->rank_count(), options),
      sample.plan);
}

Result run(const Case& sample, bool is_plain) {
  const std::unique_ptr<SimulatedRun> run = simulated(sample, is_plain);
  Result result;
  result.times.push_back(run->invoke({}));
  result.times.push_back(run->invoke({}));
  result.times.push_back(run->now());
  result.loads = run->loads();
  return result;
}

void expect_equal(const Case& sample) {
  SCOPED_TRACE(sample.words);
  const Result fast = run(sample, false);
  const Result plain = run(sample, true);
  for (std::size_t i = 0; i < plain.times.size(); ++i) {
    EXPECT_EQ(fast.times[i].ps(), plain.times[i].ps()) << "time " << i;
  }
  expect_equal_loads(fast.loads, plain.loads);
}

// A schedule with loads and stores through switches; nothing where the options are not possible.
std::unique_ptr<Case> random_case_through_switches(std::uint64_t seed) {
  sim::Random random(seed, "through switches");
  Figures figures(random);
  AlgorithmOptions options;
  const int hosts = 1 + static_cast<int>(random.below(6));
  options.gpus_per_host = 1 + static_cast<int>(random.below(5));
  options.ranks = hosts * options.gpus_per_host;
  options.channels = 1 + static_cast<int>(random.below(4));
  options.protocol = one_of<Protocol>(random, {Protocol::simple, Protocol::ll, Protocol::ll128});
  options.chunks_per_channel = 1 + static_cast<int>(random.below(5));
  const std::string name =
      hosts > 1 ? "nvls_tree_all_reduce"
                : one_of<std::string>(random,
                                      {"nvls_tree_all_reduce", "nvls_all_reduce", "nvls_all_gather",
                                       "nvls_reduce_scatter", "one_shot_multimem_all_reduce",
                                       "two_shot_multimem_all_reduce"});
  if (options.ranks < 2) return nullptr;
  const auto schedule = std::make_shared<Schedule>(make_schedule(name, options));
  const std::uint64_t granularity = element_granularity(*schedule);
  const std::uint64_t most = std::uint64_t{1} << (4 + random.below(20));
  const std::uint64_t elements = (1 + random.below(most) / granularity) * granularity;
  return std::make_unique<Case>(
      Case{fmt::format("seed {}: {} of {} elements, {} channels, protocol {}, {} hosts of {} GPUs",
                       seed, name, elements, options.channels, static_cast<int>(options.protocol),
                       hosts, options.gpus_per_host),
           fat_tree(figures, hosts, options.gpus_per_host), make_plan(schedule, elements, {}, 1)});
}

// On some machines an adapter that two GPUs share is the shorter way.
bool are_behind_switches(const Case& sample) {
  try {
    simulated(sample, true);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

TEST(TimeOnlyRun, TakesTheTimesAndLoadsOfMovesThroughSwitches) {
  const int wanted = is_long() ? 5'000 : 200;
  int tried = 0;
  for (std::uint64_t seed = 1; tried < wanted; ++seed) {
    const std::unique_ptr<Case> sample = random_case_through_switches(seed);
    if (sample == nullptr || !are_behind_switches(*sample)) continue;
    ++tried;
    ASSERT_TRUE(TimeOnlyRun::can_run(*sample->plan)) << sample->words;
    expect_equal(*sample);
    if (testing::Test::HasFailure()) break;
  }
}

TEST(TimeOnlyRun, TakesTheTimesAndLoadsOfTheReference) {
  const int wanted = is_long() ? 20'000 : 400;
  int tried = 0;
  for (std::uint64_t seed = 1; tried < wanted; ++seed) {
    const std::unique_ptr<Case> sample = random_case(seed);
    if (sample == nullptr) continue;
    ++tried;
    ASSERT_TRUE(TimeOnlyRun::can_run(*sample->plan));
    expect_equal(*sample);
    if (testing::Test::HasFailure()) break;
  }
}

// Long runs, in which iterations are as those before: most are counted, with flows that meet and
// without, in rhythms of one iteration and of several.
TEST(TimeOnlyRun, CountsIterationsThatAreAsThoseBefore) {
  const int wanted = is_long() ? 2'000 : 60;
  int repeating = 0;
  int tried = 0;
  for (std::uint64_t seed = 1; tried < wanted; ++seed) {
    const std::unique_ptr<Case> sample = random_case(seed);
    if (sample == nullptr || sample->plan->chunking.iterations() < 10) continue;
    ++tried;
    expect_equal(*sample);
    if (testing::Test::HasFailure()) break;
    SimulatedGpusOptions options;
    options.carries_data = false;
    SimulatedGpus gpus(sample->machine, sample->plan->schedule->rank_count(), options);
    TimeOnlyRun* const run = gpus.time_only(sample->plan);
    ASSERT_EQ(run->invoke().end, TimeOnlyRun::End::finished);
    EXPECT_LT(run->repeated_iterations(), sample->plan->chunking.iterations());
    repeating += run->repeated_iterations() > 0 ? 1 : 0;
  }
  EXPECT_GT(repeating, wanted / 5);
}

// In runs of time alone, with iterations that are counted and without, and in those of executors.
TEST(TimeOnlyRun, EndsAtTheLimitAndNotAPicosecondBefore) {
  int tried = 0;
  for (std::uint64_t seed = 1; tried < 100; ++seed) {
    const std::unique_ptr<Case> sample = random_case(seed);
    if (sample == nullptr || sample->plan->chunking.elements() > 1'000'000) continue;
    ++tried;
    SCOPED_TRACE(sample->words);
    const Time whole = run(*sample, false).times.front();
    for (const bool is_plain : {false, true}) {
      const auto within = [&](Time limit) {
        return simulated(*sample, is_plain)->invoke_within(limit);
      };
      EXPECT_EQ(within(Time::max()), whole);
      EXPECT_EQ(within(whole), whole);
      EXPECT_EQ(within(whole - Time::from_ps(1)), std::nullopt);
      EXPECT_EQ(within(Time::from_ps(whole.ps() / 3)), std::nullopt);
    }
  }
}

// The busiest link is a bound, and near the time of many runs.
TEST(TimeOnlyRun, IsNotSimulatedIfTheBusiestLinkTakesLongerThanTheLimit) {
  const int wanted = is_long() ? 20'000 : 300;
  int near = 0;
  int tried = 0;
  for (std::uint64_t seed = 1; tried < wanted; ++seed) {
    const std::unique_ptr<Case> sample = random_case(seed);
    if (sample == nullptr) continue;
    ++tried;
    SCOPED_TRACE(sample->words);
    SimulatedGpusOptions options;
    options.carries_data = false;
    const int ranks = sample->plan->schedule->rank_count();
    SimulatedGpus gpus(sample->machine, ranks, options);
    TimeOnlyRun& run = *gpus.time_only(sample->plan);
    const Time time = run.invoke().finished;
    ASSERT_LE(run.least(), time);
    near += time < run.least() * 2;
    if (run.least() == Time()) continue;
    SimulatedGpus others(sample->machine, ranks, options);
    TimeOnlyRun& limited = *others.time_only(sample->plan);
    EXPECT_EQ(limited.invoke(run.least() - Time::from_ps(1)).end, TimeOnlyRun::End::beyond_limit);
    EXPECT_EQ(limited.events(), 0u);
  }
  EXPECT_GT(near, wanted / 10);
}

TEST(TimeOnlyRun, OfALimitThatIsKeptOthersMayFollow) {
  const std::unique_ptr<Case> sample = [] {
    for (std::uint64_t seed = 1;; ++seed) {
      if (std::unique_ptr<Case> found = random_case(seed)) return found;
    }
  }();
  const std::vector<Time> times = run(*sample, false).times;
  const std::unique_ptr<SimulatedRun> limited = simulated(*sample, false);
  for (const Time time : {times[0], times[1]}) EXPECT_EQ(limited->invoke_within(time), time);
}

// The last chunk ends in an iteration in which the others are whole and which is not the last one.
TEST(TimeOnlyRun, CountsNoIterationInWhichAChunkIsShorter) {
  sim::Random random(1, "short chunk");
  Figures figures(random);
  AlgorithmOptions options;
  options.ranks = 3;
  options.protocol = Protocol::ll;
  const auto schedule = std::make_shared<Schedule>(ring_all_reduce(options));
  const std::uint64_t piece = make_plan(schedule, 30'000'000, {})->chunking.nominal(1, 0);
  for (const std::uint64_t iterations : {12u, 40u}) {
    const std::uint64_t elements = schedule->chunks * iterations * piece + 1;
    const Case sample{fmt::format("{} iterations and an element", iterations),
                      fat_tree(figures, 1, 3), make_plan(schedule, elements, {})};
    ASSERT_EQ(sample.plan->chunking.iterations(), iterations + 1);
    expect_equal(sample);
  }
}

// Every step type, chains of nops, dependencies between blocks, several chunks in a step.
TEST(TimeOnlyRun, TakesThoseOfSchedulesWithEveryKindOfStep) {
  const std::vector<Schedule> schedules = {
      samples::ring_all_reduce(4, 2),          samples::two_shot_all_reduce(4, 3),
      samples::pairwise_all_to_all(4, 2),      samples::chain_broadcast(4, 7),
      samples::relayed_all_gather(4),          samples::one_slot_reduce(4, 3),
      samples::there_and_back_all_reduce(4, 3)};
  std::uint64_t seed = 0;
  for (const Schedule& schedule : schedules) {
    for (const std::uint64_t factor : {1u, 50u, 20'000u, 700'000u}) {
      sim::Random random(++seed, "samples");
      Figures figures(random);
      const auto shared = std::make_shared<Schedule>(schedule);
      const std::uint64_t elements = element_granularity(schedule) * factor;
      expect_equal({fmt::format("{} of {} elements", schedule.name, elements),
                    fat_tree(figures, 2, 2), make_plan(shared, elements, {})});
    }
  }
}

TEST(TimeOnlyRun, TakesTheTimeOfARunWithData) {
  int tried = 0;
  for (std::uint64_t seed = 1; tried < 60; ++seed) {
    const std::unique_ptr<Case> sample = random_case(seed);
    if (sample == nullptr || sample->plan->chunking.elements() > 100'000) continue;
    ++tried;
    SCOPED_TRACE(sample->words);
    const auto ranks = static_cast<std::size_t>(sample->plan->schedule->rank_count());
    std::vector<std::vector<std::byte>> inputs(ranks);
    std::vector<std::vector<std::byte>> outputs(ranks);
    std::vector<Buffers> buffers;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      inputs[rank].resize(sample->plan->input_bytes());
      outputs[rank].resize(sample->plan->output_bytes());
      buffers.push_back({inputs[rank].data(), outputs[rank].data()});
    }
    SimulatedRun with_data(
        std::make_unique<SimulatedGpus>(sample->machine, static_cast<int>(ranks)), sample->plan);
    EXPECT_EQ(run(*sample, false).times.front().ps(), with_data.invoke(buffers).ps());
  }
}

// A fenced flag leaves when its payload, which took one trip, has been acknowledged.
TEST(TimeOnlyRun, AFencedFlagComesTwoTripsBehindItsPayload) {
  constexpr Time kTrip = 500_ns;
  const auto time = [&](bool fences, bool is_plain) {
    machine::MachineBuilder builder("pair");
    for (const char* name : {"a", "b"}) builder.add_device({name, machine::DeviceKind::gpu, 0});
    join(builder, 0, 1, {0, 0, machine::LinkKind::nvlink, 100_GBps, kTrip, 0_ns});
    machine::GpuCost cost;
    for (machine::ProtocolCost& protocol : cost.protocol) {
      protocol = {50_GBps, 100_ns, 30_ns, fences, {}};
    }
    builder.set_gpu_cost(cost);
    auto schedule = std::make_shared<Schedule>(samples::chain_broadcast(2, 1));
    schedule->protocol = Protocol::simple;
    const Case sample{"pair", std::move(builder).build(), make_plan(schedule, 1000, {})};
    return simulated(sample, is_plain)->invoke({});
  };
  for (const bool is_plain : {false, true}) {
    EXPECT_EQ(time(true, is_plain) - time(false, is_plain), kTrip * 2) << is_plain;
  }
}

// Each sends more than there are slots before it receives.
TEST(TimeOnlyRun, SaysAsExecutorsDoWhoWaitsForWhom) {
  sim::Random random(1, "standstill");
  Figures figures(random);
  const auto schedule = std::make_shared<Schedule>(samples::stepwise_all_to_all(3, 40));
  const Case sample{"", fat_tree(figures, 1, 3),
                    make_plan(schedule, element_granularity(*schedule) * 1'000'000, {})};
  const std::string sentence = sentence_of<DeadlockError>([&] { run(sample, false); });
  EXPECT_NE(sentence, "");
  EXPECT_EQ(sentence, sentence_of<DeadlockError>([&] { run(sample, true); }));
}

}  // namespace
}  // namespace towpath::simulate
