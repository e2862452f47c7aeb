// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "towpath/noc/router/network_state.hpp"
#include "towpath/noc/router/vc_allocator.hpp"
#include "towpath/noc/router/vc_buffers.hpp"

namespace towpath::noc {

// The inputs of all routers: buffers, the packets in them, and the route of the front packet of
// each VC.
class InputUnits {
 public:
  InputUnits(NetworkState& state, VcAllocator& allocator);

  // A header starts a packet if its VC is empty, and otherwise queues behind others.
  void headers_arrive(std::span<const Arrival> arrivals);
  void flits_arrive(std::span<const Arrival> arrivals) {
    const Routers routers = routers_;
    for (const Arrival& arrival : arrivals) {
      store_flit(routers[arrival.to], arrival.to.number());
      active_routers_.insert(static_cast<int>(arrival.to.node()));
    }
  }
  // The front flit has left, and its slot is free.
  static void free_slot(Router& router, unsigned number) {
    InputVc& vc = router.in[number];
    --vc.flits_left;
    --vc.flits;
    router.input.occupied &= ~(std::uint64_t{vc.flits == 0} << number);
  }
  // The last flit of the front packet has left. The next packet, if there is one, becomes the front
  // in begin_followers().
  void end_packet(Router& router, VcRef place) {
    const std::uint64_t left = std::uint64_t{1} << place.number();
    const std::uint64_t followed = router.input.followed & left;
    router.input.allocated &= ~left;
    router.input.begun &= ~left | followed;
    followed_.add_if(place, followed != 0);
  }
  void begin_followers();

 private:
  void begin_packets();
  inline void begin_packet(Router& router, const Arrival& front);
  void begin_multicast(Router& router, const Arrival& front);
  void fill_output_vcs(const Routing& routing);
  std::uint8_t& output_vc(unsigned number, int output, bool crosses) {
    return output_vcs_[static_cast<unsigned>(output * 2 + (crosses ? 1 : 0)) * 64 + number];
  }

  Routers routers_;
  NodeSet& active_routers_;
  PacketTable& packets_;
  const MulticastTrees& trees_;
  VcAllocator& allocator_;
  // By input VC, output, and whether that crosses the dateline: the output VC of a packet.
  std::array<std::uint8_t, kPorts * 2 * 64> output_vcs_{};
  BoundedList<Arrival> fronts_;  // packets that reach the front of a VC
  BoundedList<Arrival> behind_;  // headers that arrive behind another packet
  BoundedList<VcRef> followed_;  // VCs that a packet left in this cycle, with others behind it
};

}  // namespace towpath::noc
