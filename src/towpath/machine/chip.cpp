// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/machine/checks.hpp"

namespace towpath::machine {

namespace {

Checks checks_of(const Chip& chip) { return Checks(fmt::format("chip '{}'", chip.name)); }

void check_shape(const Chip& chip) {
  const Checks checks = checks_of(chip);
  checks.number("width", chip.width, 1, kSideMax);
  checks.number("height", chip.height, 1, kSideMax);
  const std::size_t expected = index(chip.width * chip.height);
  if (chip.tiles.size() != expected) {
    checks.fail("has {} tiles; a grid of {} x {} has {}", chip.tiles.size(), chip.width,
                chip.height, expected);
  }
}

bool has(const Chip& chip, Needed needed) {
  switch (needed) {
    case Needed::always: return true;
    case Needed::with_dram: return !chip.dram_groups.empty();
    case Needed::with_ethernet: return !chip.ethernet_cores.empty();
    case Needed::with_host_link: return chip.has_host_link();
  }
  return true;
}

void check_ethernet(const Checks& checks, const EthernetParameters& ethernet) {
  checks.at_most("ethernet.tx_queues_for_kernels", ethernet.tx_queues_for_kernels,
                 ethernet.tx_queues, "the tx_queues");
  checks.at_least("ethernet.frame_payload_bytes_max", ethernet.frame_payload_bytes_max,
                  ethernet.word_bytes, "the word_bytes");
}

void check_window(const Checks& checks, const PcieParameters& pcie, const char* field,
                  std::uint64_t size_bytes) {
  std::string known;
  for (const WindowSize& window : pcie.windows) {
    if (window.size_bytes == size_bytes) return;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", window.size_bytes);
  }
  checks.fail_at(field, "is {}; the chip has windows of {} bytes", size_bytes, known);
}

void check_pcie(const Checks& checks, const PcieParameters& pcie) {
  std::uint64_t last_bytes = 0;
  for (std::size_t i = 0; i < pcie.windows.size(); ++i) {
    const WindowSize& window = pcie.windows[i];
    if (window.size_bytes <= last_bytes) {
      checks.fail_at("pcie.windows", "must list each size once, the smallest first");
    }
    last_bytes = window.size_bytes;
    checks.at_most(fmt::format("pcie.windows[{}].reserved", i), window.reserved, window.count,
                   "the count");
  }
  check_window(checks, pcie, "pcie.dynamic_window_bytes", pcie.dynamic_window_bytes);
  check_window(checks, pcie, "pcie.dma_window_bytes", pcie.dma_window_bytes);
}

// Constraints between parameters.
void check_across(const Chip& chip) {
  const Checks checks = checks_of(chip);
  const RouterParameters& router = chip.router;
  checks.at_most("router.pool_flits_per_vc_max", router.pool_flits_per_vc_max, router.pool_flits,
                 "the pool_flits");
  checks.at_most("router.pool_flits_reserved", router.pool_flits_reserved, router.pool_flits,
                 "the pool_flits");
  checks.at_most("router.pool_flits_for_responses", router.pool_flits_for_responses,
                 router.pool_flits_reserved, "the pool_flits_reserved");
  checks.at_least("niu.backoff_cycles_max", chip.niu.backoff_cycles_max,
                  chip.niu.backoff_cycles_min, "the backoff_cycles_min");
  if (has(chip, Needed::with_ethernet)) check_ethernet(checks, chip.ethernet);
  if (has(chip, Needed::with_host_link)) check_pcie(checks, chip.pcie);
}

void check_parameters(const Chip& chip) {
  const Checks checks = checks_of(chip);
  for (const BlockTable& table : chip_tables()) {
    if (has(chip, table.needed)) checks.blocks(&chip, table);
  }
  check_across(chip);
}

// The tiles of each group in row-major order.
std::vector<std::vector<Coordinate>> dram_groups_of(const Chip& chip) {
  const Checks checks = checks_of(chip);
  std::vector<std::vector<Coordinate>> groups;
  for (std::size_t number = 0; number < chip.tiles.size(); ++number) {
    const Tile& tile = chip.tiles[number];
    const Coordinate at = chip.coordinate_of(static_cast<int>(number));
    const bool is_dram = tile.kind == TileKind::dram;
    const int group_max = chip.width * chip.height - 1;
    if (is_dram != (tile.dram_group >= 0) || tile.dram_group > group_max) {
      checks.fail(
          "the {} tile {}-{} has DRAM group {}; DRAM tiles must have one, from 0 to {}, and other "
          "tiles none",
          name_of(tile.kind), at.x, at.y, tile.dram_group, group_max);
    }
    if (!is_dram) continue;
    const std::size_t group = index(tile.dram_group);
    if (groups.size() <= group) groups.resize(group + 1);
    groups[group].push_back(at);
  }
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].empty()) {
      checks.fail("DRAM group {} has no tile; groups must be numbered without gaps", group);
    }
  }
  return groups;
}

// A list of groups may only change the order of tiles within them.
void check_dram_groups(const Chip& chip, const std::vector<std::vector<Coordinate>>& of_tiles) {
  std::vector<std::vector<Coordinate>> listed = chip.dram_groups;
  for (std::vector<Coordinate>& group : listed) {
    std::sort(group.begin(), group.end(),
              [](Coordinate a, Coordinate b) { return std::pair(a.y, a.x) < std::pair(b.y, b.x); });
  }
  if (listed.size() != of_tiles.size()) {
    checks_of(chip).fail("lists {} DRAM groups, but its tiles have {}", listed.size(),
                         of_tiles.size());
  }
  for (std::size_t group = 0; group < listed.size(); ++group) {
    if (listed[group] != of_tiles[group]) {
      checks_of(chip).fail("DRAM group {} must list the tiles with its number", group);
    }
  }
}

