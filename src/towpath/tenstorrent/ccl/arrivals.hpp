// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "towpath/tenstorrent/ccl/delivery.hpp"
#include "towpath/tenstorrent/ccl/multicast_worker.hpp"
#include "towpath/tenstorrent/device/device.hpp"

// Streams of packets to one chip. Each has a word in the L1 of one worker core, which its packets
// increment. A change of a word is the arrival of parts.

namespace towpath::tenstorrent::ccl {

class Arrivals {
 public:
  // Streams from each of `places` on each of `planes`. They land in the first `pages` of the
  // chip's DRAM, an equal share for each source and plane.
  Arrivals(Device& device, int places, int planes, std::uint64_t pages);

  Stream& unicasts(int from, int plane) { return streams_[unicast(from, plane)]; }
  Stream& multicasts(int from, int plane, int way) { return streams_[multicast(from, plane, way)]; }
  noc::Address unicast_word(int from, int plane) const { return word(unicast(from, plane)); }
  // The same offset at each chip of a kind.
  noc::Address multicast_word(int from, int plane, int way) const {
    return word(multicast(from, plane, way));
  }
  // Body of a process of the chip. Calls on_arrival for each part.
  void watch();
  std::function<void(DeliveryPart& part)> on_arrival;

 private:
  std::size_t unicast(int from, int plane) const;
  std::size_t multicast(int from, int plane, int way) const;
  noc::Address word(std::size_t stream) const;

  Device& device_;
  machine::Coordinate core_;
  int places_;
  int planes_;
  std::vector<Stream> streams_;  // unicasts by source and plane, multicasts by way, too
};

}  // namespace towpath::tenstorrent::ccl
