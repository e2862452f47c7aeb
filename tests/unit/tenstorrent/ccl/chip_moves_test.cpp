// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "fabrics.hpp"
#include "towpath/tenstorrent/ccl/broadcasts.hpp"
#include "towpath/tenstorrent/ccl/endpoint.hpp"
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"
#include "towpath/tenstorrent/ccl/unicasts.hpp"
#include "towpath/tenstorrent/ccl/worker_costs.hpp"

namespace towpath::tenstorrent::ccl {
namespace {

using collective::Notification;
using transport::DataType;
using transport::Move;
using transport::ReductionOperation;
using transport::SignalWait;

constexpr std::uint64_t kBytes = 4096;  // in one packet

SimulatedChipsOptions without_data() {
  SimulatedChipsOptions options;
  options.carries_data = false;
  options.run.threads = 0;
  return options;
}

struct TwoChips : SimulatedChips {
  TwoChips() : SimulatedChips(machine::chips_on_grid(2, 1, false, 1), 2, without_data()) {}
};

// Operands of the Moves that follow, and whether scratch is in L1.
void set_operands(SimulatedChips& cluster, const Operands& operands,
                  bool is_scratch_in_l1 = false) {
  Workload& workload = cluster.endpoint(0).workload();
  workload.set_operands(operands);
  workload.keep_scratch_in_l1(is_scratch_in_l1);
}

const machine::Chip& chip_of(SimulatedChips& cluster) {
  return *cluster.cluster().description().chips.front().chip;
}

// Time of a Move of the first rank.
Time time_of(SimulatedChips& cluster, Move& move) {
  const Time start = cluster.transport(0).now();
  struct Call {
    SimulatedChips& cluster;
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
constexpr Operands kAllScratch{Region::scratch, Region::scratch, Region::scratch, true};

Move addition() {
  Move move;
  move.has_source = move.has_addend = move.has_destination = true;
  move.size_bytes = kBytes;
  move.reduction = {DataType::float32, ReductionOperation::sum};
  return move;
}

Time compute_time(const machine::Chip& chip, std::int64_t bytes_per_cycle) {
  return chip.clock.time_of(
      Cycles((static_cast<std::int64_t>(kBytes) + bytes_per_cycle - 1) / bytes_per_cycle));
}

}  // namespace

TEST(ChipMoves, WhatArrivesIsThereAlready) {
  TwoChips cluster;
  Move move;
  move.has_source = move.has_destination = true;
  move.size_bytes = kBytes;
  for (const Region destination : {Region::scratch, Region::array}) {
    set_operands(cluster, {.source = Region::slot, .destination = destination});
    EXPECT_EQ(time_of(cluster, move), Time());
  }
}

TEST(ChipMoves, ScratchAtHandIsAddedUpWithoutTheNetwork) {
  TwoChips cluster;
  set_operands(cluster, kAllScratch, true);
  const machine::Chip& chip = chip_of(cluster);
  const Time latency = chip.clock.time_of(Cycles(kWorkerCosts.of(chip).reduce_latency));
  constexpr std::int64_t kUnpackedPerCycle = 80;
  Move sum = addition();
  EXPECT_EQ(time_of(cluster, sum), compute_time(chip, kUnpackedPerCycle / 2) + latency);
  // The next part of the same pass: two are added at once.
  EXPECT_EQ(time_of(cluster, sum), compute_time(chip, kUnpackedPerCycle));
}

TEST(ChipMoves, WhatHasComeInIsAddedUpAsItIsRead) {
  TwoChips cluster;
  const machine::Chip& chip = chip_of(cluster);
  Move sum = addition();
  Operands operands = kAllScratch;
  operands.accumulates = false;
  set_operands(cluster, operands);
  const Time from_scratch = time_of(cluster, sum);
  TwoChips other;
  operands.source = Region::slot;
  set_operands(other, operands);
  const auto per_cycle = static_cast<std::int64_t>(kWorkerCosts.of(chip).reduce_bytes_per_cycle);
  EXPECT_EQ(time_of(other, sum) - from_scratch,
            compute_time(chip, per_cycle) - compute_time(chip, 40));
}

TEST(ChipMoves, ScratchInDramIsReadAndStored) {
  TwoChips near;
  set_operands(near, kAllScratch, true);
  TwoChips far;
  set_operands(far, kAllScratch, false);
  Move sum = addition();
  const Time at_hand = time_of(near, sum);
  EXPECT_GT(time_of(far, sum), at_hand);
  // Only scratch is at hand.
  TwoChips mixed;
  Operands operands = kAllScratch;
  operands.addend = Region::array;
  set_operands(mixed, operands, true);
  Move own = addition();
  EXPECT_GT(time_of(mixed, own), at_hand);
}

TEST(ChipMoves, OperandsOfAStepAreThoseOfItsMoves) {
  using collective::StepType;
  collective::Step step{.type = StepType::receive_reduce_copy,
                        .source = collective::Buffer::scratch,
                        .destination = collective::Buffer::output};
  const Operands received = operands_of(step);
  EXPECT_EQ(received.source, Region::slot);
  EXPECT_EQ(received.addend, Region::scratch);
  EXPECT_EQ(received.destination, Region::array);
  EXPECT_FALSE(received.accumulates);
  step.type = StepType::reduce;
  step.destination = collective::Buffer::scratch;
  step.source = collective::Buffer::input;
  const Operands reduced = operands_of(step);
  EXPECT_EQ(reduced.source, Region::scratch);
  EXPECT_EQ(reduced.addend, Region::array);
  EXPECT_TRUE(reduced.accumulates);
}

// --- what goes over links ------------------------------------------------------------------------

namespace {

struct RingOfFour : SimulatedChips {
  RingOfFour() : SimulatedChips(machine::chips_on_grid(4, 1, true, 1), 4, without_data()) {}
};

Move move_to(int peer, std::uint64_t size_bytes) {
  Move move;
  move.peer = peer;
  move.has_source = true;
  move.size_bytes = size_bytes;
  return move;
}

// Until all others have the notice of rank 0.
Time notice_of(SimulatedChips& cluster, bool all_round_ring) {
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
  cluster.broadcasts().notify_all(cluster.endpoint(0), waits[0].signal, all_round_ring);
  for (int rank = 1; rank < 4; ++rank) {
    cluster.transport(rank).wait(waits[static_cast<std::size_t>(rank)]);
  }
  cluster.run();
  EXPECT_EQ(times.size(), 3u);
  return cluster.simulation().now();
}

std::uint64_t commands(SimulatedChips& cluster) {
  std::uint64_t sum = 0;
  for (const ethernet::Port* port : cluster.cluster().link(0).ports()) {
    sum += port->counters().commands;
  }
  return sum;
}

}  // namespace

// Half way round are two hops, all round three of at least 400 ns.
TEST(ChipMoves, ANoticeReachesAllByTheShorterWayOrAllRound) {
  RingOfFour shorter, all_round;
  const Time one = notice_of(shorter, false);
  EXPECT_GT(notice_of(all_round, true), one + Time::from_ns(400));
}

TEST(ChipMoves, RanksOfAMeshCannotReachAllAtOnce) {
  const auto options = [](bool is_mesh) {
    const auto chips = machine::chips_on_grid(3, 2, false, 1);
    SimulatedChipsOptions found = without_data();
    if (is_mesh) found.shape = tenstorrent::fabric::mesh_of(*chips);
    const std::vector<int> ranks = {0, 1, 2, 3, 4, 5};
    return SimulatedChips(chips, 6, found).broadcasts().refusal(0, ranks).empty();
  };
  EXPECT_TRUE(options(false));  // in a ring round the edge
  EXPECT_FALSE(options(true));
}

// The workers need their program, and then the time up to the first packet. A part without bytes
// waits for nothing else.
TEST(ChipMoves, ACallBeginsWithTheLaunchOfItsProgram) {
  const auto time = [](bool is_launched) {
    TwoChips cluster;
    if (is_launched) cluster.chips().of(0).workers.launch();
    Move move = move_to(1, 0);
    return time_of(cluster, move);
  };
  TwoChips cluster;
  EXPECT_EQ(time(true) - time(false), start_time(chip_of(cluster)));
}

// A thread block has one Move, which it uses again and again.
TEST(ChipMoves, SumsOfAThreadBlockAreOnePassAndEachRelayIsAPassOfItsOwn) {
  Workload workload;
  workload.set_operands(kAllScratch);
  Move sum = addition();
  const auto begins_pass = [&](int peer) {
    sum.peer = peer;
    return !workload.work_of(sum).continues_reduction;
  };
  EXPECT_TRUE(begins_pass(transport::kNoPeer));
  EXPECT_FALSE(begins_pass(transport::kNoPeer));
  EXPECT_TRUE(begins_pass(1));
  EXPECT_TRUE(begins_pass(1));
  EXPECT_TRUE(begins_pass(transport::kNoPeer));
}

// The connection is open from the Move before. The second operand is read right behind the first.
TEST(ChipMoves, ASumOnItsWayTakesTheLatencyOfAPassOnceEachTime) {
  const auto times = [](bool is_sum) {
    TwoChips cluster;
    set_operands(cluster, {.source = Region::slot, .addend = Region::array});
    Move move = addition();
    move.has_destination = false;
    move.has_addend = is_sum;
    move.peer = 1;
    time_of(cluster, move);
    return std::vector{time_of(cluster, move), time_of(cluster, move)};
  };
  TwoChips cluster;
  const machine::Chip& chip = chip_of(cluster);
  const WorkerCosts& costs = kWorkerCosts.of(chip);
  const Time latency = chip.clock.time_of(Cycles(costs.reduce_latency));
  const Time pass =
      compute_time(chip, static_cast<std::int64_t>(costs.reduce_bytes_per_cycle)) + latency;
  const std::vector<Time> copies = times(false);
  const std::vector<Time> sums = times(true);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_GE(sums[i] - copies[i], pass) << (sums[i] - copies[i]).ps() << " of " << pass.ps();
    EXPECT_LT(sums[i] - copies[i], pass + latency);
  }
}

TEST(ChipMoves, OfAllThatWaitsTheFarthestGoesFirst) {
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

TEST(ChipMoves, TheLastPacketNotifiesInPlaceOfOneBehindIt) {
  const auto commands_with = [](Notification notification) {
    TwoChips cluster;
    cluster.unicasts().set_notification(notification, 100);
    Move move = move_to(1, 64);
    time_of(cluster, move);
    return commands(cluster);
  };
  const std::uint64_t trailing = commands_with(Notification::trailing);
  EXPECT_LT(commands_with(Notification::attached), trailing);
  EXPECT_EQ(commands_with(Notification::attached), commands_with(Notification::deferred));
}

// Writes that wait for their acknowledgement, of all of a chip's tiles.
std::uint32_t writes_at(SimulatedChips& cluster, int place) {
  noc::ChipNetwork& network = cluster.cluster().device(place).network();
  std::uint32_t writes = 0;
  for (const auto& core : network.chip().ethernet_cores) {
    for (const int noc : {0, 1}) writes += network.counters(noc, core).writes_issued;
  }
  return writes;
}

TEST(ChipMoves, ARouterWritesEachPageOfAPacket) {
  const auto writes_of = [](std::uint64_t size_bytes) {
    TwoChips cluster;
    Move move = move_to(1, size_bytes);
    time_of(cluster, move);
    return writes_at(cluster, 1);
  };
  EXPECT_EQ(writes_of(2048) + 1, writes_of(4096));  // both in one packet
}

}  // namespace towpath::tenstorrent::ccl
