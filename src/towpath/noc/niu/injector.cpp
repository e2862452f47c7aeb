// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/injector.hpp"

#include <algorithm>
#include <bit>

namespace towpath::noc {

Injector::Injector(const machine::Chip& chip, NetworkState& state, const BufferPool& pool,
                   PathReservation& reservation, Endpoint& endpoint)
    : now_(state.now),
      routing_(state.routing),
      packets_(state.packets),
      trees_(state.trees),
      links_(state.links),
      pool_(pool),
      reservation_(reservation),
      endpoint_(endpoint),
      rates_(chip),
      sources_(index(state.routers.count())),
      active_(state.routers.count()) {
  for (int node = 0; node < state.routers.count(); ++node) {
    sources_[index(node)].link.target = VcRef(node, kNiu * kVcsMax);
  }
}

// --- queueing -----------------------------------------------------------------------------------

void Injector::send(const Packet& packet) {
  ++sent_;
  if (packet.is_counted) sources_[index(packet.source)].counted_flits += packet.flits;
  queue(packets_.add(packet));
}

void Injector::send_multicast(const Packet& packet, const std::vector<int>& destinations) {
  Packet root = packet;
  root.packet_class = static_cast<std::uint8_t>(PacketClass::broadcast);
  root.keeps_buddy = true;  // as the path was reserved
  root.tree = trees_.open(packet, destinations);
  root.branch = 0;
  MulticastTree& tree = trees_[root.tree];
  sent_ += tree.destinations;
  const PacketId id = packets_.add(root);
  // The NIU reads ahead only for packets that follow one that it has not sent yet.
  const Source& source = sources_[index(packet.source)];
  tree.reads_when_granted = tree.packets_sent == 0 && (source.sending | source.waiting) == 0;
  if (id >= orders_.size()) orders_.resize(id + 1);
  orders_[id] = tree.packets_sent++;
  queue(id);
}

void Injector::queue(PacketId id) {
  const int number = packets_[id].lane;
  const int node = packets_[id].source;
  Source& source = sources_[index(node)];
  Lane& lane = source.lane[index(number)];
  active_.insert(node);
  packets_.next(id) = kNoPacket;
  if (lane.packet != kNoPacket) {
    (lane.next == kNoPacket ? lane.next : packets_.next(lane.last)) = id;
    lane.last = id;
    return;
  }
  lane.packet = id;
  if (!take_vc(source, number)) set_bit(source.waiting, number);
}

// --- VCs of the link to the router --------------------------------------------------------------

void Injector::credits_arrive(std::span<const VcRef> credits) {
  for (const VcRef credit : credits) {
    Link& link = sources_[credit.node()].link;
    const unsigned used = --link.used[credit.vc()];
    link.pool_used = static_cast<std::uint8_t>(link.pool_used - (used != 0 ? 1 : 0));
    active_.insert(static_cast<int>(credit.node()));
  }
}

// The free VC with the most room that a packet may use. On a tie, the VC it names. -1
// if none is free.
int Injector::best_vc(const Source& source, const Packet& packet) const {
  const int named = routing_.vc_of(0, packet.packet_class, packet.buddy);
  const bool may_change_class =
      !packet.keeps_class && packet.packet_class < 2 && routing_.classes() > 1;
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

// Gives the front packet of a lane its VC. False if none is free.
bool Injector::take_vc(Source& source, int number) {
  Lane& lane = source.lane[index(number)];
  Packet& packet = packets_[lane.packet];
  // Linked multicasts leave in order of sending, with no other packet in between.
  if (packet.tree >= 0) {
    if (orders_[lane.packet] != trees_[packet.tree].packets_started) return false;
    if (source.linked_tree[packet.buddy] == packet.tree) {
      clear_bit(source.owned, routing_.vc_of(0, packet.packet_class, packet.buddy));
    }
  }
  const int best = best_vc(source, packet);
  if (best < 0) return false;
  if (packet.tree >= 0) {
    ++trees_[packet.tree].packets_started;
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

// --- flits --------------------------------------------------------------------------------------

// The time at which the next flit of the front packet is available.
Cycle Injector::next_flit_at(const Lane& lane) const {
  const Packet& packet = packets_[lane.packet];
  if (lane.flits_sent == 0) return packet.header_at;
  const PaceTime at = packet.data_at + (lane.flits_sent - 1) * packet.data_interval;
  return (at + kPaceCycle - 1) / kPaceCycle;
}

// True if a multicast's path is reserved. Otherwise starts the reservation.
bool Injector::is_granted(const Packet& packet) {
  const MulticastTree& tree = trees_[packet.tree];
  if (tree.state == MulticastTree::State::idle) reservation_.start(packet.tree);
  return tree.state == MulticastTree::State::granted;
}

// Data whose read depended on the reservation of the path is read from now on.
void Injector::path_granted(std::int32_t number) {
  const MulticastTree& tree = trees_[number];
  active_.insert(tree.source);
  if (!tree.reads_when_granted) return;
  for (const Lane& lane : sources_[index(tree.source)].lane) {
    if (lane.packet == kNoPacket || packets_[lane.packet].tree != number) continue;
    Packet& packet = packets_[lane.packet];
    packet.data_at = std::max(packet.data_at, now_ * kPaceCycle + packet.data_interval);
  }
}

void Injector::step() {
  wakeups_.run_until(now_, [this](int node) { active_.insert(node); });
  active_.filter([this](int node) { return step(node); });
}

bool Injector::step(int node) {
  Source& source = sources_[index(node)];
  if (source.sending == 0) return false;
  if (!source.pace.is_ready(now_)) return true;
  const unsigned priority = source.priority;
  const unsigned rotated_lanes =
      (source.sending | unsigned{source.sending} << kLanes) >> priority & 0xffu;
  Cycle soonest = kNever;
  for (unsigned rest = rotated_lanes; rest != 0; rest &= rest - 1) {
    const int number =
        static_cast<int>((static_cast<unsigned>(std::countr_zero(rest)) + priority) % kLanes);
    const Lane& lane = source.lane[index(number)];
    const unsigned vc = static_cast<unsigned>(lane.vc);
    if (!pool_.has_room(source.link.used[vc], source.link.pool_used, vc)) continue;
    const Cycle ready = next_flit_at(lane);
    if (ready > now_) {
      soonest = std::min(soonest, ready);
      continue;
    }
    const Packet& packet = packets_[lane.packet];
    if (lane.flits_sent == 0 && packet.tree >= 0 && !is_granted(packet)) continue;
    send_flit(source, number);
    return true;
  }
  if (soonest == kNever) return false;
  if (soonest - now_ > 8) {
    wakeups_.add(soonest, node);
    return false;
  }
  return true;
}

void Injector::send_flit(Source& source, int number) {
  Lane& lane = source.lane[index(number)];
  const unsigned vc = static_cast<unsigned>(lane.vc);
  source.priority = static_cast<std::uint8_t>((number + 1) % kLanes);
  source.pace.take(now_, rates_.interval_of(packets_[lane.packet]));
  const unsigned used = source.link.used[vc]++;
  source.link.pool_used = static_cast<std::uint8_t>(source.link.pool_used + (used != 0 ? 1 : 0));
  ++source.link.flits;
  links_.send_flit_of_niu({source.link.target.with_vc(vc), lane.packet}, lane.flits_sent == 0);
  const Packet& packet = packets_[lane.packet];
  const bool is_last = ++lane.flits_sent == packet.flits;
  if (packet.is_counted && --source.counted_flits == watched_flits_) {
    const Packet copy = packet;
    endpoint_.counted_flits_fell(copy, now_);
  }
  if (is_last) finish_sending(source, number);
}

// Releases the packet's VC and moves the next packet of its lane to the front.
void Injector::finish_sending(Source& source, int number) {
  Lane& lane = source.lane[index(number)];
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
    lane.next = lane.packet == lane.last ? kNoPacket : packets_.next(lane.packet);
    set_bit(source.waiting, number);
  }
  for (int i = 1; i <= kLanes && source.waiting != 0; ++i) {
    const int other = (number + i) % kLanes;
    if ((source.waiting >> other & 1) != 0) take_vc(source, other);
  }
  endpoint_.packet_sent(sent, now_);
}

}  // namespace towpath::noc
