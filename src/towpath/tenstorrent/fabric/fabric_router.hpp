// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "towpath/tenstorrent/device/ethernet_core.hpp"
#include "towpath/tenstorrent/fabric/fabric_layout.hpp"

// The kernel at one end of a link, for as long as the cluster runs. It takes packets from its
// channels, one a worker's, the others of routers on the same chip, and sends them over the link;
// what comes over the link it delivers, or hands to the next router. Packets are stored and
// forwarded, whole, in the order in which they came.
//
// Slots are credits. A packet leaves when the far end has a free slot; where it enters a ring there
// must be two, so that one, the bubble, always stays for those that go round. A channel's slot is
// free again once the far end says that the packet has gone on from there; in rings, once it has
// arrived there (the first-level acknowledgement).

namespace towpath::tenstorrent::fabric {

struct RouterConfig {
  Layout layout;
  // Of a ring: entering takes a bubble, and arrivals are acknowledged.
  bool is_ring = false;
  // Who fills a channel: the tile of a router, and the direction under which it counts this one.
  struct Client {
    machine::Coordinate tile;
    Direction direction = 0;
  };
  std::vector<std::optional<Client>> clients;  // by channel; none: workers
  // The router of the chip in each direction, and the channel there that this one fills.
  struct Next {
    machine::Coordinate tile;
    int channel = 0;
  };
  std::array<std::optional<Next>, kDirections> next;
  // How often in a row it looks for work in vain before it calls run_routing().
  std::int64_t polls_per_context_switch = 0;
};

// Runs for ever, also while the link is down: it is trained when both ends have nothing to do.
void route(tenstorrent::EthernetCore& core, const RouterConfig& config);

// The same on a core with two RISC-Vs, of which each has its part, in a kernel of its own.
void route_sending(tenstorrent::EthernetCore& core, const RouterConfig& config);
void route_receiving(tenstorrent::EthernetCore& core, const RouterConfig& config);

}  // namespace towpath::tenstorrent::fabric
