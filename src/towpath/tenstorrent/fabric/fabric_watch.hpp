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

// Follows packets through the routers for a HazardMonitor. Packets of a channel, and those of a
// link, stay in order, so what is known of each moves from queue to queue beside its bytes.

namespace towpath::tenstorrent::fabric {

class FabricWatch {
 public:
  FabricWatch(HazardMonitor& monitor, const Topology& topology)
      : monitor_(monitor), topology_(topology) {}

  // A worker opens a connection; it has closed it; it sends a packet.
  void opening(const DataMovementCore& core, const RouterPort& port);
  void closed(const DataMovementCore& core, const RouterPort& port);
  void sending(const DataMovementCore& core, const RouterPort& port, const Header& header,
               const SegmentList& list);

  // A router takes the next packet of a channel and sends it over its link.
  void sent(machine::EthernetEnd router, int channel);
  // The next packet of a link is taken at its other end; is delivered; a copy is put into a channel
  // of another router of the chip.
  std::size_t taken(machine::EthernetEnd far_router);
  void delivered(std::size_t packet, int chip) { monitor_.packets.delivered(packet, chip); }
  void passed(std::size_t packet, machine::EthernetEnd to, int channel);

 private:
  using Channel = std::pair<machine::EthernetEnd, int>;

  HazardMonitor& monitor_;
  const Topology& topology_;
  std::map<Channel, std::deque<std::size_t>> channels_;
  std::map<machine::EthernetEnd, std::deque<std::size_t>> links_;  // by the router that sends
};

}  // namespace towpath::tenstorrent::fabric
