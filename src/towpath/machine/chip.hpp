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

// A described chip: a grid of tiles that two opposite one-way tori join, and what moving data on it
// costs. Nothing here knows one chip from another: every value comes from a spec, with its source
// (machines/*.yaml, python/towpath/specs/chip_spec.py). load.hpp reads the shipped ones.

namespace towpath::machine {

enum class TileKind : std::uint8_t { worker, dram, ethernet, pcie, arc, router_only, harvested };
inline constexpr TileKind kTileKinds[] = {TileKind::worker,   TileKind::dram, TileKind::ethernet,
                                          TileKind::pcie,     TileKind::arc,  TileKind::router_only,
                                          TileKind::harvested};
std::string_view name_of(TileKind kind);

// Wide enough for every chip, small enough that a sum of many cycles fits in an int.
inline constexpr int kSideMax = 64;

// A tile's place on the grid, in the coordinates of NoC 0: x grows to the right, y downwards.
struct Coordinate {
  int x = 0;
  int y = 0;
  auto operator<=>(const Coordinate&) const = default;
};

struct Tile {
  TileKind kind = TileKind::router_only;
  // Group of channels behind a DRAM tile, shared with the other tiles of that group; -1 elsewhere.
  int dram_group = -1;
};

// Immutable; made by build_chip.
struct Chip {
  std::string name;
  // What kernels in source form are compiled for, as tt-metal spells it; empty: they cannot be.
  std::string architecture;
  int width = 0;
  int height = 0;
  Frequency clock;
  std::vector<Tile> tiles;                           // row by row, tile (x, y) at y * width + x
  std::vector<std::vector<Coordinate>> dram_groups;  // tiles of each group, as the spec lists them
  std::vector<Coordinate> workers;                   // in logical order, row by row, no harvested
  int worker_columns = 0;                            // logical grid: workers per row
  std::vector<Coordinate> ethernet_cores;            // by channel; every Ethernet tile has one
  std::vector<Coordinate> pcie_tiles;                // row by row, from the tiles
  std::uint64_t harvested_ethernet = 0;              // a bit per channel of the whole chip
  std::uint64_t harvested_dram = 0;                  // a bit per DRAM group of the whole chip
  std::uint64_t l1_bytes = 0;
  std::uint64_t ethernet_l1_bytes = 0;
  RouterParameters router;
  NiuParameters niu;
  DramParameters dram;
  EthernetParameters ethernet;  // checked if there are Ethernet cores
  PcieParameters pcie;          // checked if there is a host link
  Alignment alignment;

  bool holds(Coordinate at) const {
    return at.x >= 0 && at.x < width && at.y >= 0 && at.y < height;
  }
  int number_of(Coordinate at) const { return at.y * width + at.x; }
  Coordinate coordinate_of(int number) const { return {number % width, number / width}; }
  const Tile& tile(Coordinate at) const { return tiles[static_cast<std::size_t>(number_of(at))]; }
  bool has_host_link() const { return !pcie_tiles.empty() && !pcie.windows.empty(); }
  int worker_rows() const { return static_cast<int>(workers.size()) / worker_columns; }
  // The worker at a place of the logical grid, which has no gaps. Throws std::invalid_argument if
  // the place is outside of the grid.
  Coordinate worker(int logical_x, int logical_y) const;
};

// Checks a description and completes it: `tiles` must hold width * height tiles, from which
// `pcie_tiles` follow. `workers`, `dram_groups`, `worker_columns` and `ethernet_cores` may be left
// empty; they follow from the tiles too, row by row. Throws DescriptionError (checks.hpp), one
// sentence on the first thing that does not fit.
std::shared_ptr<const Chip> build_chip(Chip chip);

}  // namespace towpath::machine
