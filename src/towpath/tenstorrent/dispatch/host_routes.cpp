// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/dispatch/host_routes.hpp"

namespace towpath::tenstorrent {

using machine::EthernetEnd;

HostRoutes::HostRoutes(const machine::ChipCluster& cluster) {
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

// Whether the route over this link from one of its ends is the best found to the chip at the
// other.
bool HostRoutes::extend(const machine::EthernetLink& link, int from, int links) {
  const EthernetEnd near = link.ends[static_cast<std::size_t>(from)];
  const EthernetEnd far = link.ends[static_cast<std::size_t>(1 - from)];
  if (to(near.chip).links != links - 1) return false;
  const int reserved_links = to(near.chip).reserved_links + (link.is_reserved ? 1 : 0);
  Route& route = routes_[static_cast<std::size_t>(far.chip)];
  const bool is_better =
      route.links == kNotReached || (route.links == links && reserved_links > route.reserved_links);
  if (is_better) route = {links, reserved_links, near, far};
  return is_better;
}

EthernetEnd HostRoutes::gateway(int chip) const {
  EthernetEnd near = to(chip).near;
  while (to(near.chip).links > 0) near = to(near.chip).near;
  return near;
}

EthernetEnd HostRoutes::next(int chip, int target) const {
  EthernetEnd near = to(target).near;
  while (near.chip != chip) near = to(near.chip).near;
  return near;
}

}  // namespace towpath::tenstorrent
