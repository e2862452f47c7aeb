// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/core/ethernet_core.hpp"
#include "towpath/tenstorrent/fabric/fabric_layout.hpp"

// The kernel at one end of a link, for as long as the cluster runs. It takes packets from its
// channels, one of which is a worker's and the others belong to routers on the same chip, and sends
// them over the link; packets from the link it delivers, or hands to the next router. Packets are
// stored and forwarded, whole, in order of arrival.
//
// Slots are credits. A packet leaves when the far end has a free slot; where it enters a ring there
// must be two, so that one, the bubble, always remains for packets already in the ring. A channel's
// slot is free again once the far end says that the packet has left there; in rings, once it has
// arrived there (the first-level acknowledgement).

namespace towpath::tenstorrent::fabric {

class FabricWatch;

struct RouterConfig {
  Layout layout;
  // Whether it belongs to a ring: entering takes a bubble, and arrivals are acknowledged.
  bool is_ring = false;
  // Client that fills a channel: the tile of a router, and the direction under which it counts this
  // router.
  struct Client {
    machine::Coordinate tile;
    Direction direction = 0;
  };
  std::vector<std::optional<Client>> clients;  // by channel; none: workers
  // The router of the chip in each direction, and the channel there that this one fills.
  struct Next {
    machine::Coordinate tile;
    int channel = 0;
    machine::EthernetEnd end{};
  };
  std::array<std::optional<Next>, kDirections> next;
  // Consecutive looks without work before it calls run_routing().
  std::int64_t polls_per_context_switch = 0;
  // If hazards are monitored; then the ends of its link, here and there.
  FabricWatch* watch = nullptr;
  machine::EthernetEnd end{};
  machine::EthernetEnd far_end{};
};

// Runs forever, also while the link is down: it is trained when both ends are idle.
void route(EthernetCore& core, const RouterConfig& config);

// The same on a core with two RISC-Vs: each runs its part in a kernel of its own.
void route_sending(EthernetCore& core, const RouterConfig& config);
void route_receiving(EthernetCore& core, const RouterConfig& config);

}  // namespace towpath::tenstorrent::fabric
