// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/router/crossbar.hpp"

namespace towpath::noc {

void Crossbar::traverse(const SwitchAllocator& winners) {
  for (const SwitchAllocator::Copy& copy : winners.copies()) send_copy(copy.from, copy.output);
  const Routers routers = routers_;
  for (const VcRef place : winners.unicasts()) send(routers[place], place);
}

void Crossbar::put_on_link(Router& router, unsigned output_vc, PacketId packet, bool is_header) {
  const unsigned output = output_vc / kVcsMax;
  Links& links = router.links[output];
  ++links.flits;
  links_.send_flit(output, {links.target.with_vc(output_vc % kVcsMax), packet}, is_header);
  outputs_.take_slot(router, output_vc);
}

void Crossbar::free_slot(Router& router, unsigned number) {
  const unsigned input = number / kVcsMax;
  InputUnits::free_slot(router, number);
  links_.send_credit(input, router.links[input].upstream.with_vc(number % kVcsMax));
}

// Sends a unicast's front flit.
void Crossbar::send(Router& router, VcRef place) {
  const unsigned number = place.number();
  const unsigned output_vc = router.in[number].output_vc;
  put_on_link(router, output_vc, router.in[number].packet, (router.header >> number & 1) != 0);
  SwitchAllocator::rotate(router, number, output_vc / kVcsMax);
  clear_bit(router.header, number);
  free_slot(router, number);
  if (router.in[number].flits_left == 0) {
    allocator_.release(router, number, place.with_number(output_vc));
    inputs_.end_packet(router, place);
  }
  active_routers_.insert_if(router.node, router.ready() != 0 ? 1 : 0);
}

// Sends a multicast's front flit through one of the outputs that need it.
void Crossbar::send_copy(VcRef place, unsigned output) {
  Router& router = routers_[place];
  const unsigned number = place.number();
  const InputVc& vc = router.in[number];
  Copies& copies = router.copies[number];
  const unsigned output_vc = output * kVcsMax + copies.output_vc[output];
  const bool is_header = (router.header >> number & 1) != 0;
  const bool is_last = vc.flits_left == 1;
  put_on_link(router, output_vc, is_header ? branch_off(vc.packet, output) : vc.packet, is_header);
  SwitchAllocator::rotate(router, number, output);
  if (is_last && !packets_.header(vc.packet).keeps_path) {
    allocator_.release(router, number, place.with_number(output_vc));
  }
  clear_bit(copies.outputs, output);
  if (copies.outputs != 0) return;

  copies.outputs = copies.all_outputs;
  clear_bit(router.header, number);
  free_slot(router, number);
  if (!is_last) return;
  packets_.remove(vc.packet);
  clear_bit(router.multicast, number);
  inputs_.end_packet(router, place);
}

// Creates the packet for the copy of a multicast that continues through one output.
PacketId Crossbar::branch_off(PacketId id, unsigned output) {
  Packet copy = packets_[id];
  if (output != kNiu) copy.branch = trees_.branch_of(copy).child[output];
  return packets_.add(copy);
}

}  // namespace towpath::noc
