// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/linked_paths.hpp"

#include <fmt/format.h>

namespace towpath::noc {

LinkedPaths::LinkedPaths(const machine::Chip& chip) : chip_(chip), paths_(2 * chip.tiles.size()) {}

void LinkedPaths::update(const Request& multicast) {
  auto& path = paths_[place_of(multicast.noc, multicast.core)][multicast.vc & 1];
  path.reset();
  if (multicast.is_linked) path = rectangle_of(multicast);
}

std::string LinkedPaths::describe(int noc, machine::Coordinate core) const {
  for (const std::optional<Rectangle>& path : paths_[place_of(noc, core)]) {
    if (!path) continue;
    return fmt::format(
        "the path of its linked multicast to the rectangle ({}, {}) to ({}, {}) is still reserved",
        path->first.x, path->first.y, path->last.x, path->last.y);
  }
  return "";
}

std::string LinkedPaths::describe_any() const {
  for (int noc = 0; noc < 2; ++noc) {
    for (int number = 0; number < static_cast<int>(chip_.tiles.size()); ++number) {
      const machine::Coordinate core = chip_.coordinate_of(number);
      const std::string path = describe(noc, core);
      if (!path.empty()) return fmt::format("core ({}, {}): {}", core.x, core.y, path);
    }
  }
  return "";
}

}  // namespace towpath::noc
