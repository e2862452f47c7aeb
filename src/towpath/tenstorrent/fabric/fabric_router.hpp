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

// The kernel at one end of a link, for the lifetime of the cluster. It takes packets from its
// channels (one for a worker, the others for routers on the same chip) and sends them over the
// link. It delivers packets from the link or passes them to the next router. Packets are stored and
// forwarded whole, in order of arrival.
//
// Slots are credits. A packet leaves when the far end has a free slot. To enter a ring it needs
// two, so that one, the bubble, always remains for packets already in the ring. A channel's slot is
// free again once the packet has left the far end, or in rings, once it has arrived there (the
// first-level acknowledgement).

namespace towpath::tenstorrent::fabric {

class FabricWatch;

struct RouterConfig {
  Layout layout;
  // True in a ring: entry needs a bubble, and arrivals are acknowledged.
  bool is_ring = false;
  // Client that fills a channel: the tile of a router, and this router's direction there.
  struct Client {
    machine::Coordinate tile;
    Direction direction = 0;
  };
  std::vector<std::optional<Client>> clients;  // by channel; empty: workers
  // The router of the chip in each direction, and its channel for this router.
  struct Next {
    machine::Coordinate tile;
    int channel = 0;
    machine::EthernetEnd end{};
  };
  std::array<std::optional<Next>, kDirections> next;
  // Consecutive idle polls before a call of run_routing().
  std::int64_t polls_per_context_switch = 0;
  // Null without a hazard monitor; then the near and far ends of its link.
  FabricWatch* watch = nullptr;
  machine::EthernetEnd end{};
  machine::EthernetEnd far_end{};
};

// Runs forever, even while the link is down. The link is trained when both ends are idle.
void route(EthernetCore& core, const RouterConfig& config);

// The same on a core with two RISC-Vs, with a kernel on each.
void route_sending(EthernetCore& core, const RouterConfig& config);
void route_receiving(EthernetCore& core, const RouterConfig& config);

}  // namespace towpath::tenstorrent::fabric
