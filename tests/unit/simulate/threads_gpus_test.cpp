// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "random_hosts.hpp"
#include "towpath/gpu_links/parts.hpp"
#include "towpath/machine/load.hpp"
#include "towpath/sim/trace.hpp"
#include "towpath/simulate/simulated_gpus.hpp"
#include "towpath/simulate/simulated_run.hpp"

// Hosts that are simulated side by side, by any number of threads, against all in one simulation.

namespace towpath::simulate {
namespace {
using namespace literals;
using namespace random_hosts;
using collective::Buffers;

constexpr int kPlain = 0;

struct Outcome {
  std::vector<Time> times;  // of two invocations, one after the other
  std::uint64_t hash = 0;
  std::vector<gpu_links::LinkLoad> loads;
  std::vector<std::vector<float>> outputs;
};

Outcome run(const std::shared_ptr<const machine::Machine>& machine,
            const std::shared_ptr<const Plan>& plan, int threads, std::size_t* partitions) {
  const int ranks = plan->schedule->rank_count();
  SimulatedGpusOptions options;
  options.threads = threads;
  auto gpus = std::make_unique<SimulatedGpus>(machine, ranks, options);
  *partitions = gpus->simulations().partitions();
  gpus->simulations().share_every_window();
  sim::Trace trace(sim::Trace::Mode::hash_only);
  SimulatedRun run(std::move(gpus), plan, &trace);
  const std::uint64_t count = plan->chunking.elements();
  Outcome outcome;
  std::vector<std::vector<float>> inputs;
  std::vector<Buffers> buffers;
  outcome.outputs.assign(static_cast<std::size_t>(ranks), std::vector<float>(count));
  for (std::size_t rank = 0; rank < outcome.outputs.size(); ++rank) {
    std::vector<float>& input = inputs.emplace_back(count);
    for (std::size_t i = 0; i < count; ++i) {
      input[i] = static_cast<float>((i * 7 + rank * 31) % 1009);
    }
    buffers.push_back({reinterpret_cast<const std::byte*>(input.data()),
                       reinterpret_cast<std::byte*>(outcome.outputs[rank].data())});
  }
  for (int i = 0; i < 2; ++i) outcome.times.push_back(run.invoke(buffers));
  outcome.hash = trace.hash();
  outcome.loads = run.loads();
  return outcome;
}

TEST(ThreadsOfGpus, AgreeWithOneSimulationOnRandomMachines) {
  const int cases = std::getenv("TOWPATH_LONG_TESTS") != nullptr ? 400 : 30;
  int parted = 0;
  for (int number = 0; number < cases; ++number) {
    sim::Random random(static_cast<std::uint64_t>(number), "threads");
    Figures figures(random);
    const Size size{figures.between(2, 6), figures.between(1, 4)};
    const auto machine = RandomMachine(size, figures).build();
    const Schedule schedule = random_schedule(size, figures);
    const auto plan = plan_of(
        schedule, static_cast<std::uint64_t>(figures.between(1, 1 << figures.between(1, 12))));
    SCOPED_TRACE(fmt::format("case {}: {} hosts of {} GPUs, {}, {} channels", number, size.hosts,
                             size.gpus, schedule.name, schedule.channels));
    if (!has_ways(*machine, *plan)) continue;
    std::size_t partitions = 0;
    const Outcome plain = run(machine, plan, kPlain, &partitions);
    EXPECT_EQ(partitions, 1u);
    for (const int threads : {1, 2, 4, 8}) {
      SCOPED_TRACE(threads);
      const Outcome each = run(machine, plan, threads, &partitions);
      EXPECT_EQ(each.times, plain.times);
      EXPECT_EQ(each.hash, plain.hash);
      expect_equal_loads(each.loads, plain.loads);
      EXPECT_TRUE(each.outputs == plain.outputs);
    }
    parted += partitions > 1 ? 1 : 0;
  }
  EXPECT_GE(parted, cases / 4);
}

// The address space of a process is smaller than what each rank may have.
TEST(ThreadsOfGpus, FourThousandRanksHaveAHeapEach) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers leave a process less of the address space";
#endif
  sim::Random random(2, "threads");
  Figures figures(random);
  const int ranks = 4096;
  SimulatedGpusOptions options;
  options.threads = 2;
  SimulatedGpus gpus(RandomMachine({ranks, 1}, figures).build(), ranks, options);
  EXPECT_NO_THROW(gpus.transport(ranks - 1));
}

TEST(ThreadsOfGpus, HostsThatFollowEachOtherAreInOnePart) {
  sim::Random random(1, "threads");
  Figures figures(random);
  const auto machine = RandomMachine({6, 2}, figures).build();
  const gpu_links::HostParts cut = gpu_links::cut_between_hosts(*machine, 3);
  ASSERT_EQ(cut.count, 3u);
  for (std::size_t i = 0; i < machine->devices().size(); ++i) {
    const int host = machine->devices()[i].host;
    if (host < 0) continue;
    EXPECT_EQ(cut.of_device[i], static_cast<std::uint32_t>(host / 2));
  }
  Time least = Time::max();
  for (const machine::Link& link : machine->links()) {
    const auto part = [&](int device) { return cut.of_device[static_cast<std::size_t>(device)]; };
    if (part(link.from) != part(link.to)) least = std::min(least, link.latency);
  }
  EXPECT_EQ(cut.lookahead, least);
  EXPECT_EQ(gpu_links::cut_between_hosts(*machine, 1).count, 1u);
}

}  // namespace
}  // namespace towpath::simulate
