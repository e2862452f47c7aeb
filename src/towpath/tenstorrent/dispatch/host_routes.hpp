// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "towpath/machine/chip_cluster.hpp"

namespace towpath::tenstorrent {

// Routes from the host to each chip: directly over PCIe, or over the fewest links from a chip on
// PCIe. Among equals, over the most links that the dispatcher has taken, then over the links
// described first. There is one route to each chip, so routes form trees, with a chip on PCIe at
// each root.
class HostRoutes {
 public:
  explicit HostRoutes(const machine::ChipCluster& cluster);

  struct Route {
    int links = kNotReached;      // 0: directly reachable from the host
    int reserved_links = 0;       // links of the route reserved for the dispatcher
    machine::EthernetEnd near{};  // ends of the last link: on the previous chip, and on this one
    machine::EthernetEnd far{};
  };
  const Route& to(int chip) const { return routes_[static_cast<std::size_t>(chip)]; }
  bool is_reached(int chip) const { return to(chip).links != kNotReached; }
  // Ethernet core of a chip on PCIe, the begin of the route to a chip. The route has at least one
  // link.
  machine::EthernetEnd gateway(int chip) const;
  // Ethernet core of a chip on this route for the next hop.
  machine::EthernetEnd next(int chip, int target) const;

 private:
  static constexpr int kNotReached = -1;
  bool extend(const machine::EthernetLink& link, int from, int links);

  std::vector<Route> routes_;
};

}  // namespace towpath::tenstorrent
