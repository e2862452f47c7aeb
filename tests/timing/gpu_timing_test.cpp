// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// What a thread block of a simulated GPU takes for a Move, from its machine's cost.
#include <gtest/gtest.h>

#include <memory>

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

TEST(GpuTiming, ProxiesAddToWhatLeavesAHost) {
  machine::ProtocolCost cost = block_of_50();
  cost.adapter_overhead = 9_us;
  EXPECT_EQ(seen(cost, {}, machine::LinkKind::nvlink), 1_us + 2_us);
  EXPECT_EQ(seen(cost, {}, machine::LinkKind::network), 1_us + 2_us + 9_us);
}

}  // namespace
}  // namespace towpath::simulate
