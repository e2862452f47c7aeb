// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/simulated/chips/fabric_cluster.hpp"

#include <gtest/gtest.h>

#include "fabrics.hpp"

namespace towpath::transport::simulated::chips {
namespace {

using Region = Move::Region;

constexpr std::uint64_t kBytes = 4096;  // in one packet

FabricClusterOptions without_data() {
  FabricClusterOptions options;
  options.carries_data = false;
  return options;
}

struct TwoChips : FabricCluster {
  TwoChips() : FabricCluster(machine::chips_on_grid(2, 1, false, 1), without_data()) {}
};

const machine::Chip& chip_of(FabricCluster& cluster) {
  return *cluster.cluster().description().chips.front().chip;
}

// What a Move takes that the first rank starts now.
Time time_of(FabricCluster& cluster, Move& move) {
  const Time start = cluster.transport(0).now();
  struct Call {
    FabricCluster& cluster;
    Time end;
  } call{cluster, Time()};
  move.context = &call;
  move.done = [](Move& done) {
    Call& ended = *static_cast<Call*>(done.context);
    ended.end = ended.cluster.transport(0).now();
  };
  cluster.transport(0).start(move);
  cluster.run();
  return call.end - start;
}

// scratch = scratch + scratch
Move addition() {
  Move move;
  move.has_source = move.has_addend = move.has_destination = move.accumulates = true;
  move.source_in = move.addend_in = move.destination_in = Region::scratch;
  move.size_bytes = kBytes;
  move.reduction = {DataType::float32, ReductionOperation::sum};
  return move;
}

Time compute_time(const machine::Chip& chip, std::int64_t bytes_per_cycle) {
  return chip.clock.time_of(
      Cycles((static_cast<std::int64_t>(kBytes) + bytes_per_cycle - 1) / bytes_per_cycle));
}

}  // namespace

TEST(FabricCluster, WhatArrivesForScratchIsThereAlready) {
  TwoChips cluster;
  Move move;
  move.has_source = move.has_destination = true;
  move.source_in = Region::slot;
  move.destination_in = Region::scratch;
  move.size_bytes = kBytes;
  EXPECT_EQ(time_of(cluster, move), Time());
  move.destination_in = Region::array;
  EXPECT_GT(time_of(cluster, move), Time());
}

TEST(FabricCluster, ScratchAtHandIsAddedUpWithoutTheNetwork) {
  TwoChips cluster;
  cluster.keep_scratch_near(true);
  const machine::Chip& chip = chip_of(cluster);
  const Time latency = chip.clock.time_of(Cycles(chip.software.reduce_latency_cycles));
  const auto per_cycle = static_cast<std::int64_t>(chip.software.reduce_bytes_per_cycle);
  Move sum = addition();
  EXPECT_EQ(time_of(cluster, sum), compute_time(chip, per_cycle) + latency);
  // The next part of the same pass: two are added at once.
  EXPECT_EQ(time_of(cluster, sum), compute_time(chip, 2 * per_cycle));
}

TEST(FabricCluster, ScratchInDramIsReadAndStored) {
  TwoChips near;
  near.keep_scratch_near(true);
  TwoChips far;
  Move sum = addition();
  const Time at_hand = time_of(near, sum);
  EXPECT_GT(time_of(far, sum), at_hand);
  // Only scratch is at hand.
  TwoChips beside;
  beside.keep_scratch_near(true);
  Move own = addition();
  own.addend_in = Region::array;
  EXPECT_GT(time_of(beside, own), at_hand);
}

}  // namespace towpath::transport::simulated::chips
