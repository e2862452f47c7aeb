// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/work.hpp"

#include <gtest/gtest.h>

#include "towpath/machine/load.hpp"

namespace towpath::gpu {
namespace {

using namespace literals;

machine::KernelCost simple_cost() {
  machine::KernelCost cost;
  cost.multiprocessors = 10;
  cost.threads_per_multiprocessor = 2048;
  cost.blocks_per_multiprocessor = 32;
  cost.registers_per_multiprocessor = 65536;
  cost.shared_memory_kib = 228;
  cost.memory_latency = 500_ns;
  cost.peer_latency = 2_us;
  cost.memory_rate = 1000_GBps;
  cost.multiprocessor_rate = 100_GBps;
  cost.warp_access = 1_ns;
  cost.loads_in_flight = 2;
  cost.barrier = 40_ns;
  return cost;
}

// Each thread of a block makes `each` accesses of `bytes` bytes.
Accesses evenly(std::uint64_t threads, std::uint64_t each, std::uint64_t bytes) {
  return {threads * each, threads * each * bytes, each};
}

TEST(GpuWork, NoWorkTakesNoTime) { EXPECT_EQ(duration({}, {}, simple_cost()), Time()); }

TEST(GpuWork, AThreadWaitsForAsManyLoadsTogetherAsItKeepsInFlight) {
  Work work{.threads = 32, .loads = evenly(32, 6, 2)};
  EXPECT_EQ(duration(work, {}, simple_cost()), 1500_ns);
  work.loads = evenly(32, 7, 2);
  EXPECT_EQ(duration(work, {}, simple_cost()), 2_us);
}

TEST(GpuWork, LoadsFromPeersTakeTheirOwnLatency) {
  const Work work{.threads = 32, .loads = evenly(32, 2, 4), .peer_loads = evenly(32, 4, 4)};
  EXPECT_EQ(duration(work, {}, simple_cost()), 500_ns + 4_us);
}

TEST(GpuWork, StoresAloneAreLimitedByTheMultiprocessor) {
  const Work work{.threads = 1024, .stores = evenly(1024, 100, 16)};
  EXPECT_EQ(duration(work, {}, simple_cost()), transfer_time(Bytes(1024 * 100 * 16), 100_GBps));
}

TEST(GpuWork, NarrowAccessesAreLimitedByHowManyWarpsAccess) {
  const Work work{.threads = 1024, .stores = evenly(1024, 100, 2)};
  EXPECT_EQ(duration(work, {}, simple_cost()), 3200_ns);
}

TEST(GpuWork, OneThreadOccupiesAWarpsTurnForEachAccess) {
  const Work work{.threads = 32, .stores = {.count = 100, .bytes = 800, .most_of_thread = 100}};
  EXPECT_EQ(duration(work, {}, simple_cost()), 100_ns);
}

TEST(GpuWork, ResidentBlocksShareTheMultiprocessorAndAllOfThemTheMemory) {
  const Work work{.threads = 1024, .loads = evenly(1024, 1, 16), .stores = evenly(1024, 1, 16)};
  machine::KernelCost cost = simple_cost();
  cost.memory_latency = 1_ns;
  EXPECT_EQ(duration(work, {2, 1}, cost), transfer_time(Bytes(2 * 16384), 100_GBps));
  EXPECT_EQ(duration(work, {2, 10}, cost), transfer_time(Bytes(2 * 10 * 32768), 1000_GBps));
}

TEST(GpuWork, AllBlocksShareTheLinksToPeers) {
  const Work work{.threads = 1024,
                  .stores = evenly(1024, 1, 16),
                  .peer_loads = evenly(1024, 1, 8),
                  .peer_stores = evenly(1024, 2, 16)};
  machine::KernelCost cost = simple_cost();
  cost.peer_latency = 1_ns;
  EXPECT_EQ(duration(work, {2, 10, 200_GBps}, cost), transfer_time(Bytes(20 * 32768), 200_GBps));
}

TEST(GpuWork, BarriersAndSharedMemoryCount) {
  const Work work{.threads = 64, .shared_accesses = 50, .barriers = 3};
  EXPECT_EQ(duration(work, {}, simple_cost()), 100_ns + 120_ns);
}

TEST(GpuWork, ResidencyIsLimitedByThreadsBlocksRegistersAndSharedMemory) {
  const machine::KernelCost cost = simple_cost();
  EXPECT_EQ(resident_blocks({.threads = 512}, cost), 4);
  EXPECT_EQ(resident_blocks({.threads = 33}, cost), 32);
  EXPECT_EQ(resident_blocks({.threads = 1024, .registers_per_thread = 33}, cost), 1);
  EXPECT_EQ(resident_blocks({.threads = 32, .shared_bytes = 100 * 1024}, cost), 2);
  EXPECT_EQ(resident_blocks({.threads = 4096}, cost), 0);
}

TEST(GpuWork, ShippedGpusSayWhatKernelsCost) {
  for (const char* name : {"dgx-h100", "dgx-a100", "dgx-b200", "gb200-nvl72", "hgx-h200", "mi300x",
                           "pcie-8gpu", "aws-p5"}) {
    const auto machine = machine::load_machine(name);
    ASSERT_TRUE(machine->gpu().kernel.has_value()) << name;
    EXPECT_GE(machine->gpu().kernel->multiprocessors, 100) << name;
    EXPECT_EQ(machine->gpu().kernel->queue_pairs, 2) << name;
  }
  EXPECT_FALSE(machine::load_machine("ring")->gpu().kernel.has_value());
}

}  // namespace
}  // namespace towpath::gpu
