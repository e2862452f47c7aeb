// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/simulated_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "mailbox_bench.hpp"
#include "schedules.hpp"
#include "sentence.hpp"
#include "towpath/simulate/simulated_gpus.hpp"
#include "towpath/simulate/simulated_mailboxes.hpp"

namespace towpath::simulate {
namespace {
using namespace literals;
using namespace collective::samples;
using transport::Comparison;
using transport::SignalOperation;

constexpr transport::Signal kSignal = 2000;  // beyond those that a transport keeps for itself

std::shared_ptr<const collective::Plan> all_reduce_plan(int ranks, std::uint64_t elements) {
  return collective::make_plan(std::make_shared<collective::Schedule>(ring_all_reduce(ranks, 1)),
                               elements,
                               {transport::DataType::int32, transport::ReductionOperation::sum});
}

std::shared_ptr<const machine::MailboxCluster> mailbox_ring(int nodes) {
  return machine::build_mailbox_cluster(mailbox::carvnet(nodes));
}

std::shared_ptr<const machine::Machine> three_gpus() {
  machine::MachineBuilder builder("three");
  const int hub = builder.add_device({"hub", machine::DeviceKind::nvswitch, 0, true});
  for (int i = 0; i < 3; ++i) {
    const int gpu =
        builder.add_device({"gpu" + std::to_string(i), machine::DeviceKind::gpu, 0, false});
    builder.add_link({gpu, hub, machine::LinkKind::nvlink, 100_GBps, 300_ns, 0_ns});
    builder.add_link({hub, gpu, machine::LinkKind::nvlink, 100_GBps, 300_ns, 0_ns});
  }
  machine::GpuCost cost;
  for (machine::ProtocolCost& protocol : cost.protocol) {
    protocol = {50_GBps, 100_ns, 30_ns, false, {}};
  }
  builder.set_gpu_cost(cost);
  return std::move(builder).build();
}

TEST(SimulatedRun, OnMailboxesGivesTheSumOnAllRanks) {
  constexpr std::size_t kElements = 300;
  const auto plan = all_reduce_plan(3, kElements);
  std::vector<std::vector<std::int32_t>> inputs(3, std::vector<std::int32_t>(kElements));
  auto outputs = inputs;
  std::vector<collective::Buffers> buffers;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    std::iota(inputs[rank].begin(), inputs[rank].end(), static_cast<int>(rank));
    buffers.push_back({reinterpret_cast<const std::byte*>(inputs[rank].data()),
                       reinterpret_cast<std::byte*>(outputs[rank].data())});
  }
  SimulatedRun run(std::make_unique<SimulatedMailboxes>(mailbox_ring(3), 3), plan);
  const Time first = run.invoke(buffers);
  EXPECT_GT(first, 0_ns);
  EXPECT_LE(first, run.now());  // the last credits are still under way
  run.invoke(buffers);
  for (const auto& output : outputs) {
    for (std::size_t i = 0; i < kElements; ++i) {
      ASSERT_EQ(output[i], static_cast<std::int32_t>(3 + 3 * i));
    }
  }
  EXPECT_TRUE(run.loads().empty());
  EXPECT_TRUE(run.link_failures().empty());
}

TEST(SimulatedRun, TracesTheStepsOfEveryKindOfRanks) {
  sim::Trace trace;
  SimulatedRun run(std::make_unique<SimulatedMailboxes>(
                       mailbox_ring(2), 2, SimulatedMailboxesOptions{.carries_data = false}),
                   all_reduce_plan(2, 8), &trace);
  run.invoke({});
  const auto& tracks = trace.tracks();
  EXPECT_NE(std::find(tracks.begin(), tracks.end(), "rank 1 thread block 0"), tracks.end());
}

TEST(SimulatedRun, RunsOnThePlacesOfItsRanks) {
  SimulatedRun run(
      std::make_unique<SimulatedGpus>(
          three_gpus(), 2, SimulatedGpusOptions{.places = {2, 0}, .carries_data = false}),
      all_reduce_plan(2, 1000));
  run.invoke({});
  const auto loads = run.loads();  // two per GPU
  EXPECT_GT(loads[0].bytes, Bytes(0));
  EXPECT_EQ(loads[2].bytes, Bytes(0));
  EXPECT_GT(loads[4].bytes, Bytes(0));
}

TEST(PlacesOfRanks, AreTheFirstOnesUnlessTheyAreGiven) {
  EXPECT_EQ(places_of_ranks({}, 3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(places_of_ranks({5, 1}, 2), (std::vector<int>{5, 1}));
}

TEST(PlacesOfRanks, AreAsManyAsThereAreRanks) {
  const std::string sentence = sentence_of([] { places_of_ranks({0, 1, 2}, 2); });
  EXPECT_NE(sentence.find("there are 3 places for 2 ranks"), std::string::npos) << sentence;
}

TEST(PlacesOfRanks, AreDifferentAndOnTheMachine) {
  for (const std::vector<int>& places : {std::vector<int>{1, 1}, {0, 3}, {-1, 0}}) {
    const std::string sentence = sentence_of(
        [&] { SimulatedGpus(three_gpus(), 2, SimulatedGpusOptions{.places = places}); });
    EXPECT_NE(sentence.find("of machine 'three'; use each of the 3 places"), std::string::npos)
        << sentence;
  }
}

// 300 ns on each of two links, then the 30 ns that a receiver takes to see a flag.
TEST(SimulatedGpus, AFlagAloneIsSeenAfterItsWayAndTheOverheadOfItsReceiver) {
  SimulatedGpus gpus(three_gpus(), 2);
  Time seen;
  gpus.simulation().spawn("rank 0",
                          [&] { gpus.transport(0).put_signal(1, 0, {}, {kSignal, 1}, 1_s); });
  gpus.simulation().spawn("rank 1", [&] {
    gpus.transport(1).signal_wait_until(kSignal, Comparison::equal, 1, 1_s, 0);
    seen = gpus.simulation().now();
  });
  gpus.run();
  EXPECT_EQ(seen, 300_ns * 2 + 30_ns);
}

// A flag every 3 us: a rank that gives up after 5 us of silence sees the fifth one, and one that
// gives up after 2 us does not.
TEST(SimulatedGpus, ATimeoutCountsFromTheLastThingThatHappened) {
  const auto outcome = [](Time timeout) {
    SimulatedGpus gpus(three_gpus(), 2);
    std::string problem;
    gpus.simulation().spawn("rank 0", [&] {
      for (std::uint64_t i = 1; i <= 5; ++i) {
        gpus.simulation().sleep(3_us);
        gpus.transport(0).put_signal(1, 0, {}, {kSignal, i}, 1_s);
      }
    });
    gpus.simulation().spawn("rank 1", [&] {
      problem = sentence_of<transport::TransportError>(
          [&] { gpus.transport(1).signal_wait_until(kSignal, Comparison::equal, 5, timeout, 0); });
    });
    gpus.run();
    return problem;
  };
  EXPECT_EQ(outcome(5_us), "");
  EXPECT_NE(outcome(2_us).find("rank 1 waited 2 us"), std::string::npos) << outcome(2_us);
}

}  // namespace
}  // namespace towpath::simulate
