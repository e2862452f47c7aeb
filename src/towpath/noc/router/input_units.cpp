// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/input_units.hpp"

namespace towpath::noc {

InputUnits::InputUnits(NetworkState& state, VcAllocator& allocator)
    : routers_(state.routers),
      active_routers_(state.active_routers),
      packets_(state.packets),
      trees_(state.trees),
      allocator_(allocator),
      fronts_(index(state.routers.count() * kPorts + 1)),
      behind_(index(state.routers.count() * kPorts + 1)),
      followed_(index(state.routers.count() * kPorts + 1)) {
  fill_output_vcs(state.routing);
}

void InputUnits::fill_output_vcs(const Routing& routing) {
  for (int number = 0; number < kPorts * kVcsMax; ++number) {
    for (int output = 0; output < kPorts; ++output) {
      for (const bool crosses : {false, true}) {
        const int vc = routing.next_vc(number / kVcsMax, number % kVcsMax, output, crosses);
        output_vc(static_cast<unsigned>(number), output, crosses) =
            static_cast<std::uint8_t>(output * kVcsMax + vc);
      }
    }
  }
}

void InputUnits::headers_arrive(std::span<const Arrival> arrivals) {
  const Routers routers = routers_;
  for (const Arrival& arrival : arrivals) {
    Router& router = routers[arrival.to];
    const unsigned number = arrival.to.number();
    store_flit(router, number);
    const bool is_behind = (router.input.begun >> number & 1) != 0;
    set_bit(router.input.begun, number);
    (is_behind ? behind_ : fronts_).add(arrival);
  }
  begin_packets();
  for (const Arrival& arrival : behind_.all()) {
    follow(routers_[arrival.to], arrival.to.number(), arrival.packet, packets_);
  }
  behind_.clear();
}

void InputUnits::begin_followers() {
  for (const VcRef place : followed_.all()) {
    fronts_.add({place, take_follower(routers_[place], place.number(), packets_)});
  }
  followed_.clear();
  begin_packets();
}

void InputUnits::begin_packets() {
  const Routers routers = routers_;
  for (const Arrival& front : fronts_.all()) begin_packet(routers[front.to], front);
  fronts_.clear();
}

// Route computation: a unicast's output, and the VC that it requests there.
void InputUnits::begin_packet(Router& router, const Arrival& front) {
  const unsigned number = front.to.number();
  const PacketTable::Header header = packets_.header(front.packet);
  router.in[number].packet = front.packet;
  router.in[number].flits_left = header.flits;
  set_bit(router.header, number);
  if (header.is_multicast) return begin_multicast(router, front);
  const int output =
      Routing::output_to(router.x, router.y, header.destination_x, header.destination_y);
  allocator_.request(router, front.to, output_vc(number, output, router.crosses(output)),
                     header.keeps_buddy);
}

// A multicast already owns its reserved output VCs.
void InputUnits::begin_multicast(Router& router, const Arrival& front) {
  const unsigned number = front.to.number();
  const MulticastTree::Branch& branch = trees_.branch_of(packets_[front.packet]);
  router.copies[number] = {branch.outputs, branch.outputs, branch.output_vc};
  set_bit(router.input.allocated, number);
  set_bit(router.multicast, number);
  active_routers_.insert(router.node);
}

}  // namespace towpath::noc
