// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "towpath/noc/router/pace.hpp"

namespace towpath::noc {

using Cycle = std::int64_t;
inline constexpr Cycle kNever = std::numeric_limits<Cycle>::max();
using PacketId = std::uint32_t;
inline constexpr PacketId kNoPacket = ~PacketId{0};

// Ports of a router: inputs come from the left, from above and from the NIU; outputs lead to the
// right, downwards and to the NIU, all in the network's coordinates (torus.hpp).
enum Port : std::uint8_t { kX, kY, kNiu, kPorts, kFromNiu = kPorts };
inline constexpr int kVcsMax = 16;
inline constexpr int kLanes = 8;  // per NIU

// Class of a packet. A VC number is (dateline bit, class, buddy bit).
enum class PacketClass : std::uint8_t { request_a, request_b, broadcast, response };

struct Packet {
  int source = 0;       // node of this network
  int destination = 0;  // meaningless in a multicast
  int flits = 1;        // header included
  std::uint8_t packet_class = 0;
  std::uint8_t buddy = 0;
  bool keeps_buddy = true;  // static VC; otherwise the buddy bit may change at each hop
  bool keeps_class = true;  // otherwise the NIU may choose the other request class
  std::uint8_t lane = 0;    // packets of one lane of a NIU leave in order
  bool is_counted = false;  // by its NIU, see Network::watch_counted_flits
  // Multicast only: the tree, and the branch of this copy.
  bool keeps_path = false;  // linked: the tree stays reserved after this packet
  std::int32_t tree = -1;
  std::int32_t branch = 0;
  // The header may leave the NIU at `header_at`, data flit i (from 1) at data_at + i x interval.
  Cycle header_at = 0;
  PaceTime data_at = 0;
  PaceTime data_interval = 0;
  std::uint64_t tag = 0;  // free for the sender's use
};

}  // namespace towpath::noc
