// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "towpath/tenstorrent/fabric/fabric.hpp"
#include "towpath/tenstorrent/metalium/kernel_include/towpath_kernel.h"

// The fabric in the terms of kernels in source form: routers named by their Ethernet channel, chips
// by their number, and compass directions.

namespace towpath::tenstorrent::metalium {

struct FabricMode {
  bool is_mesh = false;    // packets turn from columns into rows, otherwise they stay in their line
  bool has_rings = false;  // uses links that close a line
};

class KernelFabric {
 public:
  // Throws the errors of Fabric, and std::invalid_argument if the chips do not fill a rectangle.
  KernelFabric(Cluster& cluster, const FabricMode& mode);

  // Definitions for kernels.
  const std::map<std::string, std::string>& defines() const { return defines_; }
  Program& program(int chip) const { return fabric_.program(place_of(chip)); }
  Time run() { return fabric_.run(); }
  // Parallel links, columns of the mesh, and the largest payload of a packet.
  int planes() const { return fabric_.topology().planes(); }
  int columns() const;
  std::uint64_t payload_bytes_max() const { return fabric_.layout().payload_bytes_max; }

  // All throw std::invalid_argument if the chip or its router does not exist.
  fabric::RouterPort port(int chip, std::uint32_t channel) const;
  // Number of the direction: east, west, north, south.
  std::uint32_t direction_of(int chip, std::uint32_t channel) const {
    return compass_of(port(chip, channel).direction);
  }
  std::uint32_t direction_to(int chip, std::uint32_t to) const {
    return compass_of(fabric_.first_hop(place_of(chip), place_of(static_cast<int>(to))));
  }
  // Ethernet channel of the router toward another chip.
  std::uint32_t channel_to(int chip, int to, int plane) const;
  // Header of a packet that leaves through a port.
  fabric::Header header_of(const fabric::RouterPort& port, const TowpathPacket& packet) const;

 private:
  int place_of(int chip) const;
  fabric::Direction direction_at(std::uint32_t compass) const;
  std::uint32_t compass_of(fabric::Direction direction) const;
  fabric::Header route_of(const fabric::RouterPort& port, const TowpathPacket& packet) const;
  fabric::Header rectangle_of(const fabric::RouterPort& port, const std::uint32_t* hops) const;

  fabric::Fabric fabric_;
  std::map<std::string, std::string> defines_;
};

// The list of a scatter packet. Empty for any other packet.
fabric::SegmentList segments_of(const TowpathPacket& packet);

}  // namespace towpath::tenstorrent::metalium
