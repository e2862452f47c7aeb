// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "noc_reference.hpp"

#include <algorithm>

#include "towpath/base/invariant.hpp"

namespace towpath::noc {

namespace {

constexpr int kBroadcast = static_cast<int>(PacketClass::broadcast);

// Cyclic successor.
int next(int number, int count) { return number + 1 == count ? 0 : number + 1; }

}  // namespace

ReferenceNetwork::ReferenceNetwork(const machine::Chip& chip, int noc, Endpoint& endpoint,
                                   std::uint64_t seed)
    : figures_(chip.router),
      width_(noc == 0 ? chip.width : chip.height),
      height_(noc == 0 ? chip.height : chip.width),
      classes_(chip.router.classes),
      vcs_(2 * chip.router.classes * (chip.router.has_dateline ? 2 : 1)),
      major_(noc == 0 ? kX : kY),
      port_interval_(flit_interval(chip.router.flit_bytes, chip.niu.port_rate)),
      multicast_interval_(flit_interval(chip.router.flit_bytes, chip.niu.multicast_rate)),
      path_link_cycles_(chip.niu.path_link_cycles),
      backoff_min_(chip.niu.backoff_cycles_min),
      backoff_max_(chip.niu.backoff_cycles_max),
      endpoint_(endpoint),
      links_(width_ * height_),
      routers_(width_ * height_),
      sources_(width_ * height_),
      sinks_(width_ * height_),
      random_(seed, noc == 0 ? "noc 0" : "noc 1") {
  for (std::array<Link, kPorts + 1>& links : links_) {
    for (Link& link : links) link.vcs.resize(vcs_);
    links[kX].delay = figures_.hop_cycles;
    links[kY].delay = figures_.hop_cycles;
    links[kNiu].delay = figures_.router_to_niu_cycles;
    links[kFromNiu].delay = figures_.niu_to_router_cycles;
  }
  for (int node = 0; node < width_ * height_; ++node) {
    Router& router = routers_[node];
    router.x = node % width_;
    router.y = node / width_;
    for (const int port : {kX, kY, kNiu}) router.output[port] = &links_[node][port];
    router.input[kNiu] = &links_[node][kFromNiu];
    for (const int port : {kX, kY}) {
      routers_[neighbour(node, port)].input[port] = &links_[node][port];
    }
  }
  for (Source& source : sources_) source.is_vc_taken.resize(vcs_, false);
  for (Sink& sink : sinks_) sink.held_until.resize(vcs_, 0);
}

// --- the torus ----------------------------------------------------------------------------------

int ReferenceNetwork::neighbour(int node, int port) const {
  const int x = node % width_;
  const int y = node / width_;
  return port == kX ? y * width_ + (x + 1) % width_ : (y + 1) % height_ * width_ + x;
}

int ReferenceNetwork::links_between(int from, int to, int port) const {
  if (port == kX) return (to % width_ - from % width_ + width_) % width_;
  return (to / width_ - from / width_ + height_) % height_;
}

int ReferenceNetwork::next_port(const Router& router, int destination) const {
  if (destination % width_ != router.x) return kX;
  return destination / width_ != router.y ? kY : kNiu;
}

// A packet changes to the dateline VCs on the link that closes a ring, and back where it turns.
int ReferenceNetwork::next_dateline(const Router& router, int input, int input_vc,
                                    int output) const {
  if (!figures_.has_dateline) return 0;
  const int before = input_vc / (2 * classes_);
  if (output == kNiu) return before;
  const bool closes_ring = output == kX ? router.x == width_ - 1 : router.y == height_ - 1;
  if (closes_ring) return 1;
  return input == output ? before : 0;
}

// --- links --------------------------------------------------------------------------------------

bool ReferenceNetwork::has_room(const Link& link, int vc) const {
  const int used = link.vcs[vc].used;
  if (used == 0) return true;  // the slot of its own
  int pool_used = 0;
  for (const VirtualChannel& other : link.vcs) pool_used += std::max(0, other.used - 1);
  const bool is_response = (vc >> 1) % figures_.classes == static_cast<int>(PacketClass::response);
  const int reserved =
      figures_.pool_flits_reserved - (is_response ? figures_.pool_flits_for_responses : 0);
  return used - 1 < figures_.pool_flits_per_vc_max && figures_.pool_flits - pool_used > reserved;
}

bool ReferenceNetwork::has_flit(const VirtualChannel& vc) const {
  return !vc.flits.empty() && vc.flits.front().from <= now_;
}

// Whether the header in front has no output VC yet.
bool ReferenceNetwork::waits(const VirtualChannel& vc) const {
  return has_flit(vc) && !vc.is_routed;
}

void ReferenceNetwork::push(Link& link, int vc, const QueuedPacket* packet, int index) {
  const Flit& before = link.vcs[vc].last;
  const bool is_next = before.of == nullptr || before.is_last()
                           ? index == 0
                           : before.of == packet && before.index + 1 == index;
  TOWPATH_CHECK(is_next, "flit {} of packet {} cuts into another packet on VC {}", index,
                packet->packet.tag, vc);
  link.vcs[vc].last = {packet, index, 0};
  link.vcs[vc].flits.push_back({packet, index, now_ + link.delay});
  ++link.vcs[vc].used;
  ++link.flits;
}

void ReferenceNetwork::pop(Link& link, int vc) {
  link.vcs[vc].flits.pop_front();
  link.vcs[vc].credits.push_back(now_ + figures_.credit_return_cycles);
}

void ReferenceNetwork::credits_arrive(Link& link) {
  for (VirtualChannel& vc : link.vcs) {
    while (!vc.credits.empty() && vc.credits.front() <= now_) {
      vc.credits.pop_front();
      --vc.used;
    }
  }
}

void ReferenceNetwork::Pacing::take(Cycle now, PaceTime interval) {
  // It could not have been taken in the cycle before, or it would have been.
  const PaceTime earliest = (now - 1) * kPaceCycle + 1;
  due = std::max(due, earliest) + interval;
}

// --- one cycle ----------------------------------------------------------------------------------

void ReferenceNetwork::step() {
  const int nodes = width_ * height_;
  for (std::array<Link, kPorts + 1>& links : links_) {
    for (Link& link : links) credits_arrive(link);
  }
  run_reservations();
  for (int node = 0; node < nodes; ++node) step_sink(node);
  for (int node = 0; node < nodes; ++node) step_source(node);
  for (Router& router : routers_) {
    give_output_vcs(router);
    move_flits(router);
  }
  ++now_;
}

// --- NIUs ---------------------------------------------------------------------------------------

void ReferenceNetwork::send(const Packet& packet) {
  ++packets_in_flight_;
  queue({packet});
}

void ReferenceNetwork::queue(const QueuedPacket& queued) {
  packets_.push_back(queued);
  const Packet& packet = queued.packet;
  sources_[packet.source].lanes[packet.lane].packets.push_back(&packets_.back());
  give_source_vcs(packet.source, packet.lane);
}

// To the packets that are in front of their lanes, in turn.
void ReferenceNetwork::give_source_vcs(int node, int first_lane) {
  Source& source = sources_[node];
  for (int i = 0; i < kLanes; ++i) {
    Lane& lane = source.lanes[(first_lane + i) % kLanes];
    if (lane.packets.empty() || lane.vc >= 0) continue;
    const QueuedPacket& queued = *lane.packets.front();
    lane.vc = free_source_vc(node, queued);
    if (lane.vc < 0) continue;
    source.is_vc_taken[lane.vc] = true;
    if (queued.tree != nullptr) {
      ++queued.tree->packets_started;
      source.chain[queued.packet.buddy] = nullptr;
    }
    endpoint_.packet_started(lane.packets.front()->packet, now_);
  }
}

// Whether the packet may use VCs of this buddy and class: its own, or the other ones.
bool ReferenceNetwork::may_use(const Packet& packet, bool is_own_buddy, bool is_own_class) const {
  if (!is_own_buddy && packet.keeps_buddy) return false;
  return is_own_class || (classes_ > 1 && !packet.keeps_class && packet.packet_class < kBroadcast);
}

// The free VC with the most room among those that the packet may use; -1: there is none. Linked
// multicasts leave in order of sending, whatever their lanes, with none of others in between.
int ReferenceNetwork::free_source_vc(int node, const QueuedPacket& queued) const {
  const Packet& packet = queued.packet;
  if (queued.tree != nullptr) {
    if (queued.order != queued.tree->packets_started) return -1;
    if (sources_[node].chain[packet.buddy] == queued.tree) {
      return number(0, kBroadcast, packet.buddy);
    }
  }
  int best = -1;
  for (const bool is_own_buddy : {true, false}) {
    for (const bool is_own_class : {true, false}) {
      if (!may_use(packet, is_own_buddy, is_own_class)) continue;
      const int vc = number(0, is_own_class ? packet.packet_class : 1 - packet.packet_class,
                            is_own_buddy ? packet.buddy : 1 - packet.buddy);
      if (sources_[node].is_vc_taken[vc]) continue;
      const std::vector<VirtualChannel>& vcs = links_[node][kFromNiu].vcs;
      if (best < 0 || vcs[vc].used < vcs[best].used) best = vc;
    }
  }
  return best;
}

void ReferenceNetwork::hold(int node, int vc, Cycle until) {
  Cycle& held_until = sinks_[node].held_until[vc];
  held_until = std::max(held_until, until);
}

void ReferenceNetwork::step_sink(int node) {
  Link& link = links_[node][kNiu];
  Sink& sink = sinks_[node];
  if (sink.is_paced_by_endpoint ? now_ < sink.ready_at : !sink.pacing.is_ready(now_)) return;
  for (int i = 0, vc = link.receiver_turn; i < vcs_; ++i, vc = next(vc, vcs_)) {
    if (!is_interleaved(vc) && sink.request_vc >= 0 && vc != sink.request_vc) continue;
    if (!has_flit(link.vcs[vc]) || now_ < sink.held_until[vc]) continue;
    take_flit(node, vc);
    return;
  }
}

void ReferenceNetwork::take_flit(int node, int vc) {
  Link& link = links_[node][kNiu];
  Sink& sink = sinks_[node];
  const Flit flit = link.vcs[vc].flits.front();
  pop(link, vc);
  link.receiver_turn = next(vc, vcs_);
  if (sink.is_paced_by_endpoint) {
    sink.ready_at = endpoint_.flit_received(flit.of->packet, node, now_);
  } else {
    sink.pacing.take(now_, port_interval_);
  }
  if (!is_interleaved(vc)) sink.request_vc = flit.is_last() ? -1 : vc;
  if (!flit.is_last()) return;
  --packets_in_flight_;
  endpoint_.packet_received(flit.of->packet, node, vc, now_);
}

bool ReferenceNetwork::may_send(int node, const Lane& lane) {
  if (lane.vc < 0 || !has_room(links_[node][kFromNiu], lane.vc)) return false;
  const Packet& packet = lane.packets.front()->packet;
  if (lane.flits_sent > 0) {
    return now_ * kPaceCycle >= packet.data_at + (lane.flits_sent - 1) * packet.data_interval;
  }
  if (now_ < packet.header_at) return false;
  Tree* tree = lane.packets.front()->tree;
  if (tree == nullptr) return true;
  if (tree->state == Tree::idle) start_reservation(*tree);
  return tree->state == Tree::granted;
}

void ReferenceNetwork::step_source(int node) {
  Source& source = sources_[node];
  if (!source.pacing.is_ready(now_)) return;
  for (int i = 0, lane = source.turn; i < kLanes; ++i, lane = next(lane, kLanes)) {
    if (!may_send(node, source.lanes[lane])) continue;
    send_flit(node, lane);
    return;
  }
}

void ReferenceNetwork::send_flit(int node, int number_of_lane) {
  Source& source = sources_[node];
  Lane& lane = source.lanes[number_of_lane];
  const QueuedPacket* queued = lane.packets.front();
  push(links_[node][kFromNiu], lane.vc, queued, lane.flits_sent++);
  source.turn = next(number_of_lane, kLanes);
  source.pacing.take(now_, queued->tree != nullptr ? multicast_interval_ : port_interval_);
  if (lane.flits_sent < queued->packet.flits) return;
  if (queued->packet.keeps_path) {
    source.chain[queued->packet.buddy] = queued->tree;
  } else {
    source.is_vc_taken[lane.vc] = false;
  }
  lane.vc = -1;
  lane.flits_sent = 0;
  lane.packets.pop_front();
  give_source_vcs(node, number_of_lane + 1);
  endpoint_.packet_sent(queued->packet, now_);
}

// --- routers ------------------------------------------------------------------------------------

// Each waits for the VC of its own buddy bit first; those that may change it for the other then. A
// multicast has had its VCs reserved.
void ReferenceNetwork::give_output_vcs(Router& router) {
  const int node = router.y * width_ + router.x;
  for (const bool is_other_buddy : {false, true}) {
    std::map<std::pair<int, int>, std::vector<int>> contenders;  // by output and its VC
    for (int input = 0; input < kPorts; ++input) {
      for (int number_in = 0; number_in < vcs_; ++number_in) {
        VirtualChannel& vc = router.input[input]->vcs[number_in];
        if (!waits(vc)) continue;
        const QueuedPacket& queued = *vc.flits.front().of;
        if (queued.tree != nullptr) {
          vc.is_routed = true;
          vc.output_vc = queued.tree->stops.at(node).output_vc;
          continue;
        }
        if (is_other_buddy && queued.packet.keeps_buddy) continue;
        const int output = next_port(router, queued.packet.destination);
        const int dateline = next_dateline(router, input, number_in, output);
        const int buddy = is_other_buddy ? 1 - number_in % 2 : number_in % 2;
        contenders[{output, number(dateline, class_of(number_in), buddy)}].push_back(input * vcs_ +
                                                                                     number_in);
      }
    }
    for (const auto& [wanted, places] : contenders) {
      give_output_vc(router, wanted.first, wanted.second, places);
    }
  }
}

// Gives it to one of the contenders, in turn. Before it is released, a VC passes to the next packet
// of the same buffer if no other packet contends.
void ReferenceNetwork::give_output_vc(Router& router, int output, int number_out,
                                      const std::vector<int>& contenders) {
  VirtualChannel& to = router.output[output]->vcs[number_out];
  if (to.is_owned) return;
  if (now_ < to.free_from && (contenders.size() > 1 || contenders[0] != to.last_place)) return;
  const auto in_turn = std::lower_bound(contenders.begin(), contenders.end(), to.turn);
  const int place = in_turn == contenders.end() ? contenders[0] : *in_turn;
  to.turn = next(place, kPorts * vcs_);
  to.is_owned = true;
  VirtualChannel& from = router.input[place / vcs_]->vcs[place % vcs_];
  from.is_routed = true;
  from.output_vc[output] = number_out;
}

bool ReferenceNetwork::wants(const Router& router, const VirtualChannel& vc, int output) const {
  return has_flit(vc) && vc.is_routed && vc.output_vc[output] >= 0 && !vc.has_left[output] &&
         has_room(*router.output[output], vc.output_vc[output]);
}

bool ReferenceNetwork::could_send(const Router& router, const VirtualChannel& vc) const {
  return wants(router, vc, kX) || wants(router, vc, kY) || wants(router, vc, kNiu);
}

// The VC that the port commits to, for any output or for one of them; -1: to none.
int ReferenceNetwork::choose_vc(Router& router, int input, int output) {
  Link& link = *router.input[input];
  for (int i = 0, vc = link.receiver_turn; i < vcs_; ++i, vc = next(vc, vcs_)) {
    const VirtualChannel& from = link.vcs[vc];
    if (output < 0 ? could_send(router, from) : wants(router, from, output)) return vc;
  }
  return -1;
}

void ReferenceNetwork::move_flits(Router& router) {
  PerOutput chosen{-1, -1, -1};  // by input
  if (figures_.picks_vc_first) {
    for (int input = 0; input < kPorts; ++input) chosen[input] = choose_vc(router, input, -1);
  }
  PerOutput winner{-1, -1, -1};  // by output: the input port
  for (int output = 0; output < kPorts; ++output) {
    int input = router.output[output]->sender_turn;
    for (int i = 0; i < kPorts && winner[output] < 0; ++i, input = next(input, kPorts)) {
      if (chosen[input] < 0 && !figures_.picks_vc_first) {
        chosen[input] = choose_vc(router, input, output);
      }
      if (chosen[input] < 0) continue;
      const VirtualChannel& vc = router.input[input]->vcs[chosen[input]];
      if (wants(router, vc, output)) winner[output] = input;
    }
  }
  for (int output = 0; output < kPorts; ++output) {
    const int input = winner[output];
    if (input >= 0) move_flit(router, input, chosen[input], output);
  }
}

void ReferenceNetwork::move_flit(Router& router, int input, int number_in, int output) {
  Link& from = *router.input[input];
  Link& to = *router.output[output];
  VirtualChannel& vc = from.vcs[number_in];
  const Flit flit = vc.flits.front();
  push(to, vc.output_vc[output], flit.of, flit.index);
  ++flit_hops_;
  from.receiver_turn = next(number_in, vcs_);
  to.sender_turn = next(input, kPorts);
  if (flit.is_last() && !flit.of->packet.keeps_path) {
    VirtualChannel& left = to.vcs[vc.output_vc[output]];
    left.is_owned = false;
    left.free_from = now_ + figures_.vc_release_cycles;
    left.last_place = input * vcs_ + number_in;
  }
  vc.has_left[output] = true;
  for (int other = 0; other < kPorts; ++other) {
    if (vc.output_vc[other] >= 0 && !vc.has_left[other]) return;
  }
  vc.has_left = {};
  pop(from, number_in);
  if (flit.is_last()) {
    vc.is_routed = false;
    vc.output_vc = {-1, -1, -1};
  }
}

// --- multicasts ---------------------------------------------------------------------------------

void ReferenceNetwork::send_multicast(const Packet& packet, const std::vector<int>& destinations) {
  Tree*& kept = sources_[packet.source].kept[packet.buddy];
  Tree* tree = kept;
  if (tree == nullptr) {
    tree = &make_tree(packet.source, destinations);
    tree->buddy = packet.buddy;
  }
  kept = packet.keeps_path ? tree : nullptr;
  packets_in_flight_ += tree->destinations;
  const std::array<Lane, kLanes>& lanes = sources_[packet.source].lanes;
  const bool is_idle =
      std::ranges::all_of(lanes, [](const Lane& lane) { return lane.packets.empty(); });
  tree->reads_when_granted = tree->packets_sent == 0 && is_idle;
  QueuedPacket queued{packet, tree, tree->packets_sent++};
  queued.packet.packet_class = kBroadcast;
  queued.packet.keeps_buddy = true;
  queue(queued);
}

ReferenceNetwork::Tree& ReferenceNetwork::make_tree(int source,
                                                    const std::vector<int>& destinations) {
  Tree& tree = trees_.emplace_back();
  tree.source = source;
  tree.destinations = static_cast<int>(destinations.size());
  int first_column = width_ * height_;
  for (const int destination : destinations) {
    first_column = std::min(first_column, links_between(source, destination, major_));
  }
  for (const int destination : destinations) add_way(tree, destination, first_column);
  return tree;
}

// The chip's x axis to the first column with a destination, that column, and the row.
void ReferenceNetwork::add_way(Tree& tree, int destination, int first_column) {
  const int minor = major_ == kX ? kY : kX;
  std::vector<int> ports(first_column, major_);
  ports.insert(ports.end(), links_between(tree.source, destination, minor), minor);
  ports.insert(ports.end(), links_between(tree.source, destination, major_) - first_column, major_);
  ports.push_back(kNiu);
  int node = tree.source;
  Tree::Stop at;
  for (const int output : ports) {
    Tree::Stop& stop = tree.stops.emplace(node, at).first->second;
    stop.outputs[output] = true;
    if (output == kNiu) return;
    at.hops = stop.hops + 1;
    at.before = node;
    at.input = output;
    node = neighbour(node, output);
  }
}

void ReferenceNetwork::run_reservations() {
  while (!reservations_.empty() && reservations_.begin()->first <= now_) {
    const std::function<void()> action = reservations_.begin()->second;
    reservations_.erase(reservations_.begin());
    action();
  }
}

void ReferenceNetwork::start_reservation(Tree& tree) {
  tree.state = Tree::probing;
  ++tree.attempt;
  tree.is_refused = false;
  tree.probes = 1;
  tree.answered_at = 0;
  tree.stops.at(tree.source).input_vc = number(0, kBroadcast, tree.buddy);
  reservations_.emplace(now_ + path_link_cycles_, [this, &tree, attempt = tree.attempt] {
    probe(tree, tree.source, attempt);
  });
}

// All outputs of this stop, or none. The last stops of a path answer, and the first that refuses. A
// probe that only meets an earlier multicast of its own source waits for that to move on.
void ReferenceNetwork::probe(Tree& tree, int node, int attempt) {
  Tree::Stop& stop = tree.stops.at(node);
  if (stop.given_up == attempt) return;
  bool is_free = true;
  bool is_other = false;
  for (int output = 0; output < kPorts; ++output) {
    if (!stop.outputs[output]) continue;
    const int dateline = next_dateline(routers_[node], stop.input, stop.input_vc, output);
    stop.output_vc[output] = number(dateline, kBroadcast, tree.buddy);
    const VirtualChannel& vc = links_[node][output].vcs[stop.output_vc[output]];
    if (!vc.is_owned && now_ >= vc.free_from) continue;
    is_free = false;
    if (vc.last_multicaster != tree.source) is_other = true;
  }
  const bool counts = attempt == tree.attempt && !tree.is_refused;
  if (!is_free && !is_other) {
    reservations_.emplace(now_ + 1, [this, &tree, node, attempt] { probe(tree, node, attempt); });
    return;
  }
  if (!is_free) {
    if (counts) refuse(tree, node, attempt);
    return;
  }
  const int probes = take(tree, node, attempt);
  if (!counts) return;
  tree.probes += probes - 1;
  if (probes == 0) {
    const Cycle way_back = stop.hops * figures_.credit_return_cycles + path_link_cycles_;
    tree.answered_at = std::max(tree.answered_at, now_ + way_back);
  }
  if (tree.probes > 0) return;
  reservations_.emplace(tree.answered_at, [this, &tree] { grant(tree); });
}

// The first packet's data is read now, unless the NIU could read it behind another packet.
void ReferenceNetwork::grant(Tree& tree) {
  tree.state = Tree::granted;
  if (!tree.reads_when_granted) return;
  for (Lane& lane : sources_[tree.source].lanes) {
    if (lane.packets.empty() || lane.packets.front()->tree != &tree) continue;
    Packet& packet = lane.packets.front()->packet;
    packet.data_at = std::max(packet.data_at, now_ * kPaceCycle + packet.data_interval);
  }
}

// The VCs of a stop become the tree's, and probes go on; returns how many.
int ReferenceNetwork::take(Tree& tree, int node, int attempt) {
  Tree::Stop& stop = tree.stops.at(node);
  stop.is_reserved = true;
  int probes = 0;
  for (int output = 0; output < kPorts; ++output) {
    if (!stop.outputs[output]) continue;
    VirtualChannel& vc = links_[node][output].vcs[stop.output_vc[output]];
    vc.is_owned = true;
    vc.last_multicaster = tree.source;
    if (output == kNiu) continue;
    const int next = neighbour(node, output);
    tree.stops.at(next).input_vc = stop.output_vc[output];
    ++probes;
    reservations_.emplace(now_ + figures_.hop_cycles,
                          [this, &tree, next, attempt] { probe(tree, next, attempt); });
  }
  return probes;
}

// The refusal goes from stop to stop, back to the source; all that it passes give up.
void ReferenceNetwork::refuse(Tree& tree, int node, int attempt) {
  tree.is_refused = true;
  const int before = tree.stops.at(node).before;
  if (before < 0) {
    reservations_.emplace(now_ + path_link_cycles_, [this, &tree] { try_again(tree); });
    return;
  }
  reservations_.emplace(now_ + figures_.credit_return_cycles, [this, &tree, before, attempt] {
    give_up(tree, before, attempt);
    refuse(tree, before, attempt);
  });
}

void ReferenceNetwork::give_up(Tree& tree, int node, int attempt) {
  Tree::Stop& stop = tree.stops.at(node);
  stop.given_up = attempt;
  if (!stop.is_reserved) return;
  stop.is_reserved = false;
  for (int output = 0; output < kPorts; ++output) {
    if (!stop.outputs[output]) continue;
    links_[node][output].vcs[stop.output_vc[output]].is_owned = false;
    if (output == kNiu) continue;
    const int next = neighbour(node, output);
    reservations_.emplace(now_ + figures_.hop_cycles,
                          [this, &tree, next, attempt] { give_up(tree, next, attempt); });
  }
}

void ReferenceNetwork::try_again(Tree& tree) {
  std::int64_t longest = backoff_min_;
  for (int i = 0; i < tree.tries && longest < backoff_max_; ++i) longest *= 2;
  ++tree.tries;
  const Cycle wait = random_.between(1, std::min<std::int64_t>(longest, backoff_max_));
  reservations_.emplace(now_ + wait, [this, &tree] { start_reservation(tree); });
}

}  // namespace towpath::noc
