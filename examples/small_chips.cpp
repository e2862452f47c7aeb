// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "small_chips.hpp"

#include <utility>

#include "towpath/machine/load.hpp"

namespace towpath::examples {

using machine::Chip;
using machine::ChipCluster;
using machine::TileKind;

namespace {

// The shipped chip with other tiles. What follows from the tiles is left empty, for build_chip.
Chip wormhole_with_tiles(int side, std::vector<machine::Tile> tiles) {
  Chip chip = *machine::load_chip("wormhole");
  chip.width = chip.height = side;
  chip.tiles = std::move(tiles);
  chip.dram_groups.clear();
  chip.workers.clear();
  chip.worker_columns = 0;
  chip.ethernet_cores.clear();
  chip.harvested_ethernet = 0;
  return chip;
}

}  // namespace

std::shared_ptr<const Chip> square_of_workers(int side) {
  const auto tiles = static_cast<std::size_t>(side * side);
  Chip chip = wormhole_with_tiles(side, std::vector<machine::Tile>(tiles, {TileKind::worker}));
  chip.name = "square of workers";
  return machine::build_chip(std::move(chip));
}

std::shared_ptr<const ChipCluster> two_chips(int links) {
  Chip small = wormhole_with_tiles(2, {{TileKind::ethernet},
                                       {TileKind::ethernet},  //
                                       {TileKind::worker},
                                       {TileKind::worker}});
  small.name = "small";
  const auto chip = machine::build_chip(std::move(small));
  ChipCluster cluster;
  cluster.name = "two chips";
  cluster.chips = {{.chip = chip, .x = 0}, {.chip = chip, .x = 1}};
  for (int core = 0; core < links; ++core) cluster.links.push_back({{{{0, core}, {1, core}}}});
  return machine::build_chip_cluster(std::move(cluster));
}

}  // namespace towpath::examples
