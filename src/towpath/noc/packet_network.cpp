// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/packet_network.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"
#include "towpath/noc/router/bits.hpp"

namespace towpath::noc {

PacketNetwork::PacketNetwork(const machine::Chip& chip, int noc, Endpoint& endpoint)
    : Network(chip, noc),
      endpoint_(endpoint),
      rates_(chip),
      path_link_cycles_(chip.niu.path_link_cycles),
      interleaved_vcs_(routing_.interleaved_vcs()),
      routers_(index(torus().nodes())),
      nius_(index(torus().nodes())) {}

// --- packets and events -------------------------------------------------------------------------

PacketId PacketNetwork::add(const Packet& packet) {
  PacketId id = static_cast<PacketId>(flights_.size());
  if (free_flights_.empty()) {
    flights_.emplace_back();
  } else {
    id = free_flights_.back();
    free_flights_.pop_back();
  }
  flights_[id] = {.packet = packet};
  return id;
}

void PacketNetwork::push(Queue& queue, PacketId id) {
  flights_[id].next = kNoPacket;
  (queue.empty() ? queue.first : flights_[queue.last].next) = id;
  queue.last = id;
}

PacketId PacketNetwork::pop(Queue& queue) {
  const PacketId id = queue.first;
  queue.first = flights_[id].next;
  return id;
}

void PacketNetwork::step() {
  events_.run_until(now_, [this](const Event& event) { run(event); });
  ++now_;
}

void PacketNetwork::run(const Event& event) {
  const auto id = static_cast<PacketId>(event.where);
  switch (event.kind) {
    case EventKind::leave: leave(event.where, event.detail); break;
    case EventKind::sent: finish_sending(event.where, event.detail); break;
    case EventKind::uncount: uncount(id, event.detail); break;
    case EventKind::head: head_arrives(id); break;
    case EventKind::free: give_next(event.where, event.detail); break;
    case EventKind::arrival:
      push(nius_[index(flights_[id].node)].arrived[flights_[id].vc], id);
      take_arrived(flights_[id].node);
      break;
    case EventKind::taken: taken(id); break;
    case EventKind::release:
      if (nius_[index(event.where)].held_until[index(event.detail)] > now_) break;
      clear_bit(nius_[index(event.where)].held, event.detail);
      take_arrived(event.where);
      break;
  }
}

// The time at which a packet's tail leaves on a link on which its head leaves now.
Cycle PacketNetwork::pass(Output& link, unsigned vc, PacketId id, Cycle tail_at,
                          PaceTime interval) {
  const PaceTime now = now_ * kPaceCycle;
  const int flits = flights_[id].packet.flits;
  const PaceTime own = flits * interval;
  const PaceTime ahead = std::max<PaceTime>(0, link.free_at - now);
  const PaceTime shared = ahead > 0 ? share(link, own, ahead) : 0;
  link.free_at = now + ahead + own;
  link.flits += flits;
  link.vc[vc].owner = id;
  link.vc[vc].way = flights_[id].way;
  return link.vc[vc].tail_at =
             std::max(tail_at, now_ + (own - interval + shared + kPaceCycle - 1) / kPaceCycle);
}

// A packet alternates with the packets of other VCs in flight on a link, until each has sent its
// flits. Returns the delay of its end. The other packets also end later, unless they leave gaps. If
// packets meet on several consecutive links, they are slowed down once.
PaceTime PacketNetwork::share(Output& link, PaceTime own, PaceTime ahead) {
  const auto under_way =
      std::ranges::count_if(link.vc, [&](const OutputVc& vc) { return vc.tail_at > now_; });
  PaceTime shared = 0;
  for (OutputVc& vc : link.vc) {
    if (vc.tail_at <= now_) continue;
    const PaceTime left = (vc.tail_at - now_) * kPaceCycle;
    const PaceTime turns = std::min(left / under_way, own);
    shared += turns;
    const Cycle later = std::clamp<PaceTime>(ahead + own - left, 0, turns) / kPaceCycle;
    vc.tail_at += later;
    Flight& other = flights_[vc.owner];
    other.tail_at = std::max(other.tail_at, vc.tail_at + other.way - vc.way);
  }
  return std::min(shared, ahead);
}

// --- leaving a NIU ------------------------------------------------------------------------------

void PacketNetwork::queue(PacketId id) {
  const Packet& packet = flights_[id].packet;
  const int node = packet.source;
  const int number = packet.lane;
  Lane& lane = nius_[index(node)].lane[index(number)];
  if (lane.front != kNoPacket) return push(lane.behind, id);
  lane.front = id;
  set_bit(nius_[index(node)].waiting, number);
  take_source_vc(node, number);
}

void PacketNetwork::send(const Packet& packet) {
  check(packet);
  ++packets_in_flight_;
  if (packet.is_counted) nius_[index(packet.source)].counted_flits += packet.flits;
  queue(add(packet));
}

void PacketNetwork::send_multicast(const Packet& packet, const std::vector<int>& destinations) {
  check_multicast(packet, destinations);
  std::int32_t& kept = nius_[index(packet.source)].kept_tree[packet.buddy];
  std::int32_t number = kept;
  if (number < 0) {
    if (free_trees_.empty()) {
      number = static_cast<std::int32_t>(trees_.size());
      trees_.emplace_back();
    } else {
      number = free_trees_.back();
      free_trees_.pop_back();
    }
    trees_[index(number)] = {.shape = multicast_tree(torus(), packet.source, destinations)};
  }
  Tree& tree = trees_[index(number)];
  tree.uses += tree.shape.destinations + (packet.keeps_path ? 1 : 0) - (kept >= 0 ? 1 : 0);
  kept = packet.keeps_path ? number : -1;
  packets_in_flight_ += tree.shape.destinations;
  Packet root = packet;
  root.packet_class = static_cast<std::uint8_t>(PacketClass::broadcast);
  root.keeps_buddy = true;
  root.keeps_class = true;
  root.tree = number;
  root.branch = 0;
  queue(add(root));
}

// Gives the front packet of a lane its VC on the link to the router, if one is free.
void PacketNetwork::take_source_vc(int node, int number) {
  Niu& niu = nius_[index(node)];
  Lane& lane = niu.lane[index(number)];
  const Packet packet = flights_[lane.front].packet;
  const int named = routing_.vc_of(0, packet.packet_class, packet.buddy);
  const bool may_change_class =
      !packet.keeps_class && packet.packet_class < 2 && routing_.classes() > 1;
  for (const int change : {0, 2, 1, 3}) {
    if ((change & 1) != 0 && packet.keeps_buddy) continue;
    if ((change & 2) != 0 && !may_change_class) continue;
    if ((niu.owned >> (named ^ change) & 1) != 0) continue;
    lane.vc = static_cast<std::uint8_t>(named ^ change);
    set_bit(niu.owned, int{lane.vc});
    clear_bit(niu.waiting, number);
    schedule(std::max(packet.header_at, now_), EventKind::leave, node, number);
    endpoint_.packet_started(packet, now_);
    return;
  }
}

// Time from a multicast's first probe to the last answer.
Cycle PacketNetwork::reservation_cycles(const MulticastTree& tree) const {
  int depth = 0;
  for (const MulticastTree::Branch& branch : tree.branches) depth = std::max(depth, branch.depth);
  return 2 * Cycle{path_link_cycles_} +
         Cycle{depth} * (parameters_.hop_cycles + parameters_.credit_return_cycles);
}

// The head of the packet in front of a lane leaves.
void PacketNetwork::leave(int node, int lane) {
  Niu& niu = nius_[index(node)];
  const PacketId id = niu.lane[index(lane)].front;
  Flight& flight = flights_[id];
  const Packet& packet = flight.packet;
  if (packet.tree >= 0 && !trees_[index(packet.tree)].is_granted) {
    trees_[index(packet.tree)].is_granted = true;
    schedule(now_ + reservation_cycles(trees_[index(packet.tree)].shape), EventKind::leave, node,
             lane);
    return;
  }
  const PaceTime port_interval = rates_.interval_of(packet);
  const PaceTime data_interval = std::max(packet.data_interval, port_interval);
  const PaceTime last_data =
      packet.flits > 1 ? packet.data_at + (packet.flits - 2) * data_interval : 0;
  const std::uint8_t vc = niu.lane[index(lane)].vc;
  const Cycle tail_at =
      pass(niu.link, vc, id, (last_data + kPaceCycle - 1) / kPaceCycle, port_interval);
  flight.node = node;
  flight.input = kNiu;
  flight.vc = vc;
  flight.tail_at = tail_at + parameters_.niu_to_router_cycles;
  flight.way = parameters_.niu_to_router_cycles;
  if (packet.is_counted) count_off(id, tail_at);
  schedule(now_ + parameters_.niu_to_router_cycles, EventKind::head, static_cast<int>(id));
  schedule(tail_at, EventKind::sent, node, lane);
}

// Schedules the report that the flits left have fallen to the watched number.
void PacketNetwork::count_off(PacketId id, Cycle tail_at) {
  const Packet& packet = flights_[id].packet;
  const int left = nius_[index(packet.source)].counted_flits - packet.flits;
  const int late = std::clamp(watched_flits_ - left, 0, packet.flits);
  const Cycle watched_at = std::max(now_, tail_at - late);
  if (late < packet.flits) {
    schedule(watched_at, EventKind::uncount, static_cast<int>(id), packet.flits - late);
  }
  if (late > 0) schedule(tail_at, EventKind::uncount, static_cast<int>(id), late);
}

void PacketNetwork::uncount(PacketId id, int flits) {
  const Packet packet = flights_[id].packet;
  int& left = nius_[index(packet.source)].counted_flits;
  const bool was_above = left > watched_flits_;
  left -= flits;
  if (was_above && left <= watched_flits_) endpoint_.counted_flits_fell(packet, now_);
}

void PacketNetwork::finish_sending(int node, int number) {
  Niu& niu = nius_[index(node)];
  Lane& lane = niu.lane[index(number)];
  const Cycle tail_at = niu.link.vc[lane.vc].tail_at;
  if (tail_at > now_) return schedule(tail_at, EventKind::sent, node, number);
  const Packet packet = flights_[lane.front].packet;
  clear_bit(niu.owned, int{lane.vc});
  lane.front = lane.behind.empty() ? kNoPacket : pop(lane.behind);
  if (lane.front != kNoPacket) set_bit(niu.waiting, number);
  for (int i = 1; i <= kLanes; ++i) {
    const int other = (number + i) % kLanes;
    if ((nius_[index(node)].waiting >> other & 1) != 0) take_source_vc(node, other);
  }
  endpoint_.packet_sent(packet, now_);
}

// --- routers ------------------------------------------------------------------------------------

void PacketNetwork::head_arrives(PacketId id) {
  const Packet packet = flights_[id].packet;
  if (packet.tree < 0) {
    const int node = flights_[id].node;
    flights_[id].output = static_cast<std::uint8_t>(
        Routing::output_to(torus().x_of(node), torus().y_of(node), torus().x_of(packet.destination),
                           torus().y_of(packet.destination)));
    return ask_for_vc(id);
  }
  const MulticastTree::Branch branch =
      trees_[index(packet.tree)].shape.branches[index(packet.branch)];
  for (int output = 0; output < kPorts; ++output) {
    if ((branch.outputs >> output & 1) == 0) continue;
    const bool is_last = branch.outputs >> (output + 1) == 0;
    const PacketId copy = is_last ? id : add(packet);
    const Flight& whole = flights_[id];
    Flight& part = flights_[copy];
    part.node = whole.node;
    part.input = whole.input;
    part.vc = whole.vc;
    part.tail_at = whole.tail_at;
    part.way = whole.way;
    part.output = static_cast<std::uint8_t>(output);
    part.packet.branch = branch.child[index(output)];
    ask_for_vc(copy);
  }
}

// The first cycle in which the packet may have the VC, if no packet is before it. The next packet
// of the same input VC follows its owner immediately.
Cycle PacketNetwork::free_at(const Output& output, unsigned vc, const Flight& flight) const {
  const bool follows = output.last_input[vc] == flight.input * kVcsMax + flight.vc;
  return std::max(now_, output.vc[vc].tail_at + (follows ? 1 : parameters_.vc_release_cycles));
}

// The packet takes its output VC if that is free, and otherwise queues for it. If it may change
// buddy, it does so if that is sooner.
void PacketNetwork::ask_for_vc(PacketId id) {
  const Flight& flight = flights_[id];
  Output& output = routers_[index(flight.node)].output[flight.output];
  const auto free_from = [&](unsigned vc) {
    return output.vc[vc].waiting.empty() ? free_at(output, vc, flight) : kNever;
  };
  auto vc = static_cast<unsigned>(
      routing_.next_vc(flight.input, flight.vc, flight.output,
                       routing_.crosses_dateline(flight.node, flight.output)));
  if (!flight.packet.keeps_buddy && free_from(vc ^ 1) < free_from(vc)) vc ^= 1;
  const Cycle at = free_from(vc);
  if (at <= now_) return give(id, vc);
  Queue& waiting = output.vc[vc].waiting;
  if (waiting.empty()) {
    schedule(at, EventKind::free, flight.node, flight.output * kVcsMax + static_cast<int>(vc));
  }
  push(waiting, id);
}

// A VC is free, unless its owner has been slowed down in the meantime. The first waiting packet
// gets it.
void PacketNetwork::give_next(int node, int number) {
  Output& output = routers_[index(node)].output[index(number / kVcsMax)];
  const auto vc = static_cast<unsigned>(number % kVcsMax);
  Queue& waiting = output.vc[vc].waiting;
  if (free_at(output, vc, flights_[waiting.first]) <= now_) give(pop(waiting), vc);
  if (waiting.empty()) return;
  schedule(free_at(output, vc, flights_[waiting.first]), EventKind::free, node, number);
}

// The head leaves on the output VC.
void PacketNetwork::give(PacketId id, unsigned vc) {
  Flight& flight = flights_[id];
  Output& output = routers_[index(flight.node)].output[flight.output];
  output.last_input[vc] = static_cast<std::uint8_t>(flight.input * kVcsMax + flight.vc);
  const Cycle tail_at = pass(output, vc, id, flight.tail_at, kPaceCycle);
  flight.vc = static_cast<std::uint8_t>(vc);
  if (flight.output == kNiu) {
    flight.tail_at = tail_at + parameters_.router_to_niu_cycles;
    flight.way += parameters_.router_to_niu_cycles;
    schedule(now_ + parameters_.router_to_niu_cycles, EventKind::arrival, static_cast<int>(id));
    return;
  }
  flight.tail_at = tail_at + parameters_.hop_cycles;
  flight.way += parameters_.hop_cycles;
  flight.input = flight.output;
  flight.node = flight.output == kX ? torus().right_of(flight.node) : torus().below(flight.node);
  schedule(now_ + parameters_.hop_cycles, EventKind::head, static_cast<int>(id));
}

// --- arriving at a NIU --------------------------------------------------------------------------

void PacketNetwork::hold(int node, int vc, Cycle until) {
  Niu& niu = nius_[index(node)];
  set_bit(niu.held, vc);
  niu.held_until[index(vc)] = std::max(niu.held_until[index(vc)], until);
  if (until != kNever) schedule(until, EventKind::release, node, vc);
}

void PacketNetwork::release(int node, int vc, Cycle at) {
  nius_[index(node)].held_until[index(vc)] = at;
  schedule(at, EventKind::release, node, vc);
}

// Requests are accepted one after the other; multicasts and responses in parallel.
void PacketNetwork::take_arrived(int node) {
  Niu& niu = nius_[index(node)];
  for (int i = 0; i < kVcsMax; ++i) {
    const int vc = (niu.turn + i) % kVcsMax;
    if (niu.arrived[index(vc)].empty() || ((niu.held | niu.taking) >> vc & 1) != 0) continue;
    const bool is_request = (interleaved_vcs_ >> vc & 1) == 0;
    if (is_request && (niu.taking & ~interleaved_vcs_) != 0) continue;
    if (is_request) niu.turn = static_cast<std::uint8_t>((vc + 1) % kVcsMax);
    take(node, vc);
  }
}

void PacketNetwork::take(int node, int vc) {
  Niu& niu = nius_[index(node)];
  set_bit(niu.taking, vc);
  const PacketId id = niu.arrived[index(vc)].first;
  const Flight& flight = flights_[id];
  const Packet packet = flight.packet;
  const PaceTime rest = (packet.flits - 1) * rates_.port_interval;
  Cycle end = std::max(flight.tail_at, now_ + (rest + kPaceCycle - 1) / kPaceCycle);
  if (niu.is_paced_by_endpoint) {
    const Cycle late = std::max<Cycle>(0, flight.tail_at - now_);
    for (int flit = 0; flit < packet.flits; ++flit) {
      const Cycle arrived = now_ + (packet.flits == 1 ? 0 : late * flit / (packet.flits - 1));
      end = std::max(arrived, niu.ready_at);
      niu.ready_at = endpoint_.flit_received(packet, node, end);
    }
  }
  schedule(end, EventKind::taken, static_cast<int>(id));
}

void PacketNetwork::taken(PacketId id) {
  const Flight flight = flights_[id];
  if (flight.tail_at > now_) {
    return schedule(flight.tail_at, EventKind::taken, static_cast<int>(id));
  }
  const Packet& packet = flight.packet;
  Niu& niu = nius_[index(flight.node)];
  clear_bit(niu.taking, int{flight.vc});
  pop(niu.arrived[flight.vc]);
  free_flights_.push_back(id);
  --packets_in_flight_;
  if (packet.tree >= 0 && --trees_[index(packet.tree)].uses == 0)
    free_trees_.push_back(packet.tree);
  endpoint_.packet_received(packet, flight.node, flight.vc, now_);
  take_arrived(flight.node);
}

// --- figures ------------------------------------------------------------------------------------

}  // namespace towpath::noc
