// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "towpath/base/index.hpp"
#include "towpath/noc/flit_network.hpp"
#include "towpath/noc/router/bits.hpp"

// Injection by NIUs: lanes, and the link to the router.

namespace towpath::noc {

void FlitNetwork::queue(PacketId id) {
  const int number = packets_[id].lane;
  const int node = packets_[id].source;
  Source& source = sources_[index(node)];
  Source::Lane& lane = source.lane[index(number)];
  active_sources_.insert(node);
  next_packet_[id] = kNoPacket;
  if (lane.packet != kNoPacket) {
    (lane.next == kNoPacket ? lane.next : next_packet_[lane.last]) = id;
    lane.last = id;
    return;
  }
  lane.packet = id;
  if (!take_source_vc(source, number)) set_bit(source.waiting, number);
}

void FlitNetwork::send(const Packet& packet) {
  check(packet);
  ++packets_in_flight_;
  if (packet.is_counted) sources_[index(packet.source)].counted_flits += packet.flits;
  queue(add_packet(packet));
}

// The free VC with the most room among those that a packet may use; on a tie, the VC it names. -1
// if none is free.
int FlitNetwork::best_source_vc(const Source& source, const Packet& packet) const {
  const int named = vc_of(0, packet.packet_class, packet.buddy);
  const bool may_change_class = !packet.keeps_class && packet.packet_class < 2 && classes_ > 1;
  int best = -1;
  for (const int other_buddy : {0, 1}) {
    if (other_buddy == 1 && packet.keeps_buddy) continue;
    for (const int other_class : {0, 2}) {
      if (other_class != 0 && !may_change_class) continue;
      const int vc = named ^ other_buddy ^ other_class;
      if ((source.owned & bit16(vc)) != 0) continue;
      if (best < 0 || source.link.used[index(vc)] < source.link.used[index(best)]) best = vc;
    }
  }
  return best;
}

// Gives the front packet of a lane its VC on the link to the router. False if none is free.
bool FlitNetwork::take_source_vc(Source& source, int number) {
  Source::Lane& lane = source.lane[index(number)];
  QueuedPacket& packet = packets_[lane.packet];
  // Linked multicasts leave in order of sending, with none of others in between.
  if (packet.tree >= 0) {
    if (orders_[lane.packet] != trees_[index(packet.tree)].packets_started) return false;
    if (source.linked_tree[packet.buddy] == packet.tree) {
      clear_bit(source.owned, vc_of(0, packet.packet_class, packet.buddy));
    }
  }
  const int best = best_source_vc(source, packet);
  if (best < 0) return false;
  if (packet.tree >= 0) {
    ++trees_[index(packet.tree)].packets_started;
    source.linked_tree[packet.buddy] = -1;
  }
  lane.vc = best;
  packet.packet_class = static_cast<std::uint8_t>(best >> 1);
  set_bit(source.owned, best);
  clear_bit(source.waiting, number);
  set_bit(source.sending, number);
  const Packet copy = packet;
  endpoint_.packet_started(copy, now_);
  return true;
}

// When the next flit of the front packet is available.
Cycle FlitNetwork::next_flit_at(const Source::Lane& lane) const {
  const Packet& packet = packets_[lane.packet];
  if (lane.flits_sent == 0) return packet.header_at;
  const PaceTime at = packet.data_at + (lane.flits_sent - 1) * packet.data_interval;
  return (at + kPaceCycle - 1) / kPaceCycle;
}

// Whether a multicast's path is reserved; if not, starts the reservation.
bool FlitNetwork::is_granted(const Packet& packet) {
  MulticastTree& tree = trees_[index(packet.tree)];
  if (tree.state == MulticastTree::State::idle) start_reservation(packet.tree);
  return tree.state == MulticastTree::State::granted;
}

bool FlitNetwork::step_source(int node) {
  Source& source = sources_[index(node)];
  if (source.sending == 0) return false;
  if (!source.pace.is_ready(now_)) return true;
  const unsigned turn = source.turn;
  const unsigned turned = (source.sending | unsigned{source.sending} << kLanes) >> turn & 0xffu;
  Cycle soonest = kNever;
  for (unsigned rest = turned; rest != 0; rest &= rest - 1) {
    const int number =
        static_cast<int>((static_cast<unsigned>(std::countr_zero(rest)) + turn) % kLanes);
    const Source::Lane& lane = source.lane[index(number)];
    const unsigned vc = static_cast<unsigned>(lane.vc);
    if (!has_room(source.link.used[vc], source.link.pool_used, vc)) continue;
    const Cycle ready = next_flit_at(lane);
    if (ready > now_) {
      soonest = std::min(soonest, ready);
      continue;
    }
    const Packet& packet = packets_[lane.packet];
    if (lane.flits_sent == 0 && packet.tree >= 0 && !is_granted(packet)) continue;
    send_from_source(source, number);
    return true;
  }
  if (soonest == kNever) return false;
  if (soonest - now_ > 8) {
    schedule(soonest, EventKind::wake_source, node);
    return false;
  }
  return true;
}

void FlitNetwork::use_slot(SourceLink& link, unsigned vc) {
  const unsigned used = link.used[vc]++;
  link.pool_used = static_cast<std::uint8_t>(link.pool_used + (used != 0 ? 1 : 0));
  ++link.flits;
}

void FlitNetwork::send_from_source(Source& source, int number) {
  Source::Lane& lane = source.lane[index(number)];
  source.turn = static_cast<std::uint8_t>((number + 1) % kLanes);
  source.pace.take(now_, source_interval(packets_[lane.packet]));
  use_slot(source.link, static_cast<unsigned>(lane.vc));
  slot_in(figures_.niu_to_router_cycles)
      .to_routers.add({source.link.target.with_vc(static_cast<unsigned>(lane.vc)), lane.packet},
                      lane.flits_sent == 0);
  const Packet& packet = packets_[lane.packet];
  const bool is_last = ++lane.flits_sent == packet.flits;
  if (packet.is_counted && --source.counted_flits == watched_flits_) {
    const Packet copy = packet;
    endpoint_.counted_flits_fell(copy, now_);
  }
  if (is_last) finish_sending(source, number);
}

// Releases the packet's VC and moves the next packet of its lane to the front.
void FlitNetwork::finish_sending(Source& source, int number) {
  Source::Lane& lane = source.lane[index(number)];
  const Packet sent = packets_[lane.packet];
  if (sent.keeps_path) {
    source.linked_tree[sent.buddy] = sent.tree;
  } else {
    clear_bit(source.owned, lane.vc);
  }
  clear_bit(source.sending, number);
  lane.flits_sent = 0;
  lane.packet = lane.next;
  if (lane.packet != kNoPacket) {
    lane.next = lane.packet == lane.last ? kNoPacket : next_packet_[lane.packet];
    set_bit(source.waiting, number);
  }
  for (int i = 1; i <= kLanes && source.waiting != 0; ++i) {
    const int other = (number + i) % kLanes;
    if ((source.waiting >> other & 1) != 0) take_source_vc(source, other);
  }
  endpoint_.packet_sent(sent, now_);
}

}  // namespace towpath::noc
