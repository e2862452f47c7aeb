// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "chips.hpp"
#include "sentence.hpp"

namespace towpath::machine {
namespace {

using namespace literals;

TileKind kind_of(char letter) {
  switch (letter) {
    case 'w': return TileKind::worker;
    case 'd': return TileKind::dram;
    case 'e': return TileKind::ethernet;
    case 'p': return TileKind::pcie;
    case 'h': return TileKind::harvested;
    default: return TileKind::router_only;
  }
}

// A chip drawn row by row; every DRAM tile is of group 0.
Chip drawn(const std::vector<std::string>& rows) {
  Chip chip = chip_without_tiles();
  chip.name = "drawn";
  chip.width = static_cast<int>(rows.front().size());
  chip.height = static_cast<int>(rows.size());
  for (const std::string& row : rows) {
    for (const char letter : row) {
      chip.tiles.push_back({kind_of(letter), letter == 'd' ? 0 : -1});
    }
  }
  return chip;
}

Chip small() { return drawn({"d.ww", "deww"}); }

std::string refusal_of(Chip chip) {
  return sentence_of([&] { build_chip(std::move(chip)); });
}

TEST(Chip, NumbersTilesRowByRow) {
  const auto chip = build_chip(small());
  EXPECT_EQ(chip->number_of({3, 1}), 7);
  EXPECT_EQ(chip->coordinate_of(7), (Coordinate{3, 1}));
  EXPECT_EQ(chip->tile({1, 1}).kind, TileKind::ethernet);
  EXPECT_TRUE(chip->holds({3, 1}));
  EXPECT_FALSE(chip->holds({4, 1}));
  EXPECT_FALSE(chip->holds({0, -1}));
}

TEST(Chip, FindsWorkersAndDramGroupsFromTheTiles) {
  Chip described = drawn({"dw.w", "dw.w", "...."});
  described.tiles[4].dram_group = 1;
  const auto chip = build_chip(std::move(described));
  EXPECT_EQ(chip->workers, (std::vector<Coordinate>{{1, 0}, {3, 0}, {1, 1}, {3, 1}}));
  EXPECT_EQ(chip->worker_columns, 2);
  EXPECT_EQ(chip->worker_rows(), 2);
  const std::vector<std::vector<Coordinate>> groups = {{{0, 0}}, {{0, 1}}};
  EXPECT_EQ(chip->dram_groups, groups);
}

TEST(Chip, HarvestedTilesLeaveTheLogicalGridWithoutAGap) {
  const auto chip = build_chip(drawn({"wwhw", "hhhh", "wwhw"}));
  EXPECT_EQ(chip->worker_columns, 3);
  EXPECT_EQ(chip->worker_rows(), 2);
  EXPECT_EQ(chip->worker(2, 0), (Coordinate{3, 0}));
  EXPECT_EQ(chip->worker(1, 1), (Coordinate{1, 2}));
}

TEST(Chip, NamesTheLogicalGridWhenAskedForAWorkerOutsideOfIt) {
  const auto chip = build_chip(small());
  for (const auto& [x, y] : {std::pair(2, 0), std::pair(0, 2), std::pair(-1, 0)}) {
    EXPECT_EQ(sentence_of([&, x = x, y = y] { chip->worker(x, y); }),
              "chip 'drawn': has no worker (" + std::to_string(x) + ", " + std::to_string(y) +
                  "); its logical grid is 2 x 2, from (0, 0)");
  }
}

TEST(Chip, KeepsTheOrderInWhichADramGroupListsItsTiles) {
  Chip chip = small();
  chip.dram_groups = {{{0, 1}, {0, 0}}};
  EXPECT_EQ(build_chip(chip)->dram_groups, chip.dram_groups);
}

TEST(Chip, EveryKindOfTileHasAName) {
  EXPECT_EQ(name_of(TileKind::worker), "worker");
  EXPECT_EQ(name_of(TileKind::dram), "dram");
  EXPECT_EQ(name_of(TileKind::ethernet), "ethernet");
  EXPECT_EQ(name_of(TileKind::pcie), "pcie");
  EXPECT_EQ(name_of(TileKind::arc), "arc");
  EXPECT_EQ(name_of(TileKind::router_only), "router_only");
  EXPECT_EQ(name_of(TileKind::harvested), "harvested");
}

struct Spoilt {
  const char* expected;  // the sentence, behind the chip's name
  void (*spoil)(Chip& chip);
};

class SpoiltChip : public testing::TestWithParam<Spoilt> {};

TEST_P(SpoiltChip, IsRefusedInOneSentence) {
  Chip chip = small();
  GetParam().spoil(chip);
  EXPECT_EQ(refusal_of(std::move(chip)), std::string("chip 'drawn': ") + GetParam().expected);
}

const Spoilt kSpoilt[] = {
    {"width is 0; it must be 1 to 64", [](Chip& chip) { chip.width = 0; }},
    {"height is 65; it must be 1 to 64", [](Chip& chip) { chip.height = 65; }},
    {"has 7 tiles; a grid of 4 x 2 has 8", [](Chip& chip) { chip.tiles.pop_back(); }},
    {"clock_mhz is 1e-06; it must be 1 to 1000000", [](Chip& chip) { chip.clock = Frequency(); }},
    {"l1_bytes is 0; it must be 1 to 1099511627776", [](Chip& chip) { chip.l1_bytes = 0; }},
    {"ethernet_l1_bytes is 0; it must be 1 to 1099511627776",
     [](Chip& chip) { chip.ethernet_l1_bytes = 0; }},
    {"has no worker; it needs at least one",
     [](Chip& chip) {
       for (Tile& tile : chip.tiles) {
         if (tile.kind == TileKind::worker) tile.kind = TileKind::harvested;
       }
     }},
    {"row 1 has workers in other columns than row 0; rows with workers must have the same",
     [](Chip& chip) { chip.tiles[6].kind = TileKind::harvested; }},
    {"row 1 has workers in other columns than row 0; rows with workers must have the same",
     [](Chip& chip) { chip.tiles[7].kind = TileKind::harvested; }},
    {"row 1 has workers in other columns than row 0; rows with workers must have the same",
     [](Chip& chip) { chip.tiles[5].kind = TileKind::worker; }},
    {"the dram tile 0-1 has DRAM group -1; DRAM tiles must have one, from 0 to 7, and other tiles "
     "none",
     [](Chip& chip) { chip.tiles[4].dram_group = -1; }},
    {"the router_only tile 1-0 has DRAM group 0; DRAM tiles must have one, from 0 to 7, and other "
     "tiles none",
     [](Chip& chip) { chip.tiles[1].dram_group = 0; }},
    {"the dram tile 0-1 has DRAM group 8; DRAM tiles must have one, from 0 to 7, and other tiles "
     "none",
     [](Chip& chip) { chip.tiles[4].dram_group = 8; }},
    {"DRAM group 1 has no tile; groups must be numbered without gaps",
     [](Chip& chip) { chip.tiles[4].dram_group = 2; }},
    {"DRAM group 0 must list the tiles with its number",
     [](Chip& chip) { chip.dram_groups = {{{0, 0}, {9, 9}}}; }},
    {"lists 2 DRAM groups, but its tiles have 1",
     [](Chip& chip) { chip.dram_groups = {{{0, 0}}, {{0, 1}}}; }},
    {"lists 1 workers in another order or place than its tiles",
     [](Chip& chip) { chip.workers = {{2, 0}}; }},
    {"worker_columns is 4, but its tiles have 2", [](Chip& chip) { chip.worker_columns = 4; }},
    {"router.hop_cycles is 0; it must be 1 to 60", [](Chip& chip) { chip.router.hop_cycles = 0; }},
    {"router.credit_return_cycles is 61; it must be 1 to 60",
     [](Chip& chip) { chip.router.credit_return_cycles = 61; }},
    {"router.classes is 5; it must be 1 to 4", [](Chip& chip) { chip.router.classes = 5; }},
    {"router.pool_flits_per_vc_max is 49; it must be at most 48, the pool_flits",
     [](Chip& chip) { chip.router.pool_flits_per_vc_max = 49; }},
    {"router.pool_flits_reserved is 49; it must be at most 48, the pool_flits",
     [](Chip& chip) { chip.router.pool_flits_reserved = 49; }},
    {"router.pool_flits_for_responses is 1; it must be at most 0, the pool_flits_reserved",
     [](Chip& chip) {
       chip.router.pool_flits_reserved = 0;
       chip.router.pool_flits_for_responses = 1;
     }},
    {"niu.initiators is 0; it must be 1 to 4", [](Chip& chip) { chip.niu.initiators = 0; }},
    {"niu.initiators is 5; it must be 1 to 4", [](Chip& chip) { chip.niu.initiators = 5; }},
    {"niu.transaction_ids is 17; it must be 1 to 16",
     [](Chip& chip) { chip.niu.transaction_ids = 17; }},
    {"niu.request_cycles is -1; it must be 0 to 1000000",
     [](Chip& chip) { chip.niu.request_cycles = -1; }},
    {"niu.port_rate_bytes_per_cycle is 0; it must be 0.00390625 to 1000000",
     [](Chip& chip) { chip.niu.port_rate = BytesPerCycle(); }},
    {"niu.backoff_cycles_max is 31; it must be at least 32, the backoff_cycles_min",
     [](Chip& chip) { chip.niu.backoff_cycles_max = 31; }},
    {"dram.channels_per_group is 0; it must be 1 to 65536",
     [](Chip& chip) { chip.dram.channels_per_group = 0; }},
    {"dram.channel_rate_bytes_per_cycle is 0; it must be 0.00390625 to 1000000",
     [](Chip& chip) { chip.dram.channel_rate = BytesPerCycle(); }},
    {"Ethernet channel 0 is at 2-1, which is not an Ethernet tile",
     [](Chip& chip) { chip.ethernet_cores = {{2, 1}}; }},
    {"Ethernet channel 1 is at 4-0, which is not an Ethernet tile",
     [](Chip& chip) { chip.ethernet_cores = {{1, 1}, {4, 0}}; }},
    {"Ethernet channels 0 and 1 are both at 1-1; each tile can have only one",
     [](Chip& chip) { chip.ethernet_cores = {{1, 1}, {1, 1}}; }},
    {"lists 1 Ethernet channels, but has 2 Ethernet tiles",
     [](Chip& chip) {
       chip.tiles[1].kind = TileKind::ethernet;
       chip.ethernet_cores = {{1, 1}};
     }},
    {"ethernet.tx_queues is 0; it must be 1 to 16",
     [](Chip& chip) { chip.ethernet.tx_queues = 0; }},
    {"ethernet.tx_queues_for_kernels is 3; it must be at most 2, the tx_queues",
     [](Chip& chip) { chip.ethernet.tx_queues_for_kernels = 3; }},
    {"ethernet.queue_commands_max is 0; it must be 1 to 65536",
     [](Chip& chip) { chip.ethernet.queue_commands_max = 0; }},
    {"ethernet.command_time_ns is 2000000000; it must be 0 to 1000000000",
     [](Chip& chip) { chip.ethernet.command_time = 2_s; }},
    {"ethernet.read_rate_gb_per_s is 0; it must be 0.001 to 1000000",
     [](Chip& chip) { chip.ethernet.read_rate = Rate(); }},
    {"ethernet.line_rate_gb_per_s is 0; it must be 0.001 to 1000000",
     [](Chip& chip) { chip.ethernet.line_rate = Rate(); }},
    {"ethernet.delivery_rate_gb_per_s is 0; it must be 0.001 to 1000000",
     [](Chip& chip) { chip.ethernet.delivery_rate = Rate(); }},
    {"ethernet.word_bytes is 24; it must be a power of two, 1 to 4096",
     [](Chip& chip) { chip.ethernet.word_bytes = 24; }},
    {"ethernet.frame_payload_bytes_max is 15; it must be at least 16, the word_bytes",
     [](Chip& chip) { chip.ethernet.frame_payload_bytes_max = 15; }},
    {"ethernet.frame_overhead_bytes is -1; it must be 0 to 65536",
     [](Chip& chip) { chip.ethernet.frame_overhead_bytes = -1; }},
    {"ethernet.path_time_ns is -1; it must be 0 to 1000000000",
     [](Chip& chip) { chip.ethernet.path_time = Time() - 1_ns; }},
    {"ethernet.frames_unacknowledged_max is 0; it must be 1 to 65536",
     [](Chip& chip) { chip.ethernet.frames_unacknowledged_max = 0; }},
    {"ethernet.resend_timeout_ns is 0; it must be 1 to 1000000000",
     [](Chip& chip) { chip.ethernet.resend_timeout = Time(); }},
    {"ethernet.training_time_ns is -1; it must be 0 to 1000000000",
     [](Chip& chip) { chip.ethernet.training_time = Time() - 1_ns; }},
    {"alignment.l1_bytes is 24; it must be a power of two, 1 to 4096",
     [](Chip& chip) { chip.alignment.l1_bytes = 24; }},
};

INSTANTIATE_TEST_SUITE_P(Chip, SpoiltChip, testing::ValuesIn(kSpoilt));

TEST(Chip, ChannelsOfEthernetCoresAreInTheListedOrderOrRowByRow) {
  Chip chip = drawn({"e.ww", "eeww"});
  EXPECT_EQ(build_chip(chip)->ethernet_cores, (std::vector<Coordinate>{{0, 0}, {0, 1}, {1, 1}}));
  chip.ethernet_cores = {{1, 1}, {0, 0}, {0, 1}};
  EXPECT_EQ(build_chip(chip)->ethernet_cores, chip.ethernet_cores);
}

TEST(Chip, AParameterMayReachTheOneThatBoundsIt) {
  Chip chip = small();
  chip.router.pool_flits_per_vc_max = chip.router.pool_flits_reserved = chip.router.pool_flits;
  chip.niu.backoff_cycles_max = chip.niu.backoff_cycles_min;
  chip.ethernet.tx_queues_for_kernels = chip.ethernet.tx_queues;
  chip.ethernet.frame_payload_bytes_max = chip.ethernet.word_bytes;
  EXPECT_EQ(refusal_of(std::move(chip)), "");
}

TEST(Chip, WindowsOfTheDriverAndOfDmaAreWindowsOfTheChip) {
  Chip chip = drawn({"pwww"});
  EXPECT_EQ(refusal_of(chip), "");
  chip.pcie.windows = {{1 << 20, 4, 4}};
  chip.pcie.dynamic_window_bytes = chip.pcie.dma_window_bytes = 1 << 20;
  EXPECT_EQ(refusal_of(chip), "");
  Chip other = chip;
  other.pcie.dma_window_bytes = 1 << 21;
  EXPECT_EQ(
      refusal_of(std::move(other)),
      "chip 'drawn': pcie.dma_window_bytes is 2097152; the chip has windows of 1048576 bytes");
  other = chip;
  other.pcie.dynamic_window_bytes = 1 << 19;
  EXPECT_EQ(
      refusal_of(std::move(other)),
      "chip 'drawn': pcie.dynamic_window_bytes is 524288; the chip has windows of 1048576 bytes");
  for (const std::uint64_t next_bytes : {1 << 20, 1 << 19}) {
    other = chip;
    other.pcie.windows.push_back({next_bytes, 4, 4});
    EXPECT_EQ(refusal_of(std::move(other)),
              "chip 'drawn': pcie.windows must list each size once, the smallest first");
  }
  chip.pcie.windows.front().reserved = 5;
  EXPECT_EQ(refusal_of(std::move(chip)),
            "chip 'drawn': pcie.windows[0].reserved is 5; it must be at most 4, the count");
}

TEST(Chip, NeedsNoEthernetParametersWithoutEthernetTiles) {
  Chip chip = drawn({"ww"});
  chip.ethernet = EthernetParameters();
  chip.ethernet_l1_bytes = 0;
  EXPECT_TRUE(build_chip(std::move(chip))->ethernet_cores.empty());
}

TEST(Chip, NeedsNoPcieParametersWithoutAHostLink) {
  Chip chip = drawn({"ww"});
  chip.pcie = PcieParameters();
  EXPECT_FALSE(build_chip(chip)->has_host_link());
  chip.pcie.windows = {{1 << 20, 4, 4}};  // but no PCIe tile
  EXPECT_FALSE(build_chip(chip)->has_host_link());
}

TEST(Chip, NeedsNoDramParametersWithoutDram) {
  Chip chip = drawn({"ww"});
  chip.dram = DramParameters();
  EXPECT_TRUE(build_chip(std::move(chip))->dram_groups.empty());
}

}  // namespace
}  // namespace towpath::machine
