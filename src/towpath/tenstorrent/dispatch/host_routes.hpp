// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "towpath/machine/chip_cluster.hpp"

namespace towpath::tenstorrent {

// Routes from the host to each chip: directly over PCIe, or over the fewest links from a chip on
// PCIe. Among equals, over the route with the most links of the dispatcher, and then over the links
// described first. There is one route to each chip, so routes form trees, with a chip on PCIe at
// each root.
class HostRoutes {
 public:
  explicit HostRoutes(const machine::ChipCluster& cluster) {
    for (const machine::ClusterChip& chip : cluster.chips) {
      routes_.push_back({.links = chip.has_host_link ? 0 : kNotReached});
    }
    bool is_longer = true;
    for (int links = 1; is_longer; ++links) {
      is_longer = false;
      for (const machine::EthernetLink& link : cluster.links) {
        for (int from = 0; from < 2; ++from) is_longer |= extend(link, from, links);
      }
    }
  }

  struct Route {
    int links = kNotReached;      // 0: directly reachable from the host
    int reserved_links = 0;       // links of the route reserved for the dispatcher
    machine::EthernetEnd near{};  // ends of the last link: on the previous chip, and on this one
    machine::EthernetEnd far{};
  };
  const Route& to(int chip) const { return routes_[static_cast<std::size_t>(chip)]; }
  bool is_reached(int chip) const { return to(chip).links != kNotReached; }
  // Ethernet core of a chip on PCIe, the start of the route to a chip. The route has at least one
  // link.
  machine::EthernetEnd gateway(int chip) const {
    machine::EthernetEnd near = to(chip).near;
    while (to(near.chip).links > 0) near = to(near.chip).near;
    return near;
  }
  // Ethernet core of a chip on this route for the next hop.
  machine::EthernetEnd next(int chip, int target) const {
    machine::EthernetEnd near = to(target).near;
    while (near.chip != chip) near = to(near.chip).near;
    return near;
  }

 private:
  static constexpr int kNotReached = -1;
  // True if the route over this link from one of its ends is the best found to the chip at the
  // other.
  bool extend(const machine::EthernetLink& link, int from, int links) {
    const machine::EthernetEnd near = link.ends[static_cast<std::size_t>(from)];
    const machine::EthernetEnd far = link.ends[static_cast<std::size_t>(1 - from)];
    if (to(near.chip).links != links - 1) return false;
    const int reserved_links = to(near.chip).reserved_links + (link.is_reserved ? 1 : 0);
    Route& route = routes_[static_cast<std::size_t>(far.chip)];
    const bool is_better = route.links == kNotReached ||
                           (route.links == links && reserved_links > route.reserved_links);
    if (is_better) route = {links, reserved_links, near, far};
    return is_better;
  }

  std::vector<Route> routes_;
};

}  // namespace towpath::tenstorrent
