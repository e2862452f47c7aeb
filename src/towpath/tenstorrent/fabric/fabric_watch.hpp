// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <utility>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/fabric/fabric_connection.hpp"
#include "towpath/tenstorrent/fabric/fabric_topology.hpp"
#include "towpath/tenstorrent/hazards/hazard_monitor.hpp"

// Follows packets through the routers for a HazardMonitor. Packets of a channel and of a link stay
// in order, so the recorded state of a packet moves from queue to queue along with the bytes.

namespace towpath::tenstorrent::fabric {

class FabricWatch {
 public:
  FabricWatch(HazardMonitor& monitor, const Topology& topology)
      : monitor_(monitor), topology_(topology) {}

  // A worker opens a connection, has closed it, or sends a packet.
  void opening(const DataMovementCore& core, const RouterPort& port);
  void closed(const DataMovementCore& core, const RouterPort& port);
  void sending(const DataMovementCore& core, const RouterPort& port, const Header& header,
               const SegmentList& list);

  // A router takes the next packet of a channel and sends it over its link.
  void sent(machine::EthernetEnd router, int channel);
  // The next packet of a link is received at its far end, is delivered, or is copied into a channel
  // of another router of the chip.
  std::size_t taken(machine::EthernetEnd far_router);
  void delivered(std::size_t packet, int chip) { monitor_.packets.delivered(packet, chip); }
  void passed(std::size_t packet, machine::EthernetEnd to, int channel);

 private:
  using Channel = std::pair<machine::EthernetEnd, int>;

  HazardMonitor& monitor_;
  const Topology& topology_;
  std::map<Channel, std::deque<std::size_t>> channels_;
  std::map<machine::EthernetEnd, std::deque<std::size_t>> links_;  // by the sending router
};

}  // namespace towpath::tenstorrent::fabric
