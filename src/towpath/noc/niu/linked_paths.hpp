// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/niu/request.hpp"

namespace towpath::noc {

// The destinations to which cores keep paths reserved, by linked multicasts.
class LinkedPaths {
 public:
  struct Rectangle {
    machine::Coordinate first;
    machine::Coordinate last;
    bool includes_source = false;
    bool operator==(const Rectangle&) const = default;
  };
  static Rectangle rectangle_of(const Request& request) {
    return {request.remote.tile, request.last_tile, request.includes_source};
  }

  explicit LinkedPaths(const machine::Chip& chip);

  // The destination that the path of an earlier multicast obliges a multicast to have, if any.
  const std::optional<Rectangle>& before(const Request& multicast) const {
    return paths_[place_of(multicast.noc, multicast.core)][multicast.vc & 1];
  }
  // A multicast has been issued, which keeps its path or releases it.
  void update(const Request& multicast);
  // The path that a core keeps reserved, or empty if there is none.
  std::string describe(int noc, machine::Coordinate core) const;
  // The same of the first core that keeps one.
  std::string describe_any() const;

 private:
  std::size_t place_of(int noc, machine::Coordinate core) const {
    return static_cast<std::size_t>(noc) * chip_.tiles.size() +
           static_cast<std::size_t>(chip_.number_of(core));
  }

  const machine::Chip& chip_;
  std::vector<std::array<std::optional<Rectangle>, 2>> paths_;  // per NIU and buddy bit
};

}  // namespace towpath::noc