// In row-major order.
std::vector<Coordinate> tiles_of_kind(const Chip& chip, TileKind kind) {
  std::vector<Coordinate> tiles;
  for (std::size_t number = 0; number < chip.tiles.size(); ++number) {
    if (chip.tiles[number].kind == kind) {
      tiles.push_back(chip.coordinate_of(static_cast<int>(number)));
    }
  }
  return tiles;
}

// Checks that the list of Ethernet cores contains each Ethernet tile once. Its order defines the
// channels.
void check_ethernet_cores(const Chip& chip, const std::vector<Coordinate>& of_tiles) {
  const Checks checks = checks_of(chip);
  for (std::size_t channel = 0; channel < chip.ethernet_cores.size(); ++channel) {
    const Coordinate at = chip.ethernet_cores[channel];
    if (!chip.holds(at) || chip.tile(at).kind != TileKind::ethernet) {
      checks.fail("Ethernet channel {} is at {}-{}, which is not an Ethernet tile", channel, at.x,
                  at.y);
    }
    const auto same = std::find(chip.ethernet_cores.begin(), chip.ethernet_cores.end(), at);
    const auto first = static_cast<std::size_t>(same - chip.ethernet_cores.begin());
    if (first != channel) {
      checks.fail("Ethernet channels {} and {} are both at {}-{}; each tile can have only one",
                  first, channel, at.x, at.y);
    }
  }
  if (chip.ethernet_cores.size() != of_tiles.size()) {
    checks.fail("lists {} Ethernet channels, but has {} Ethernet tiles", chip.ethernet_cores.size(),
                of_tiles.size());
  }
}

std::vector<Coordinate> workers_of(const Chip& chip) {
  std::vector<Coordinate> workers = tiles_of_kind(chip, TileKind::worker);
  if (workers.empty()) checks_of(chip).fail("has no worker; it needs at least one");
  return workers;
}

// Workers per row. The logical grid has no gaps, so each row must have the columns of the first.
int worker_columns_of(const Chip& chip, const std::vector<Coordinate>& workers) {
  const auto second_row = std::find_if(workers.begin(), workers.end(), [&](Coordinate worker) {
    return worker.y != workers.front().y;
  });
  const std::size_t columns = static_cast<std::size_t>(second_row - workers.begin());
  for (std::size_t number = 0; number < workers.size(); ++number) {
    const int row = workers[number - number % columns].y;
    const bool is_last_of_row =
        number + 1 == workers.size() || workers[number + 1].y != workers[number].y;
    if (workers[number].y != row || workers[number].x != workers[number % columns].x ||
        is_last_of_row != (number % columns == columns - 1)) {
      checks_of(chip).fail(
          "row {} has workers in other columns than row {}; rows with workers must have the same",
          row, workers.front().y);
    }
  }
  return static_cast<int>(columns);
}

}  // namespace

std::string_view name_of(TileKind kind) {
  switch (kind) {
    case TileKind::worker: return "worker";
    case TileKind::dram: return "dram";
    case TileKind::ethernet: return "ethernet";
    case TileKind::pcie: return "pcie";
    case TileKind::arc: return "arc";
    case TileKind::router_only: return "router_only";
    case TileKind::harvested: return "harvested";
  }
  return "unknown";
}

Coordinate Chip::worker(int logical_x, int logical_y) const {
  if (logical_x < 0 || logical_x >= worker_columns || logical_y < 0 || logical_y >= worker_rows()) {
    checks_of(*this).fail("has no worker ({}, {}); its logical grid is {} x {}, from (0, 0)",
                          logical_x, logical_y, worker_columns, worker_rows());
  }
  return workers[index(logical_y * worker_columns + logical_x)];
}

std::shared_ptr<const Chip> build_chip(Chip chip) {
  const Checks checks = checks_of(chip);
  check_shape(chip);
  std::vector<std::vector<Coordinate>> groups = dram_groups_of(chip);
  if (chip.dram_groups.empty()) {
    chip.dram_groups = std::move(groups);
  } else {
    check_dram_groups(chip, groups);
  }
  const std::vector<Coordinate> workers = workers_of(chip);
  if (!chip.workers.empty() && chip.workers != workers) {
    checks.fail("lists {} workers in another order or place than its tiles", chip.workers.size());
  }
  const int columns = worker_columns_of(chip, workers);
  if (chip.worker_columns != 0 && chip.worker_columns != columns) {
    checks.fail("worker_columns is {}, but its tiles have {}", chip.worker_columns, columns);
  }
  chip.workers = workers;
  chip.worker_columns = columns;
  std::vector<Coordinate> ethernet_cores = tiles_of_kind(chip, TileKind::ethernet);
  if (chip.ethernet_cores.empty()) {
    chip.ethernet_cores = std::move(ethernet_cores);
  } else {
    check_ethernet_cores(chip, ethernet_cores);
  }
  chip.pcie_tiles = tiles_of_kind(chip, TileKind::pcie);
  check_parameters(chip);
  return std::make_shared<const Chip>(std::move(chip));
}

}  // namespace towpath::machine
