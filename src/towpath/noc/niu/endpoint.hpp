// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/noc/router/packet.hpp"

namespace towpath::noc {

// The sender and receiver of packets. It is called while a cycle is being simulated and may send.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // The packet has won its VC: all earlier packets on its lane have left the NIU, and so has the
  // previous owner of the VC.
  virtual void packet_started(const Packet& packet, Cycle now) = 0;
  // The last flit leaves the NIU.
  virtual void packet_sent(const Packet& packet, Cycle now) = 0;
  // The NIU of `node` has taken the last flit, which arrived on `vc`. A multicast calls once per
  // node.
  virtual void packet_received(const Packet& packet, int node, int vc, Cycle now) = 0;
  // A flit of this packet leaves its NIU. The number of remaining flits of counted packets has
  // fallen to the limit of Network::watch_counted_flits.
  virtual void counted_flits_fell(const Packet&, Cycle) {}
  // The first cycle in which the next flit may be taken. Called only for nodes of
  // pace_by_endpoint() and hold_up_by_endpoint().
  virtual Cycle flit_received(const Packet& packet, int node, Cycle now) = 0;
};

}  // namespace towpath::noc
