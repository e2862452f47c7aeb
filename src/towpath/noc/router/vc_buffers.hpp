// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/noc/router/bits.hpp"
#include "towpath/noc/router/packet_table.hpp"
#include "towpath/noc/router/router.hpp"

// The VC buffers at the receiving end of a link, of a router or of a NIU: `End` has `input`, `in`
// and `followers`.

namespace towpath::noc {

template <typename End>
void store_flit(End& end, unsigned number) {
  ++end.in[number].flits;
  set_bit(end.input.occupied, number);
}

// A packet queues behind the others of its VC.
template <typename End>
void follow(End& end, unsigned number, PacketId id, PacketTable& packets) {
  Followers& followers = end.followers[number];
  const bool is_first = (end.input.followed >> number & 1) == 0;
  (is_first ? followers.first : packets.next(followers.last)) = id;
  followers.last = id;
  set_bit(end.input.followed, number);
}

// Removes the first follower from the queue.
template <typename End>
PacketId take_follower(End& end, unsigned number, PacketTable& packets) {
  Followers& followers = end.followers[number];
  const PacketId next = followers.first;
  end.input.followed &= ~(std::uint64_t{next == followers.last} << number);
  followers.first = packets.next(next);
  return next;
}

}  // namespace towpath::noc
