// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fabrics.hpp"
#include "towpath/tenstorrent/fabric/fabric.hpp"

// When a router increments the word behind a payload.

namespace towpath::tenstorrent::fabric {
namespace {

using machine::chips_on_grid;
using tenstorrent::Cluster;
using tenstorrent::DataMovementCore;

constexpr Direction kRight = direction_of(0, false);
constexpr std::uint64_t kInbox = 0x10000;
constexpr std::uint64_t kCounter = 0x30000;

// Two chips whose DRAM acknowledges late.
std::shared_ptr<const machine::ChipCluster> chips_with_slow_dram() {
  machine::ChipCluster description = *chips_on_grid(2, 1, false, 1);
  machine::Chip chip = *description.chips.front().chip;
  chip.workers.clear();
  chip.dram.write_cycles = 20'000;
  const auto slow = machine::build_chip(chip);
  for (auto& place : description.chips) place.chip = slow;
  return machine::build_chip_cluster(std::move(description));
}

machine::Coordinate dram_of(const machine::Chip& chip) {
  machine::Coordinate dram;
  for (int tile = 0; tile < static_cast<int>(chip.tiles.size()); ++tile) {
    const machine::Coordinate at = chip.coordinate_of(tile);
    if (chip.tile(at).kind == machine::TileKind::dram) dram = at;
  }
  return dram;
}

// What becomes of a packet that increments once DRAM has acknowledged, and of one behind it that
// sets or increments another word: when that one is seen, whether the first has incremented then,
// and when it has.
struct Behind {
  noc::Cycle seen_at = 0;
  std::uint32_t counted = 0;
  noc::Cycle counted_at = 0;
  noc::Cycle dram_cycles = 0;
};
Behind behind_an_increment(Operation first, Operation later) {
  const auto chips = chips_with_slow_dram();
  const auto& chip = chips->chips.front().chip;
  const machine::Coordinate target = chip->workers.back();
  constexpr std::uint64_t kBehind = kCounter + 64;
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, mesh_of(*chips), {});
  fabric.program(0).create_kernel(
      {.core = chip->workers.front(), .name = "sender"}, [&](DataMovementCore& core) {
        Connection connection(core, fabric.port(0, kRight, 0), kWorkerWords);
        connection.open();
        Header header = fabric.header(0, 1);
        header.payload_to = pack({dram_of(*chip), 0});
        header.payload_bytes = 64;
        header.increment = 1;
        header.operation = first;
        header.word_at = pack({target, kCounter});
        connection.send(header, kWorkerHeaders, kWorkerPayloads);
        header.operation = later;
        header.payload_to = pack({target, kInbox});
        header.payload_bytes = static_cast<std::uint16_t>(writes(later) ? 64 : 0);
        header.word_at = pack({target, kBehind});
        connection.send(header, kWorkerHeaders + 64, kWorkerPayloads);
        connection.wait_until_sent();
        connection.close();
      });
  Behind behind{.dram_cycles = chip->dram.write_cycles};
  fabric.program(1).create_kernel({.core = target, .name = "listener"},
                                  [&](DataMovementCore& core) {
                                    core.noc_semaphore_wait(kBehind, 1);
                                    behind.counted = core.load_word(kCounter);
                                    behind.seen_at = core.cycle();
                                    core.noc_semaphore_wait(kCounter, 1);
                                    behind.counted_at = core.cycle();
                                  });
  fabric.run();
  return behind;
}

TEST(FabricIncrement, ARouterStandsStillUntilAllItsWritesAreAcknowledged) {
  const Behind behind =
      behind_an_increment(Operation::write_flush_increment, Operation::inline_write);
  EXPECT_EQ(behind.counted, 1u);
  EXPECT_GT(behind.seen_at, behind.dram_cycles);
}

TEST(FabricIncrement, ARouterGoesOnBeforeADeferredIncrement) {
  const Behind behind =
      behind_an_increment(Operation::write_deferred_increment, Operation::inline_write);
  EXPECT_EQ(behind.counted, 0u);
  EXPECT_LT(behind.seen_at, behind.dram_cycles);
  EXPECT_GT(behind.counted_at, behind.dram_cycles);
}

TEST(FabricIncrement, IncrementsOfAnyKindStayBehindADeferredOne) {
  for (const Operation later : {Operation::increment, Operation::write_increment,
                                Operation::flush_increment, Operation::deferred_increment}) {
    EXPECT_EQ(behind_an_increment(Operation::write_deferred_increment, later).counted, 1u)
        << "operation " << static_cast<int>(later);
  }
}

// More packets come than there are slots and transaction ids.
void expect_all_increments(Operation operation) {
  constexpr std::uint32_t kPackets = 40;
  const auto chips = chips_with_slow_dram();
  const auto& slow = chips->chips.front().chip;
  Cluster cluster(chips, {.finds_hazards = false});
  Fabric fabric(cluster, mesh_of(*chips), {});
  const machine::Coordinate dram = dram_of(*slow);
  ASSERT_EQ(slow->tile(dram).kind, machine::TileKind::dram);
  const auto target = slow->workers.back();
  fabric.program(0).create_kernel(
      {.core = slow->workers.front(), .name = "sender"}, [&](DataMovementCore& core) {
        Connection connection(core, fabric.port(0, kRight, 0), kWorkerWords);
        connection.open();
        Header header = fabric.header(0, 1);
        header.payload_to = pack({dram, 0});
        header.payload_bytes = 64;
        header.increment = 1;
        header.operation = operation;
        for (std::uint32_t packet = 0; packet < kPackets; ++packet) {
          header.word_at = pack({target, kCounter + 16 * std::uint64_t{packet}});
          connection.send(header, kWorkerHeaders, kWorkerPayloads);
          connection.wait_until_sent();
        }
        connection.close();
      });
  fabric.run();
  for (std::uint32_t packet = 0; packet < kPackets; ++packet) {
    EXPECT_EQ(fabric.device(1).memory(target).load_word(kCounter + 16 * std::uint64_t{packet}), 1u)
        << "packet " << packet;
  }
}

TEST(FabricIncrement, APacketKeepsItsSlotUntilItsIncrementIsDone) {
  expect_all_increments(Operation::write_flush_increment);
}

TEST(FabricIncrement, DeferredIncrementsWaitForTransactionIds) {
  expect_all_increments(Operation::write_deferred_increment);
}

}  // namespace
}  // namespace towpath::tenstorrent::fabric
