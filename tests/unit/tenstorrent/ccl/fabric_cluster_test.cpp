// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/fabric_cluster.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "fabrics.hpp"
#include "towpath/tenstorrent/ccl/worker_costs.hpp"

namespace towpath::tenstorrent::ccl {
namespace {

using transport::DataType;
using transport::ReductionOperation;
using transport::SignalWait;
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

TEST(FabricCluster, WhatArrivesIsThereAlready) {
  TwoChips cluster;
  Move move;
  move.has_source = move.has_destination = true;
  move.source_in = Region::slot;
  move.destination_in = Region::scratch;
  move.size_bytes = kBytes;
  EXPECT_EQ(time_of(cluster, move), Time());
  move.destination_in = Region::array;
  EXPECT_EQ(time_of(cluster, move), Time());
}

TEST(FabricCluster, ScratchAtHandIsAddedUpWithoutTheNetwork) {
  TwoChips cluster;
  cluster.keep_scratch_near(true);
  const machine::Chip& chip = chip_of(cluster);
  const Time latency = chip.clock.time_of(Cycles(kWorkerCosts.of(chip).reduce_latency));
  constexpr std::int64_t kUnpackedPerCycle = 80;
  Move sum = addition();
  EXPECT_EQ(time_of(cluster, sum), compute_time(chip, kUnpackedPerCycle / 2) + latency);
  // The next part of the same pass: two are added at once.
  EXPECT_EQ(time_of(cluster, sum), compute_time(chip, kUnpackedPerCycle));
}

TEST(FabricCluster, WhatHasComeInIsAddedUpAsItIsRead) {
  TwoChips cluster;
  const machine::Chip& chip = chip_of(cluster);
  Move sum = addition();
  sum.accumulates = false;
  const Time from_scratch = time_of(cluster, sum);
  TwoChips other;
  sum.source_in = Region::slot;
  const auto per_cycle = static_cast<std::int64_t>(kWorkerCosts.of(chip).reduce_bytes_per_cycle);
  EXPECT_EQ(time_of(other, sum) - from_scratch,
            compute_time(chip, per_cycle) - compute_time(chip, 40));
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

// --- what goes over links ------------------------------------------------------------------------

namespace {

struct RingOfFour : FabricCluster {
  RingOfFour() : FabricCluster(machine::chips_on_grid(4, 1, true, 1), without_data()) {}
};

Move move_to(int peer, std::uint64_t size_bytes) {
  Move move;
  move.peer = peer;
  move.has_source = true;
  move.size_bytes = size_bytes;
  return move;
}

// Until all others know that rank 0 has greeted them.
Time greeting_of(FabricCluster& cluster, bool all_round_ring) {
  std::vector<SignalWait> waits(4);
  std::vector<Time> times;
  for (int rank = 0; rank < 4; ++rank) {
    SignalWait& wait = waits[static_cast<std::size_t>(rank)];
    wait.signal = cluster.transport(rank).allocate_signals(1);
    wait.value = 1;
    wait.context = &times;
    wait.ready = [](SignalWait& ready) {
      static_cast<std::vector<Time>*>(ready.context)->push_back(Time());
    };
  }
  cluster.greet_all(0, waits[0].signal, all_round_ring);
  for (int rank = 1; rank < 4; ++rank) {
    cluster.transport(rank).wait(waits[static_cast<std::size_t>(rank)]);
  }
  cluster.run();
  EXPECT_EQ(times.size(), 3u);
  return cluster.simulation().now();
}

std::uint64_t commands(FabricCluster& cluster) {
  std::uint64_t sum = 0;
  for (const ethernet::Port* port : cluster.cluster().link(0).ports()) {
    sum += port->counters().commands;
  }
  return sum;
}

}  // namespace

// Half way round are two hops, all round three of at least 400 ns.
TEST(FabricCluster, AGreetingReachesAllByTheShorterWayOrAllRound) {
  RingOfFour shorter, all_round;
  const Time one = greeting_of(shorter, false);
  EXPECT_GT(greeting_of(all_round, true), one + Time::from_ns(400));
}

TEST(FabricCluster, RanksOfAMeshGreetOneByOne) {
  const auto options = [](bool is_mesh) {
    const auto chips = machine::chips_on_grid(3, 2, false, 1);
    FabricClusterOptions found = without_data();
    if (is_mesh) found.shape = tenstorrent::fabric::mesh_of(*chips);
    return FabricCluster(chips, found).can_greet_all(0);
  };
  EXPECT_TRUE(options(false));  // in a ring round the edge
  EXPECT_FALSE(options(true));
}

// The workers need their program, and then the time up to the first packet.
TEST(FabricCluster, ACallBeginsWithTheLaunchOfItsProgram) {
  const auto time = [](bool is_launched) {
    TwoChips cluster;
    if (is_launched) cluster.launch_program(0);
    Move move = move_to(1, 64);
    return time_of(cluster, move);
  };
  TwoChips cluster;
  const machine::Chip& chip = chip_of(cluster);
  const Time launch = chip.clock.time_of(Cycles(kWorkerCosts.of(chip).launch));
  const Time added = time(true) - time(false);
  EXPECT_GE(added, launch);
  EXPECT_LT(added, launch * 2);
}

TEST(FabricCluster, OfAllThatWaitsTheFarthestGoesFirst) {
  RingOfFour cluster;
  std::vector<int> left;
  Move near = move_to(1, 4096), far = move_to(2, 4096);
  for (Move* move : {&near, &far}) {
    move->context = &left;
    move->done = [](Move& done) {
      static_cast<std::vector<int>*>(done.context)->push_back(done.peer);
    };
    cluster.transport(0).start(*move);
  }
  cluster.run();
  EXPECT_EQ(left, (std::vector<int>{2, 1}));
}

TEST(FabricCluster, TheLastPacketTellsInPlaceOfOneBehindIt) {
  const auto commands_with = [](Telling telling) {
    TwoChips cluster;
    cluster.set_telling(telling, 100);
    Move move = move_to(1, 64);
    time_of(cluster, move);
    return commands(cluster);
  };
  const std::uint64_t behind = commands_with(Telling::behind);
  EXPECT_LT(commands_with(Telling::with_last), behind);
  EXPECT_EQ(commands_with(Telling::with_last), commands_with(Telling::with_last_deferred));
}

// Writes that wait for their acknowledgement, of all of a chip's tiles.
std::uint32_t writes_at(FabricCluster& cluster, int place) {
  noc::ChipNetwork& network = cluster.cluster().device(place).network();
  std::uint32_t writes = 0;
  for (const auto& core : network.chip().ethernet_cores) {
    for (const int noc : {0, 1}) writes += network.counters(noc, core).writes_issued;
  }
  return writes;
}

TEST(FabricCluster, ARouterWritesEachPageOfAPacket) {
  const auto writes_of = [](std::uint64_t size_bytes) {
    TwoChips cluster;
    Move move = move_to(1, size_bytes);
    time_of(cluster, move);
    return writes_at(cluster, 1);
  };
  EXPECT_EQ(writes_of(2048) + 1, writes_of(4096));  // both in one packet
}

}  // namespace towpath::tenstorrent::ccl
