// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/chip_parameters.hpp"

// A described chip: a grid of tiles connected by two opposite unidirectional tori, and its
// data-movement costs. The code is the same for all chips: every value comes from a spec, with its
// source (machines/*.yaml, python/towpath/specs/chip_spec.py). load.hpp loads the shipped chips.

namespace towpath::machine {

enum class TileKind : std::uint8_t { worker, dram, ethernet, pcie, arc, router_only, harvested };
inline constexpr TileKind kTileKinds[] = {TileKind::worker,   TileKind::dram, TileKind::ethernet,
                                          TileKind::pcie,     TileKind::arc,  TileKind::router_only,
                                          TileKind::harvested};
std::string_view name_of(TileKind kind);

// Large enough for every chip, small enough that a sum of many cycles fits in an int.
inline constexpr int kSideMax = 64;

// A tile's grid position in the coordinates of NoC 0: x increases to the right, y downwards.
struct Coordinate {
  int x = 0;
  int y = 0;
  auto operator<=>(const Coordinate&) const = default;
};

struct Tile {
  TileKind kind = TileKind::router_only;
  // Channel group of a DRAM tile, shared with the other tiles of that group; -1 for other tiles.
  int dram_group = -1;
};

// Immutable. Created by build_chip.
struct Chip {
  std::string name;
  // Target architecture of kernels in source form, as spelled by tt-metal; empty if there is none.
  std::string architecture;
  int width = 0;
  int height = 0;
  Frequency clock;
  std::vector<Tile> tiles;                           // row-major: tile (x, y) at y * width + x
  std::vector<std::vector<Coordinate>> dram_groups;  // tiles of each group, in the spec's order
  std::vector<Coordinate> workers;                   // in logical order, row-major, without
                                                     // harvested ones
  int worker_columns = 0;                            // logical grid: workers per row
  std::vector<Coordinate> ethernet_cores;            // by channel; every Ethernet tile has one
  std::vector<Coordinate> pcie_tiles;                // row-major, from the tiles
  std::uint64_t harvested_ethernet = 0;              // one bit per channel of the full chip
  std::uint64_t harvested_dram = 0;                  // one bit per DRAM group of the full chip
  std::uint64_t l1_bytes = 0;
  std::uint64_t ethernet_l1_bytes = 0;
  RouterParameters router;
  NiuParameters niu;
  DramParameters dram;
  EthernetParameters ethernet;  // checked only with Ethernet cores
  PcieParameters pcie;          // checked only with a host link
  Alignment alignment;

  bool holds(Coordinate at) const {
    return at.x >= 0 && at.x < width && at.y >= 0 && at.y < height;
  }
  int number_of(Coordinate at) const { return at.y * width + at.x; }
  Coordinate coordinate_of(int number) const { return {number % width, number / width}; }
  const Tile& tile(Coordinate at) const { return tiles[static_cast<std::size_t>(number_of(at))]; }
  bool has_host_link() const { return !pcie_tiles.empty() && !pcie.windows.empty(); }
  int worker_rows() const { return static_cast<int>(workers.size()) / worker_columns; }
  // The worker at a position of the logical grid, which has no gaps. Throws std::invalid_argument
  // if the position is outside the grid.
  Coordinate worker(int logical_x, int logical_y) const;
};

// Checks and completes a description. `tiles` must have width * height tiles, which determine
// `pcie_tiles`. They also determine `workers`, `dram_groups`, `worker_columns` and `ethernet_cores`
// in row-major order if these are empty. Throws DescriptionError (checks.hpp) for the first
// inconsistency.
std::shared_ptr<const Chip> build_chip(Chip chip);

}  // namespace towpath::machine
