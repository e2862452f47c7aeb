// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/flit_network.hpp"

#include <bit>
#include <utility>

#include "towpath/noc/bits.hpp"

namespace towpath::noc {

template <typename Visit>
void FlitNetwork::NodeSet::filter(Visit visit) {
  for (std::size_t word = 0; word < words_.size(); ++word) {
    for (std::uint64_t rest = std::exchange(words_[word], 0); rest != 0; rest &= rest - 1) {
      const int lowest = std::countr_zero(rest);
      const bool stays = visit(static_cast<int>(word * 64) + lowest);
      words_[word] |= std::uint64_t{stays} << lowest;
    }
  }
}

void FlitNetwork::pace_by_endpoint(int node) { sinks_[index(node)].by_endpoint = true; }
void FlitNetwork::hold_up_by_endpoint(int node) { sinks_[index(node)].is_held_up = true; }

// --- sending ------------------------------------------------------------------------------------

PacketId FlitNetwork::add_packet(const Packet& packet) {
  PacketId id;
  if (free_packets_.empty()) {
    id = static_cast<PacketId>(packets_.size());
    packets_.emplace_back();
    headers_.emplace_back();
    next_packet_.push_back(kNoPacket);
  } else {
    id = free_packets_.back();
    free_packets_.pop_back();
  }
  static_cast<Packet&>(packets_[id]) = packet;
  headers_[id] = {static_cast<std::int16_t>(torus_.x_of(packet.destination)),
                  static_cast<std::int16_t>(torus_.y_of(packet.destination)),
                  static_cast<std::uint16_t>(packet.flits),
                  packet.keeps_buddy,
                  packet.keeps_path,
                  packet.tree >= 0};
  return id;
}

// --- one cycle ----------------------------------------------------------------------------------

void FlitNetwork::step() {
  Arrivals& next_hop = slot_in(figures_.hop_cycles).to_routers;
  arrivals_ = {&next_hop, &next_hop, &slot_in(figures_.router_to_niu_cycles).to_sinks};
  Slot& back = slot_in(figures_.credit_return_cycles);
  credits_ = {&back.router_credits, &back.router_credits, &back.source_credits};
  receive_slot(slot_in(0));
  if (!events_.empty() && events_.top().at <= now_) run_events();
  active_sinks_.filter([this](int node) { return step_sink(node); });
  active_sources_.filter([this](int node) { return step_source(node); });
  undecided_routers_.filter([this](int node) { return allocate(routers_[index(node)]); });
  active_routers_.filter([this](int node) { return choose_flits(routers_[index(node)]); });
  move_chosen();
  end_packets();
  ++now_;
}

void FlitNetwork::receive_slot(Slot& slot) {
  for (const Arrival& arrival : slot.to_routers.headers().all()) {
    header_arrives(routers_[arrival.to.node()], arrival);
  }
  for (const Arrival& arrival : slot.to_routers.others().all()) {
    flit_arrives(routers_[arrival.to.node()], arrival.to);
    active_routers_.insert(static_cast<int>(arrival.to.node()));
  }
  for (const Arrival& arrival : slot.to_sinks.headers().all()) {
    header_arrives(sinks_[arrival.to.node()], arrival);
    active_sinks_.insert(static_cast<int>(arrival.to.node()));
  }
  for (const Arrival& arrival : slot.to_sinks.others().all()) {
    flit_arrives(sinks_[arrival.to.node()], arrival.to);
    active_sinks_.insert(static_cast<int>(arrival.to.node()));
  }
  for (const Wire credit : slot.router_credits.all()) {
    credit_arrives(routers_[credit.node()], static_cast<unsigned>(credit.number()));
  }
  for (const Wire credit : slot.source_credits.all()) {
    return_credit(sources_[credit.node()].link, static_cast<unsigned>(credit.vc()));
    active_sources_.insert(static_cast<int>(credit.node()));
  }
  for (const Wire release : slot.releases) {
    decide(routers_[release.node()], std::uint64_t{1} << release.number());
  }
  slot.releases.clear();
  slot.to_routers.clear();
  slot.to_sinks.clear();
  slot.router_credits.clear();
  slot.source_credits.clear();
}

Cycle FlitNetwork::next_work() const {
  if (!active_routers_.empty() || !active_sources_.empty() || !active_sinks_.empty() ||
      !undecided_routers_.empty()) {
    return now_;
  }
  const Cycle next = events_.empty() ? kNever : events_.top().at;
  for (std::size_t ahead = 0; ahead < wheel_.size(); ++ahead) {
    if (!wheel_[(static_cast<std::size_t>(now_) + ahead) & wheel_mask_].is_empty()) {
      return std::min(next, now_ + static_cast<Cycle>(ahead));
    }
  }
  return next;
}

void FlitNetwork::schedule(Cycle at, EventKind kind, int node, int detail, int attempt) {
  events_.push({at, sequence_++, kind, node, detail, attempt});
}

void FlitNetwork::run_events() {
  while (!events_.empty() && events_.top().at <= now_) {
    const Event event = events_.top();
    events_.pop();
    switch (event.kind) {
      case EventKind::wake_source: active_sources_.insert(event.node); break;
      case EventKind::wake_sink: active_sinks_.insert(event.node); break;
      case EventKind::release:
        if (sinks_[index(event.node)].held_until[index(event.detail)] > now_) break;
        clear_bit(sinks_[index(event.node)].held, event.detail);
        active_sinks_.insert(event.node);
        break;
      case EventKind::probe: probe(event.node, event.detail, event.attempt); break;
      case EventKind::granted: reservation_granted(event.node); break;
      case EventKind::refusal: refusal_arrives(event.node, event.detail, event.attempt); break;
      case EventKind::let_go: let_go(event.node, event.detail, event.attempt); break;
      case EventKind::refused: reservation_refused(event.node); break;
      case EventKind::retry: start_reservation(event.node); break;
    }
  }
}

// A packet reaches the front of a router's buffer: chooses its output and its VC.
void FlitNetwork::begin_packet(Router& router, int number, PacketId id) {
  InputVc& vc = router.input_vc(number);
  const Header& header = headers_[id];
  vc.packet = id;
  vc.flits_left = header.flits;
  vc.header = id;
  if (header.is_multicast) {
    const Packet& packet = packets_[id];
    const MulticastTree::Branch& branch = trees_[index(packet.tree)].branches[index(packet.branch)];
    vc.outputs = vc.all_outputs = branch.outputs;
    vc.output_vc = branch.output_vc;
    set_bit(router.input.allocated, number);
    set_bit(router.multicast, number);
    active_routers_.insert(static_cast<int>(router.node));
    return;
  }
  const int output = output_to(router.x, router.y, header.destination_x, header.destination_y);
  const int wanted = output * kVcsMax + next_vc(router, number / kVcsMax, number % kVcsMax, output);
  vc.way = static_cast<std::uint8_t>(wanted);
  router.flexible |= std::uint64_t{!header.keeps_buddy} << number;
  set_bit(router.output_vc(wanted).contenders, number);
  set_bit(router.wanted, wanted);
  // While other packets own both candidate VCs there is nothing to decide.
  const std::uint64_t open = ~router.owned | router.draining;
  const std::uint64_t is_open = open >> wanted | (header.keeps_buddy ? 0 : open >> (wanted ^ 1));
  decide(router, (is_open & 1) << wanted);
}

void FlitNetwork::begin_packet(Sink& sink, int number, PacketId id) {
  InputVc& vc = sink.input_vc(number);
  vc.packet = id;
  vc.flits_left = headers_[id].flits;
}

template <typename End>
int FlitNetwork::flit_arrives(End& end, Wire to) {
  const int number = end.input.turn.size() == 1 ? to.vc() : to.number();
  ++end.input_vc(number).flits;
  set_bit(end.input.occupied, number);
  return number;
}

template <typename End>
void FlitNetwork::header_arrives(End& end, const Arrival& arrival) {
  const int number = flit_arrives(end, arrival.to);
  if (end.input_vc(number).packet == kNoPacket) {
    begin_packet(end, number, arrival.header);
    return;
  }
  InputVc& vc = end.input_vc(number);
  (vc.first_behind == kNoPacket ? vc.first_behind : next_packet_[vc.last_behind]) = arrival.header;
  vc.last_behind = arrival.header;
}

// The packet in front has left; the next one becomes the front.
template <typename End>
void FlitNetwork::end_packet(End& end, int number) {
  InputVc& vc = end.input_vc(number);
  clear_bit(end.input.allocated, number);
  vc.packet = kNoPacket;
  if (vc.first_behind == kNoPacket) return;
  const PacketId next = vc.first_behind;
  vc.first_behind = next == vc.last_behind ? kNoPacket : next_packet_[next];
  begin_packet(end, number, next);
}

// --- NIUs ---------------------------------------------------------------------------------------

void FlitNetwork::hold(int node, int vc, Cycle until) {
  Sink& sink = sinks_[index(node)];
  set_bit(sink.held, vc);
  sink.held_until[index(vc)] = std::max(sink.held_until[index(vc)], until);
  if (until != kNever) schedule(until, EventKind::release, node, vc);
}

void FlitNetwork::release(int node, int vc, Cycle at) {
  sinks_[index(node)].held_until[index(vc)] = at;
  schedule(at, EventKind::release, node, vc);
}

// VCs from which the next flit may be taken.
unsigned FlitNetwork::takeable(const Sink& sink) const {
  const unsigned waiting = static_cast<unsigned>(sink.input.occupied) & ~sink.held;
  if (sink.current_vc < 0) return waiting;
  return waiting & (unsigned{interleaved_vcs_} | 1u << sink.current_vc);
}

bool FlitNetwork::step_sink(int node) {
  Sink& sink = sinks_[index(node)];
  const unsigned waiting = takeable(sink);
  if (waiting == 0) return false;
  if (sink.by_endpoint && sink.ready_at > now_) {
    schedule(sink.ready_at, EventKind::wake_sink, node);
    return false;
  }
  if (!sink.by_endpoint && !sink.pace.is_ready(now_)) return true;
  const unsigned turn = sink.input.turn[0];
  const int vc = static_cast<int>(
      (static_cast<unsigned>(std::countr_zero(in_turn(waiting, turn))) + turn) & (kVcsMax - 1));
  take_flit(node, vc);
  return true;
}

void FlitNetwork::take_flit(int node, int number) {
  Sink& sink = sinks_[index(node)];
  InputVc& vc = sink.input_vc(number);
  const PacketId id = vc.packet;
  const bool is_last = --vc.flits_left == 0;
  if (--vc.flits == 0) clear_bit(sink.input.occupied, number);
  credits_[kX]->add(wire_of(node, kNiu).with_vc(static_cast<unsigned>(number)));
  sink.input.turn[0] = static_cast<std::uint8_t>((number + 1) & (kVcsMax - 1));
  if (sink.by_endpoint) {
    sink.ready_at = endpoint_.flit_received(packets_[id], node, now_);
  } else {
    sink.pace.take(now_, port_interval_);
  }
  if (sink.is_held_up) {
    const Cycle next = endpoint_.flit_received(packets_[id], node, now_);
    if (next > now_ + 1) hold(node, number, next);
  }
  if ((interleaved_vcs_ >> number & 1) == 0) sink.current_vc = is_last ? -1 : number;
  if (!is_last) return;
  end_packet(sink, number);
  const Packet packet = packets_[id];
  free_packets_.push_back(id);
  --packets_in_flight_;
  if (packet.tree >= 0) end_copy(packet.tree);
  endpoint_.packet_received(packet, node, number, now_);
}

// --- routers ------------------------------------------------------------------------------------

// Whether no packet owns the output VC; a drained VC becomes free here.
bool FlitNetwork::is_free(Router& router, int output_vc) const {
  if ((router.owned >> output_vc & 1) == 0) return true;
  if ((router.draining >> output_vc & 1) == 0) return false;
  if (router.output_vc(output_vc).free_at > now_) return false;
  clear_bit(router.owned, output_vc);
  clear_bit(router.draining, output_vc);
  return true;
}

// Marks output VCs for the next allocation: their state, or the packets waiting for them, may have
// changed.
void FlitNetwork::decide(Router& router, std::uint64_t output_vcs) {
  undecided_routers_.insert_if(static_cast<int>(router.node), output_vcs != 0);
  router.undecided |= output_vcs;
}

// Gives output VCs to waiting packets: first the VC of the packet's own buddy bit, then, if the
// packet may change it, the other one. True if some VCs must be examined again.
bool FlitNetwork::allocate(Router& router) {
  std::uint64_t rest = router.undecided & router.wanted;
  router.undecided = 0;
  for (; rest != 0; rest &= rest - 1) {
    const int output_vc = std::countr_zero(rest);
    give_vc(router, router.output_vc(output_vc).contenders, output_vc);
  }
  if (router.flexible == 0) return false;
  for (rest = router.wanted; rest != 0; rest &= rest - 1) {
    const int wanted = std::countr_zero(rest);
    const std::uint64_t left = router.output_vc(wanted).contenders & router.flexible;
    if (left == 0 || !give_vc(router, left, wanted ^ 1)) continue;
    // Contenders that lost may now be alone with the VC they want.
    router.undecided |= std::uint64_t{1} << wanted;
  }
  return router.undecided != 0;
}

// Gives the VC to one of the contenders, in turn, if it is free. Until its release, a VC may only
// go to the next packet of the same buffer, and only when no other packet waits for it.
bool FlitNetwork::give_vc(Router& router, std::uint64_t contenders, int output_vc) {
  OutputVc& given = router.output_vc(output_vc);
  int number = (std::countr_zero(std::rotr(contenders, given.turn)) + given.turn) & 63;
  if (!is_free(router, output_vc)) {
    if ((router.draining >> output_vc & 1) == 0) return false;
    number = given.last_owner;
    if (contenders != std::uint64_t{1} << number) {
      release_when_free(router, output_vc);
      return false;
    }
    clear_bit(router.draining, output_vc);
  }
  given.turn = static_cast<std::uint8_t>(number + 1);
  given.last_owner = static_cast<std::uint8_t>(number);
  set_bit(router.owned, output_vc);
  take_room(router, number, output_vc);
  InputVc& vc = router.input_vc(number);
  OutputVc& wanted = router.output_vc(vc.way);
  clear_bit(wanted.contenders, number);
  if (wanted.contenders == 0) clear_bit(router.wanted, int{vc.way});
  vc.way = static_cast<std::uint8_t>(output_vc);
  clear_bit(router.flexible, number);
  set_bit(router.input.allocated, number);
  active_routers_.insert(static_cast<int>(router.node));
  return true;
}

// Packets that wait for a VC not yet released are examined again at its release.
void FlitNetwork::release_when_free(Router& router, int output_vc) {
  const Cycle ahead = router.output_vc(output_vc).free_at - now_;
  slot_in(static_cast<int>(ahead)).releases.push_back(Wire(router.node, output_vc));
}

// Room at the other end is kept as sets of input VCs, so that VCs that could not send are not
// examined.

// A credit frees a slot: the VC's own slot if the VC has no flits there any more, otherwise a slot
// of the pool.
void FlitNetwork::credit_arrives(Router& router, unsigned output_vc) {
  const unsigned output = output_vc / kVcsMax;
  OutputLink& link = router.output[output];
  const bool was_empty = link.pool_used >= pool_limit_;
  return_credit(link, output_vc % kVcsMax);
  const bool is_own = link.used[output_vc % kVcsMax] == 0;
  const std::uint64_t holder = std::uint64_t{1} << router.holder[output_vc];
  const std::uint64_t own = is_own ? holder : 0;
  const std::uint64_t waiting = (router.full | router.starved) & holder;
  router.full &= ~holder;
  const std::uint64_t served = router.pooled[output] & ~without_pool(link.pool_used);
  router.starved &= ~(was_empty && !is_own ? served : own);
  router.pooled[output] &= ~own;
  active_routers_.insert_if(static_cast<int>(router.node),
                            was_empty || (waiting | router.multicast) != 0);
}

// Takes a slot at the other end for a flit: of a unicast in VC `number`, or of a multicast (number
// kNobody).
void FlitNetwork::use_room(Router& router, int number, unsigned output, unsigned vc) const {
  OutputLink& link = router.output[output];
  use_slot(link, vc);
  set_bit(router.pooled[output], number);
  router.starved |= router.pooled[output] & without_pool(link.pool_used);
  router.full |= std::uint64_t{link.used[vc] > figures_.pool_flits_per_vc_max} << number;
}

// Gives a packet an output VC, which may still have flits of others at the other end.
void FlitNetwork::take_room(Router& router, int number, int output_vc) const {
  router.holder[index(output_vc)] = static_cast<std::uint8_t>(number);
  const unsigned output = static_cast<unsigned>(output_vc) / kVcsMax;
  const OutputLink& link = router.output[output];
  const int used = link.used[static_cast<unsigned>(output_vc) % kVcsMax];
  const std::uint64_t pooled = std::uint64_t{used != 0} << number;
  router.pooled[output] |= pooled;
  router.starved |= pooled & without_pool(link.pool_used);
  router.full |= std::uint64_t{used > figures_.pool_flits_per_vc_max} << number;
}

void FlitNetwork::leave_room(Router& router, int number, int output_vc) {
  router.holder[index(output_vc)] = kNobody;
  clear_bit(router.pooled[static_cast<unsigned>(output_vc) / kVcsMax], number);
  clear_bit(router.starved, number);
  clear_bit(router.full, number);
}

// Input port that wins an output, by the port whose turn it is and the set of ports that want it.
constexpr std::uint8_t kFirstInput[3][8] = {
    {0, 0, 1, 0, 2, 0, 1, 0}, {0, 0, 1, 1, 2, 2, 1, 1}, {0, 0, 1, 0, 2, 2, 2, 2}};

// Chooses the flits that leave a router; move_chosen sends them. False when no VC can send in the
// next cycle unless a flit or a credit arrives, or one that is sent leaves others behind it.
bool FlitNetwork::choose_flits(Router& router) {
  const std::uint64_t candidates = router.ready();
  if (candidates == 0) return false;
  if ((candidates & router.multicast) != 0) return move_one_per_port(router, candidates);
  if ((candidates & (candidates - 1)) != 0) return choose_one_per_port(router, candidates);
  moves_.add(Wire(router.node, std::countr_zero(candidates)));
  return false;
}

// VC before port, for unicasts alone. Without branches, which would be unpredictable: a port
// without a candidate chooses a VC that nobody asks for.
bool FlitNetwork::choose_one_per_port(Router& router, std::uint64_t candidates) {
  std::array<int, kPorts> chosen;
  unsigned wishes = 0;  // kPorts bits per output: the input ports that want it
  for (unsigned input = 0; input < kPorts; ++input) {
    const unsigned of_port = static_cast<unsigned>(candidates >> input * kVcsMax & 0xffff);
    const unsigned turn = router.input.turn[input];
    const unsigned first = static_cast<unsigned>(std::countr_zero(in_turn(of_port, turn) | 1u << 16));
    chosen[input] = static_cast<int>(input * kVcsMax + ((first + turn) & (kVcsMax - 1)));
    const unsigned output = router.input_vc(chosen[input]).way / kVcsMax;
    wishes |= unsigned{of_port != 0} << (output * kPorts + input);
  }
  for (unsigned output = 0; output < kPorts; ++output) {
    const unsigned wanting = wishes >> output * kPorts & ((1u << kPorts) - 1);
    const int number = chosen[kFirstInput[router.output[output].turn][wanting]];
    moves_.add_if(Wire(router.node, number), wanting != 0);
  }
  return true;
}

// Outputs that the front flit of a ready VC could take in this cycle, one bit per port.
unsigned FlitNetwork::possible_outputs(const Router& router, int number) const {
  const InputVc& vc = router.input_vc(number);
  if ((router.multicast >> number & 1) == 0) return 1u << vc.way / kVcsMax;
  unsigned possible = 0;
  for (unsigned outputs = vc.outputs; outputs != 0; outputs &= outputs - 1) {
    const unsigned output = static_cast<unsigned>(std::countr_zero(outputs));
    if (has_room(router.output[output], vc.output_vc[output])) possible |= 1u << output;
  }
  return possible;
}

// VC before port: each input port commits to one VC, then each output port picks an input port.
bool FlitNetwork::move_one_per_port(Router& router, std::uint64_t candidates) {
  std::array<int, kPorts> chosen;
  unsigned wishes = 0;  // kPorts bits per output: the input ports that want it
  bool is_any = false;
  for (unsigned input = 0; input < kPorts; ++input) {
    const unsigned of_port = static_cast<unsigned>(candidates >> input * kVcsMax & 0xffff);
    if (of_port == 0) continue;
    const unsigned turn = router.input.turn[input];
    for (unsigned rest = in_turn(of_port, turn); rest != 0; rest &= rest - 1) {
      const unsigned vc = (static_cast<unsigned>(std::countr_zero(rest)) + turn) & 15u;
      const int number = static_cast<int>(input * kVcsMax + vc);
      const unsigned possible = possible_outputs(router, number);
      if (possible == 0) continue;
      is_any = true;
      chosen[input] = number;
      for (unsigned outputs = possible; outputs != 0; outputs &= outputs - 1) {
        wishes |= 1u << (static_cast<unsigned>(std::countr_zero(outputs)) * kPorts + input);
      }
      break;
    }
  }
  for (int output = 0; wishes != 0; ++output, wishes >>= kPorts) {
    const unsigned wanting = wishes & ((1u << kPorts) - 1);
    if (wanting == 0) continue;
    const int number = chosen[kFirstInput[router.output[index(output)].turn][wanting]];
    if ((router.multicast >> number & 1) != 0) {
      send_copy(router, number, output);
    } else {
      moves_.add(Wire(router.node, number));
    }
  }
  return is_any;
}

void FlitNetwork::take_turns(Router& router, int number, int output) const {
  const unsigned input = static_cast<unsigned>(number) / kVcsMax;
  router.input.turn[input] = static_cast<std::uint8_t>((number + 1) & (kVcsMax - 1));
  router.output[index(output)].turn =
      static_cast<std::uint8_t>(input == kPorts - 1 ? 0 : input + 1);
}

void FlitNetwork::move_chosen() {
  for (const Wire place : moves_.all()) {
    Router& router = routers_[place.node()];
    send_flit(router, place.number());
    active_routers_.insert_if(static_cast<int>(place.node()), router.ready() != 0);
  }
  moves_.clear();
}

// Sends a unicast's front flit.
void FlitNetwork::send_flit(Router& router, int number) {
  InputVc& vc = router.input_vc(number);
  const int output = vc.way / kVcsMax;
  OutputLink& link = router.output[index(output)];
  const unsigned output_vc = vc.way % kVcsMax;
  use_room(router, number, static_cast<unsigned>(output), output_vc);
  arrivals_[index(output)]->add({link.target.with_vc(output_vc), vc.header});
  vc.header = kNoPacket;
  take_turns(router, number, output);
  free_slot(router, number);
  ended_.add_if(Wire(router.node, number), vc.flits_left == 0);
}

void FlitNetwork::end_packets() {
  for (const Wire place : ended_.all()) {
    Router& router = routers_[place.node()];
    const int number = place.number();
    release_vc(router, number, router.input_vc(number).way);
    end_packet(router, number);
  }
  ended_.clear();
}

// Sends a multicast's front flit through one of the outputs that need it.
void FlitNetwork::send_copy(Router& router, int number, int output) {
  InputVc& vc = router.input_vc(number);
  OutputLink& link = router.output[index(output)];
  const int output_vc = vc.output_vc[index(output)];
  const bool is_last = vc.flits_left == 1;
  use_room(router, kNobody, static_cast<unsigned>(output), static_cast<unsigned>(output_vc));
  arrivals_[index(output)]->add(
      {link.target.with_vc(static_cast<unsigned>(output_vc)),
       vc.header == kNoPacket ? kNoPacket : branch_off(vc.packet, output)});
  take_turns(router, number, output);
  if (is_last && !headers_[vc.packet].keeps_path) {
    release_vc(router, number, output * kVcsMax + output_vc);
  }
  vc.outputs = static_cast<std::uint8_t>(vc.outputs & ~(1u << output));
  if (vc.outputs != 0) return;

  vc.outputs = vc.all_outputs;
  vc.header = kNoPacket;
  free_slot(router, number);
  if (!is_last) return;
  free_packets_.push_back(vc.packet);
  clear_bit(router.multicast, number);
  end_packet(router, number);
}

// Creates the packet for the copy of a multicast that continues through one output.
PacketId FlitNetwork::branch_off(PacketId id, int output) {
  Packet copy = packets_[id];
  if (output != kNiu) {
    copy.branch = trees_[index(copy.tree)].branches[index(copy.branch)].child[index(output)];
  }
  return add_packet(copy);
}

// Frees the slot of the front flit, and returns its credit to the sender.
void FlitNetwork::free_slot(Router& router, int number) {
  InputVc& vc = router.input_vc(number);
  --vc.flits_left;
  --vc.flits;
  router.input.occupied &= ~(std::uint64_t{vc.flits == 0} << number);
  const unsigned place = static_cast<unsigned>(number);
  credits_[place / kVcsMax]->add(router.upstream[place / kVcsMax].with_vc(place % kVcsMax));
}

// A packet's last flit leaves: its output VC becomes free vc_release_cycles later.
void FlitNetwork::release_vc(Router& router, int number, int output_vc) {
  OutputVc& left = router.output_vc(output_vc);
  left.last_owner = static_cast<std::uint8_t>(number);  // not yet set for a multicast
  leave_room(router, number, output_vc);
  left.free_at = now_ + figures_.vc_release_cycles;
  set_bit(router.draining, output_vc);
  // Wakes packets that wait for it or, if they may change buddy, for the VC of the other buddy bit.
  const bool is_awaited = (router.wanted >> output_vc & 1) != 0 ||
                          ((router.wanted >> (output_vc ^ 1) & 1) != 0 && router.flexible != 0);
  if (is_awaited) release_when_free(router, output_vc);
}

}  // namespace towpath::noc
