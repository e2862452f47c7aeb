// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "fabrics.hpp"

#include <vector>

#include "chips.hpp"

namespace towpath::machine {

std::shared_ptr<const ChipCluster> chips_on_grid(int columns, int rows, bool has_rings, int links) {
  ChipCluster cluster;
  cluster.name = "grid";
  const std::shared_ptr<const Chip> chip = wormhole_like_chip();
  std::vector<int> next_channel(static_cast<std::size_t>(columns * rows));
  for (int place = 0; place < columns * rows; ++place) {
    cluster.chips.push_back({.chip = chip, .x = place % columns, .y = place / columns});
  }
  const auto join = [&](int one, int other) {
    for (int link = 0; link < links; ++link) {
      const EthernetEnd first{one, next_channel[static_cast<std::size_t>(one)]++};
      const EthernetEnd second{other, next_channel[static_cast<std::size_t>(other)]++};
      cluster.links.push_back({{first, second}});
    }
  };
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      const int here = y * columns + x;
      if (x + 1 < columns) join(here, here + 1);
      if (y + 1 < rows) join(here, here + columns);
      if (has_rings && x + 1 == columns && columns > 2) join(here, y * columns);
      if (has_rings && y + 1 == rows && rows > 2) join(here, x);
    }
  }
  return build_chip_cluster(std::move(cluster));
}

}  // namespace towpath::machine
