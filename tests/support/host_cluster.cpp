// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "host_cluster.hpp"

#include <utility>

#include "chips.hpp"
#include "pcie_bench.hpp"

namespace towpath::tenstorrent {

using machine::ChipCluster;
using machine::Coordinate;

namespace {

std::shared_ptr<const machine::Chip> small_chip() {
  machine::Chip chip = machine::drawn_chip({"eeee", "wwww", "0..0", "p..."});
  chip.pcie = pcie::link_chip().pcie;
  return machine::build_chip(std::move(chip));
}

}  // namespace

ChipCluster chips_with_host(int count, const std::set<int>& on_pcie) {
  ChipCluster cluster;
  cluster.name = "test";
  const auto chip = small_chip();
  for (int i = 0; i < count; ++i) {
    cluster.chips.push_back({.chip = chip, .x = i, .has_host_link = on_pcie.contains(i)});
  }
  return cluster;
}

std::shared_ptr<const ChipCluster> board(bool has_reserved_link) {
  ChipCluster cluster = chips_with_host(2, {0});
  cluster.links.push_back({{{{0, 0}, {1, 0}}}});
  if (has_reserved_link) cluster.links.push_back({{{{0, 1}, {1, 1}}}, true});
  return machine::build_chip_cluster(std::move(cluster));
}

std::shared_ptr<const ChipCluster> four_boards() {
  ChipCluster cluster = chips_with_host(8, {0, 1, 2, 3});
  for (int i = 0; i < 4; ++i) {
    cluster.links.push_back({{{{i, 0}, {4 + i, 0}}}, true});
    if (i == 3) break;
    cluster.links.push_back({{{{i, 1}, {i + 1, 2}}}});
    cluster.links.push_back({{{{4 + i, 1}, {5 + i, 2}}}});
  }
  return machine::build_chip_cluster(std::move(cluster));
}

std::shared_ptr<const ChipCluster> mesh(int columns, int rows) {
  ChipCluster cluster = chips_with_host(columns * rows, {0});
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      const int chip = y * columns + x;
      if (x + 1 < columns) cluster.links.push_back({{{{chip, 0}, {chip + 1, 1}}}});
      if (y + 1 < rows) cluster.links.push_back({{{{chip, 2}, {chip + columns, 3}}}});
    }
  }
  return machine::build_chip_cluster(std::move(cluster));
}

std::vector<std::byte> memory_of(Cluster& cluster, int chip, Coordinate tile, std::uint64_t offset,
                                 std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  cluster.device(chip).memory(tile).read(offset, bytes);
  return bytes;
}

}  // namespace towpath::tenstorrent
