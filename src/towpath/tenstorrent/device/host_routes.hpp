// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "towpath/machine/chip_cluster.hpp"

namespace towpath::tenstorrent {

// How the host reaches each chip: directly over PCIe, or over the fewest links from a chip on PCIe;
// of as many, over most that the dispatcher has taken, and then over those described first. There
// is one way to each chip, so that the ways form trees, with a chip on PCIe at each root.
class HostRoutes {
 public:
  explicit HostRoutes(const machine::ChipCluster& cluster);

  struct Route {
    int links = kNotReached;      // 0: the host reaches the chip directly
    int reserved_links = 0;       // of which the dispatcher has taken so many
    machine::EthernetEnd near{};  // of the last link: on the chip before, and on this one
    machine::EthernetEnd far{};
  };
  const Route& to(int chip) const { return routes_[static_cast<std::size_t>(chip)]; }
  bool is_reached(int chip) const { return to(chip).links != kNotReached; }
  // The Ethernet core of a chip on PCIe where the way to a chip begins; it has at least one link.
  machine::EthernetEnd gateway(int chip) const;
  // The Ethernet core of a chip on this way over which it goes on.
  machine::EthernetEnd next(int chip, int target) const;

 private:
  static constexpr int kNotReached = -1;
  bool extend(const machine::EthernetLink& link, int from, int links);

  std::vector<Route> routes_;
};

}  // namespace towpath::tenstorrent
