// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/noc_way.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace towpath::pcie {

using machine::Chip;
using machine::Coordinate;
using machine::TileKind;

namespace {

// Rows or columns with workers (including harvested ones), and the disabled ones.
struct Lines {
  const char* axis = "rows";
  std::vector<int> left;
  std::uint64_t mask = 0;
};

Lines lines_of(const Chip& chip) {
  std::set<int> columns_left;
  std::set<int> columns_harvested;
  std::set<int> rows_left;
  std::set<int> rows_harvested;
  for (int number = 0; number < chip.width * chip.height; ++number) {
    const Coordinate at = chip.coordinate_of(number);
    const TileKind kind = chip.tile(at).kind;
    if (kind == TileKind::worker) {
      columns_left.insert(at.x);
      rows_left.insert(at.y);
    } else if (kind == TileKind::harvested) {
      columns_harvested.insert(at.x);
      rows_harvested.insert(at.y);
    }
  }
  const bool by_columns = std::ranges::none_of(
      columns_harvested, [&](int column) { return columns_left.contains(column); });
  const std::set<int>& left = by_columns ? columns_left : rows_left;
  const std::set<int>& harvested = by_columns ? columns_harvested : rows_harvested;
  Lines lines{by_columns ? "columns" : "rows", {left.begin(), left.end()}, 0};
  std::set<int> all = left;
  all.insert(harvested.begin(), harvested.end());
  std::uint64_t bit = 1;
  for (const int line : all) {
    if (harvested.contains(line)) lines.mask |= bit;
    bit <<= 1;
  }
  return lines;
}

void check(const Chip& chip, Coordinate tile) {
  if (!chip.holds(tile)) {
    throw std::invalid_argument(fmt::format("({}, {}) is outside the {} x {} grid of {}", tile.x,
                                            tile.y, chip.width, chip.height, chip.name));
  }
  const TileKind kind = chip.tile(tile).kind;
  if (kind == TileKind::worker || kind == TileKind::dram || kind == TileKind::ethernet) return;
  if (kind == TileKind::harvested) {
    const Lines lines = lines_of(chip);
    throw std::invalid_argument(
        fmt::format("core ({}, {}) of {} is harvested: mask {:#x} over the {} with workers leaves "
                    "{} {}",
                    tile.x, tile.y, chip.name, lines.mask, lines.axis, lines.axis,
                    fmt::join(lines.left, ", ")));
  }
  throw std::invalid_argument(fmt::format("({}, {}) of {} is a {} tile, which has no memory",
                                          tile.x, tile.y, chip.name, machine::name_of(kind)));
}

bool is_dram(const Chip& chip, Coordinate tile) { return chip.tile(tile).kind == TileKind::dram; }

}  // namespace

NocWay noc_way(const Chip& chip, Coordinate tile) {
  check(chip, tile);
  if (!chip.has_host_link()) {
    throw std::invalid_argument(fmt::format("chip '{}' has no host link", chip.name));
  }
  const Coordinate from = chip.pcie_tiles.front();
  const machine::RouterParameters& router = chip.router;
  const int hops = (tile.x != from.x ? chip.width : 0) + (tile.y != from.y ? chip.height : 0);
  const int crossings = 2 * (router.niu_to_router_cycles + router.router_to_niu_cycles);
  const auto time = [&](int cycles) { return chip.clock.time_of(Cycles(cycles)); };
  NocWay way;
  way.hops = time(hops * router.hop_cycles);
  way.endpoint = time(crossings + chip.niu.request_cycles + chip.niu.acknowledge_cycles);
  way.read_endpoint = time(crossings + chip.niu.request_cycles + chip.niu.read_response_cycles);
  double bytes_per_cycle = chip.niu.port_rate.value();
  if (is_dram(chip, tile)) {
    way.memory = time(chip.dram.read_cycles);
    bytes_per_cycle = std::min(bytes_per_cycle, chip.dram.channel_rate.value());
  }
  way.rate = Rate::from_gb_per_s(bytes_per_cycle * static_cast<double>(chip.clock.hz()) / 1e9);
  return way;
}

std::uint64_t memory_bytes(const Chip& chip, Coordinate tile) {
  check(chip, tile);
  switch (chip.tile(tile).kind) {
    case TileKind::dram:
      return static_cast<std::uint64_t>(chip.dram.channels_per_group) * chip.dram.channel_bytes;
    case TileKind::ethernet: return chip.ethernet_l1_bytes;
    default: return chip.l1_bytes;
  }
}

}  // namespace towpath::pcie
