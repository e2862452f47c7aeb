// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// What a thread block of a simulated GPU takes for a Move, from its machine's cost.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/simulate/simulated_gpus.hpp"

namespace towpath::simulate {
namespace {
using namespace literals;
using transport::Comparison;
using transport::Move;
using transport::SignalOperation;

constexpr transport::Signal kSignal = 2000;  // beyond those that a transport keeps for itself
constexpr std::uint64_t kSize = 100'000;

// Two GPUs joined by a wire of 1 us; the rate of the wire does not limit a thread block.
std::shared_ptr<const machine::Machine> pair(const machine::ProtocolCost& cost,
                                             machine::LinkKind kind) {
  machine::MachineBuilder builder("pair");
  for (int i = 0; i < 2; ++i) {
    builder.add_device({"gpu" + std::to_string(i), machine::DeviceKind::gpu, i, false});
  }
  builder.add_link({0, 1, kind, 1000_GBps, 1_us, 0_ns});
  builder.add_link({1, 0, kind, 1000_GBps, 1_us, 0_ns});
  machine::GpuCost gpu;
  gpu.protocol.fill(cost);
  builder.set_gpu_cost(gpu);
  return std::move(builder).build();
}

machine::ProtocolCost block_of_50() {
  machine::ProtocolCost cost;
  cost.block_rate = 50_GBps;
  return cost;
}

// What a put does besides.
struct Besides {
  bool reduces = false;
  bool stores = false;
  bool is_half = false;  // its thread block has half of the threads
};

// When rank 1 sees what rank 0 puts there.
Time seen(const machine::ProtocolCost& cost, Besides besides,
          machine::LinkKind kind = machine::LinkKind::nvlink) {
  SimulatedGpusOptions options;
  options.carries_data = false;
  SimulatedGpus gpus(pair(cost, kind), 2, options);
  Move move;
  move.has_addend = besides.reduces;
  move.has_destination = besides.stores;
  move.size_bytes = kSize;
  move.peer = 1;
  move.has_source = true;
  move.has_signal = true;
  move.signal = kSignal;
  move.signal_value = 1;
  Time at;
  collective::Schedule schedule;
  schedule.has_half_blocks = besides.is_half;
  gpus.on_begin = [](int) {};
  gpus.start(0, schedule);
  gpus.simulation().spawn("rank 0", [&] { gpus.transport(0).start(move); });
  gpus.simulation().spawn("rank 1", [&] {
    gpus.transport(1).signal_wait_until(kSignal, Comparison::equal, 1, 1_s, 0);
    at = gpus.simulation().now();
  });
  gpus.run();
  return at;
}

TEST(GpuTiming, ABlockMovesEverythingAtOneRateUnlessItHasOthers) {
  const machine::ProtocolCost cost = block_of_50();
  EXPECT_EQ(seen(cost, {}), 1_us + 2_us);
  EXPECT_EQ(seen(cost, {.reduces = true}), 1_us + 2_us);
  EXPECT_EQ(seen(cost, {.stores = true}), 1_us + 2_us);
}

TEST(GpuTiming, ABlockCopiesAtTheRateOfCopiesAndReducesAtItsOwn) {
  machine::ProtocolCost cost = block_of_50();
  cost.copy_rate = 100_GBps;
  EXPECT_EQ(seen(cost, {}), 1_us + 1_us);
  EXPECT_EQ(seen(cost, {.reduces = true}), 1_us + 2_us);
  EXPECT_EQ(seen(cost, {.stores = true}), 1_us + 2_us);
}

TEST(GpuTiming, ABlockThatStoresWhatItSendsTakesTheRateOfForwarding) {
  machine::ProtocolCost cost = block_of_50();
  cost.forward_rate = 25_GBps;
  EXPECT_EQ(seen(cost, {.stores = true}), 1_us + 4_us);
  EXPECT_EQ(seen(cost, {.reduces = true, .stores = true}), 1_us + 4_us);
  EXPECT_EQ(seen(cost, {}), 1_us + 2_us);
}

TEST(GpuTiming, HalfOfTheThreadsMoveAtHalfOfTheRate) {
  machine::ProtocolCost cost = block_of_50();
  cost.copy_rate = 100_GBps;
  EXPECT_EQ(seen(cost, {.is_half = true}), 1_us + 2_us);
  EXPECT_EQ(seen(cost, {.reduces = true, .is_half = true}), 1_us + 4_us);
}

TEST(GpuTiming, ProxiesAddToWhatLeavesAHost) {
  machine::ProtocolCost cost = block_of_50();
  cost.adapter_overhead = 9_us;
  EXPECT_EQ(seen(cost, {}, machine::LinkKind::nvlink), 1_us + 2_us);
  EXPECT_EQ(seen(cost, {}, machine::LinkKind::network), 1_us + 2_us + 9_us);
}

TEST(GpuTiming, AThreadBlockIsFreeWhenItsAdapterSends) {
  machine::ProtocolCost cost = block_of_50();
  cost.send_overhead = 3_us;
  EXPECT_EQ(seen(cost, {}, machine::LinkKind::nvlink), 1_us + 2_us + 3_us);
  EXPECT_EQ(seen(cost, {}, machine::LinkKind::network), 1_us + 2_us + 3_us);
}

TEST(GpuTiming, AStepOverlapsItsLatencyWithAtMostHalfOfItsBytes) {
  machine::ProtocolCost cost = block_of_50();
  cost.overlap = 500_ns;
  const Time rounded = Time::from_ps(10);  // of the rate that the time of a step stands for
  EXPECT_LE(seen(cost, {}), 1_us + 1500_ns + rounded);
  EXPECT_GE(seen(cost, {}), 1_us + 1500_ns);
  cost.overlap = 5_us;
  EXPECT_LE(seen(cost, {}), 1_us + 1_us + rounded);
  EXPECT_GE(seen(cost, {}), 1_us + 1_us);
}

// When a kernel of two ranks begins.
Time begins(const collective::Algorithm& algorithm) {
  machine::ProtocolCost cost = block_of_50();
  cost.start_overhead = 3_us;
  SimulatedGpusOptions options;
  options.carries_data = false;
  SimulatedGpus gpus(pair(cost, machine::LinkKind::nvlink), 2, options);
  collective::AlgorithmOptions shape;
  shape.ranks = 2;
  Time at;
  gpus.on_begin = [&](int) { at = gpus.simulation().now(); };
  gpus.start(0, algorithm(shape));
  gpus.run();
  return at;
}

TEST(GpuTiming, KernelsOfOneSidedStepsHaveNoWorkLoopToStart) {
  EXPECT_EQ(begins(collective::ring_all_reduce), 3_us);
  EXPECT_EQ(begins(collective::nvls_all_reduce), 3_us);
  EXPECT_EQ(begins(collective::one_shot_pull_all_reduce), 0_us);
}

// Three GPUs behind a switch that combines and copies; no link takes time to pass.
std::shared_ptr<const machine::Machine> behind_a_switch(machine::GpuCost cost) {
  machine::MachineBuilder builder("switch");
  const int hub = builder.add_device({"hub", machine::DeviceKind::nvswitch, 0, true});
  for (int i = 0; i < 3; ++i) {
    const int gpu =
        builder.add_device({"gpu" + std::to_string(i), machine::DeviceKind::gpu, 0, false});
    builder.add_link({gpu, hub, machine::LinkKind::nvlink, 100_GBps, 0_ns, 0_ns});
    builder.add_link({hub, gpu, machine::LinkKind::nvlink, 100_GBps, 0_ns, 0_ns});
  }
  cost.in_switch_reduction = true;
  for (machine::ProtocolCost& protocol : cost.protocol) protocol.block_rate = 1000_GBps;
  builder.set_gpu_cost(cost);
  return std::move(builder).build();
}

// When rank 0 may go on after a move between the group and itself, or within the group.
Time direct_done(const machine::GpuCost& cost, bool loads_group, bool stores_group,
                 bool is_stage = false) {
  SimulatedGpusOptions options;
  options.carries_data = false;
  SimulatedGpus gpus(behind_a_switch(cost), 3, options);
  const std::vector<int> members = {0, 1, 2};
  const auto location = [&](bool is_group) {
    transport::Location found;
    if (is_group) {
      found.group = members;
    } else {
      found.rank = 0;
    }
    return found;
  };
  transport::DirectMove move;
  move.sources = {location(loads_group)};
  move.destinations = {location(stores_group)};
  move.size_bytes = kSize;
  struct Watch {
    sim::Simulation& simulation;
    Time at;
  } watch{gpus.simulation(), {}};
  move.context = &watch;
  move.done = [](transport::DirectMove& done) {
    Watch& seen = *static_cast<Watch*>(done.context);
    seen.at = seen.simulation.now();
  };
  collective::Schedule schedule;
  schedule.has_switch_stages = is_stage;
  gpus.on_begin = [&](int) { gpus.transport(0).start_direct(move); };
  gpus.start(0, schedule);
  gpus.run();
  return watch.at;
}

TEST(GpuTiming, AStageOfAPipelineThroughTheSwitchHasATimeOfItsOwn) {
  machine::GpuCost cost;
  cost.in_switch_stage = 4_us;
  EXPECT_EQ(direct_done(cost, true, true, true), direct_done({}, true, true) + 4_us);
  EXPECT_EQ(direct_done(cost, true, true), direct_done({}, true, true));
}

TEST(GpuTiming, ADirectStepMayHaveItsOwnOverheadAndRate) {
  machine::GpuCost cost;
  cost.protocol[0].send_overhead = 7_us;
  EXPECT_EQ(direct_done(cost, true, false), direct_done({}, true, false) + 7_us);
  cost.direct_overhead = 2_us;
  EXPECT_EQ(direct_done(cost, true, false), direct_done({}, true, false) + 2_us);
  cost.direct_rate = 50_GBps;
  EXPECT_EQ(direct_done(cost, true, false), 2_us + 2_us);  // 100,000 B at 50 GB/s
}

TEST(GpuTiming, ASwitchThatCombinesMaySlowItsLinksDown) {
  machine::GpuCost slow;
  slow.in_switch_rate = 50_GBps;
  EXPECT_EQ(direct_done({}, true, false), 1_us);  // 100,000 B at 100 GB/s
  EXPECT_EQ(direct_done(slow, true, false), 2_us);
}

}  // namespace
}  // namespace towpath::simulate
