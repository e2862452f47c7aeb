// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "towpath/tenstorrent/ccl/pages.hpp"
#include "towpath/tenstorrent/ccl/unicast_worker.hpp"
#include "towpath/transport/simulated/endpoint.hpp"

// Data in flight between chips.

namespace towpath::tenstorrent::ccl {

class Broadcasts;
class Endpoint;
class Unicasts;
struct Broadcast;
struct DeliveryPart;

// Packets from one place to another on one plane, in order. The source chooses their pages at the
// destination. The destination has the parts in flight.
struct Stream {
  PageRing landings;
  std::deque<DeliveryPart*> in_flight;
  std::uint32_t arrived = 0;
};

// Delivery to a peer, or within the rank's chip. Pooled.
struct Delivery : transport::simulated::Delivery {
  Endpoint* from = nullptr;
  Endpoint* to = nullptr;  // null within the chip
  Work work;
  int to_leave = 0;                // parts that have not left
  int to_arrive = 0;               // parts that have not arrived
  Broadcast* broadcast = nullptr;  // null unless it is one rank's share of a broadcast
};

// Range of a delivery for one worker, or on one plane of a broadcast. Pooled at its source.
struct DeliveryPart : Part {
  Unicasts* unicasts = nullptr;
  Delivery* delivery = nullptr;
  int from_place = 0;
  std::uint64_t offset = 0;  // in the payload
  // At the source until it has left, or until it has arrived if it is stored there.
  std::uint64_t staged_pages = 0;
  std::uint64_t landing_pages = 0;  // at the destination, until it has arrived
  Stream* stream = nullptr;         // null if it stays on its chip
  std::uint64_t packet_bytes = 0;   // payload of its packets, but for the last
};

}  // namespace towpath::tenstorrent::ccl
