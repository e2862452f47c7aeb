// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/chip_records.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"

namespace towpath::tenstorrent {

using machine::TileKind;

namespace {

// One kernel for each NoC, and one on the compute cores.
constexpr std::size_t kKernelsPerTile = 3;
constexpr int kComputeCores = 2;

}  // namespace

std::string name_of(machine::Coordinate core, int chip) {
  return fmt::format("core ({}, {}) of chip {}", core.x, core.y, chip);
}

ChipRecords::ChipRecords(const machine::ChipCluster& cluster) : cluster_(cluster) {
  Place places = 0;
  for (const machine::ClusterChip& chip : cluster.chips) {
    first_stream_.push_back(next_stream_);
    first_place_.push_back(places);
    const std::size_t channels = chip.chip->ethernet_cores.size();
    next_stream_ += static_cast<Stream>(channels * index(chip.chip->ethernet.tx_queues));
    places += static_cast<Place>(kKernelsPerTile * chip.chip->tiles.size());
  }
  queue_streams_ = next_stream_;
}

void ChipRecords::add(noc::ChipNetwork& network) {
  Record& record = chips_.emplace_back();
  record.network = &network;
  record.ledgers.resize(network.chip().tiles.size());
}

const machine::Chip& ChipRecords::chip(int chip) const { return *cluster_.chips[index(chip)].chip; }

noc::ChipNetwork& ChipRecords::network(int chip) const { return *chips_[index(chip)].network; }

Ledger& ChipRecords::ledger(int chip, machine::Coordinate tile) {
  Record& record = chips_[index(chip)];
  auto& place = record.ledgers[index(record.network->chip().number_of(tile))];
  if (place == nullptr) place = std::make_unique<Ledger>();
  return *place;
}

const Ledger* ChipRecords::find_ledger(int chip, machine::Coordinate tile) const {
  const Record& record = chips_[index(chip)];
  return record.ledgers[index(record.network->chip().number_of(tile))].get();
}

bool ChipRecords::holds(int chip, machine::Coordinate tile, std::uint64_t offset,
                        std::span<const std::byte> bytes) const {
  std::vector<std::byte> now(bytes.size());
  network(chip).load(tile, offset, now);
  return std::ranges::equal(now, bytes);
}

bool ChipRecords::has_l1(int chip, machine::Coordinate tile) const {
  const machine::Chip& on = this->chip(chip);
  if (!on.holds(tile)) return false;
  const TileKind kind = on.tile(tile).kind;
  return kind == TileKind::worker || kind == TileKind::ethernet;
}

int ChipRecords::memory_of(int chip, machine::Coordinate tile) const {
  const machine::Chip& on = this->chip(chip);
  const int group = on.tile(tile).dram_group;
  return on.number_of(group < 0 ? tile : on.dram_groups[index(group)].front());
}

int ChipRecords::channel_of(int chip, machine::Coordinate core) const {
  const auto& cores = this->chip(chip).ethernet_cores;
  const auto at = std::ranges::find(cores, core);
  return at == cores.end() ? -1 : static_cast<int>(at - cores.begin());
}

Place ChipRecords::place_of(int chip, machine::Coordinate core, int noc_index) const {
  const int tile = this->chip(chip).number_of(core);
  return first_place_[index(chip)] + static_cast<Place>(kKernelsPerTile * index(tile)) +
         static_cast<Place>(noc_index == kNoNoc ? kComputeCores : noc_index);
}

Stream ChipRecords::stream_of(machine::EthernetEnd end, int queue) const {
  return first_stream_[index(end.chip)] +
         static_cast<Stream>(end.channel * queues(end.chip) + queue);
}

}  // namespace towpath::tenstorrent
