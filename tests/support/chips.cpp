// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "chips.hpp"

#include "towpath/machine/load.hpp"

namespace towpath::machine {

using namespace literals;

namespace {

Tile tile_of(char letter) {
  if (letter >= '0' && letter <= '9') return {TileKind::dram, letter - '0'};
  switch (letter) {
    case 'w': return {TileKind::worker};
    case 'e': return {TileKind::ethernet};
    case 'p': return {TileKind::pcie};
    case 'h': return {TileKind::harvested};
    default: return {TileKind::router_only};
  }
}

// Parameters to which expected values in tests belong, where they differ from the shipped chip's.
void set_parameters_of_tests(Chip& chip) {
  chip.router.pool_flits_for_responses = 1;
  chip.niu.multicast_rate = BytesPerCycle::from(31.2);
  chip.niu.path_link_cycles = 2;
  chip.dram.read_cycles = 150;
  chip.ethernet.queue_commands_max = 2;
  chip.ethernet.command_time = 56_ns;
  chip.ethernet.read_rate = 128_GBps;
  chip.ethernet.path_time = 400_ns;
  chip.pcie.windows.clear();
}

}  // namespace

Chip chip_without_tiles() {
  static const std::shared_ptr<const Chip> wormhole = load_chip("wormhole");
  Chip chip = *wormhole;
  chip.width = chip.height = chip.worker_columns = 0;
  chip.tiles.clear();
  chip.dram_groups.clear();
  chip.workers.clear();
  chip.ethernet_cores.clear();
  chip.pcie_tiles.clear();
  set_parameters_of_tests(chip);
  return chip;
}

Chip drawn_chip(const std::vector<std::string>& rows) {
  Chip chip = chip_without_tiles();
  chip.name = "drawn";
  chip.architecture = "wormhole_b0";
  chip.width = static_cast<int>(rows.front().size());
  chip.height = static_cast<int>(rows.size());
  for (const std::string& row : rows) {
    for (const char letter : row) chip.tiles.push_back(tile_of(letter));
  }
  return chip;
}

std::shared_ptr<const Chip> tiny_chip() {
  return build_chip(drawn_chip({
      "0eh1",  //
      "0www",  //
      "pwww",  //
      "1www",
  }));
}

std::shared_ptr<const Chip> wormhole_like_chip() {
  return build_chip(drawn_chip({
      "0eeee2eeee",  //
      "0wwww2wwww",  //
      ".wwww3wwww",  //
      "pwwww4wwww",  //
      ".wwww4wwww",  //
      "1hhhh5hhhh",  //
      "1eeee5eeee",  //
      "1wwww5wwww",  //
      ".wwww4wwww",  //
      ".wwww3wwww",  //
      ".wwww3wwww",  //
      "0hhhh2hhhh",
  }));
}

}  // namespace towpath::machine
