// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/flit_network.hpp"

#include <bit>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/noc/router/bits.hpp"

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
    orders_.push_back(0);
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
  allocate(slot_in(0).releases);
  active_routers_.filter([this](int node) { return choose_flits(node); });
  move_chosen();
  begin_followers();
  ++now_;
}

void FlitNetwork::receive_slot(Slot& slot) {
  headers_arrive(slot.to_routers.headers().all());
  for (const Arrival& arrival : slot.to_routers.others().all()) {
    flit_arrives(router_of(arrival.to), arrival.to.number());
    active_routers_.insert(static_cast<int>(arrival.to.node()));
  }
  for (const Arrival& arrival : slot.to_sinks.headers().all()) {
    header_arrives(sinks_[arrival.to.node()], arrival);
    active_sinks_.insert(static_cast<int>(arrival.to.node()));
  }
  for (const Arrival& arrival : slot.to_sinks.others().all()) {
    flit_arrives(sinks_[arrival.to.node()], arrival.to.vc());
    active_sinks_.insert(static_cast<int>(arrival.to.node()));
  }
  for (const Wire credit : slot.router_credits.all()) credit_arrives(credit);
  for (const Wire credit : slot.source_credits.all()) {
    SourceLink& link = sources_[credit.node()].link;
    const unsigned used = --link.used[credit.vc()];
    link.pool_used = static_cast<std::uint8_t>(link.pool_used - (used != 0 ? 1 : 0));
    active_sources_.insert(static_cast<int>(credit.node()));
  }
  slot.to_routers.clear();
  slot.to_sinks.clear();
  slot.router_credits.clear();
  slot.source_credits.clear();
}

Cycle FlitNetwork::next_work() const {
  if (!active_routers_.empty() || !active_sources_.empty() || !active_sinks_.empty() ||
      !undecided_.empty()) {
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

// --- packets in buffers -------------------------------------------------------------------------

template <typename End>
void FlitNetwork::flit_arrives(End& end, unsigned number) {
  ++end.in[number].flits;
  set_bit(end.input.occupied, number);
}

// Headers reach routers: each begins a packet if its VC is empty, and otherwise follows others.
void FlitNetwork::headers_arrive(std::span<const Arrival> arrivals) {
  for (const Arrival& arrival : arrivals) {
    Router& router = router_of(arrival.to);
    const unsigned number = arrival.to.number();
    flit_arrives(router, number);
    const bool is_behind = (router.input.begun >> number & 1) != 0;
    set_bit(router.input.begun, number);
    (is_behind ? behind_ : fronts_).add(arrival);
  }
  begin_packets();
  for (const Arrival& arrival : behind_.all()) {
    follow(router_of(arrival.to), arrival.to.number(), arrival.packet);
  }
  behind_.clear();
}

void FlitNetwork::header_arrives(Sink& sink, const Arrival& arrival) {
  const unsigned vc = arrival.to.vc();
  flit_arrives(sink, vc);
  if ((sink.input.begun >> vc & 1) != 0) {
    follow(sink, vc, arrival.packet);
  } else {
    set_bit(sink.input.begun, vc);
    begin_packet(sink, vc, arrival.packet);
  }
}

template <typename End>
void FlitNetwork::follow(End& end, unsigned number, PacketId id) {
  Followers& followers = end.followers[number];
  const bool is_first = (end.input.followed >> number & 1) == 0;
  (is_first ? followers.first : next_packet_[followers.last]) = id;
  followers.last = id;
  set_bit(end.input.followed, number);
}

// Takes the first follower out of the list.
template <typename End>
PacketId FlitNetwork::next_follower(End& end, unsigned number) {
  Followers& followers = end.followers[number];
  const PacketId next = followers.first;
  end.input.followed &= ~(std::uint64_t{next == followers.last} << number);
  followers.first = next_packet_[next];
  return next;
}

void FlitNetwork::begin_packets() {
  for (const Arrival& front : fronts_.all()) begin_packet(front.to, front.packet);
  fronts_.clear();
}

// A packet reaches the front of a router's buffer: chooses its output and its VC.
void FlitNetwork::begin_packet(Wire place, PacketId id) {
  Router& router = router_of(place);
  const unsigned number = place.number();
  InputVc& vc = router.in[number];
  const Header& header = headers_[id];
  vc.packet = id;
  vc.flits_left = header.flits;
  set_bit(router.header, number);
  if (header.is_multicast) return begin_multicast(place, id);
  const int output = output_to(router.x, router.y, header.destination_x, header.destination_y);
  const unsigned wanted = way_out(number, output, (router.crosses_dateline >> output & 1) != 0);
  vc.way = static_cast<std::uint8_t>(wanted);
  router.flexible |= std::uint64_t{!header.keeps_buddy} << number;
  set_bit(router.contenders[wanted], number);
  set_bit(router.wanted, wanted);
  // While other packets own both candidate VCs there is nothing to decide.
  const std::uint64_t open = ~router.owned | router.draining;
  const std::uint64_t is_open = open >> wanted | (header.keeps_buddy ? 0 : open >> (wanted ^ 1));
  undecided_.add_if(place.with_number(wanted), (is_open & 1) != 0);
}

void FlitNetwork::begin_multicast(Wire place, PacketId id) {
  Router& router = router_of(place);
  const Packet& packet = packets_[id];
  const MulticastTree::Branch& branch = trees_[index(packet.tree)].branches[index(packet.branch)];
  router.copies[place.number()] = {branch.outputs, branch.outputs, branch.output_vc};
  set_bit(router.input.allocated, place.number());
  set_bit(router.multicast, place.number());
  active_routers_.insert(static_cast<int>(place.node()));
}

void FlitNetwork::begin_packet(Sink& sink, unsigned vc, PacketId id) {
  sink.in[vc].packet = id;
  sink.in[vc].flits_left = headers_[id].flits;
}

// The packet in front has left; the next one becomes the front.
void FlitNetwork::end_packet(Sink& sink, unsigned vc) {
  if ((sink.input.followed >> vc & 1) == 0) {
    clear_bit(sink.input.begun, vc);
  } else {
    begin_packet(sink, vc, next_follower(sink, vc));
  }
}

// --- NIUs ---------------------------------------------------------------------------------------

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
  const unsigned turn = sink.turn;
  take_flit(node, (static_cast<unsigned>(std::countr_zero(in_turn(waiting, turn))) + turn) &
                      (kVcsMax - 1));
  return true;
}

void FlitNetwork::take_flit(int node, unsigned number) {
  Sink& sink = sinks_[index(node)];
  InputVc& vc = sink.in[number];
  const PacketId id = vc.packet;
  const bool is_last = --vc.flits_left == 0;
  if (--vc.flits == 0) clear_bit(sink.input.occupied, number);
  credits_[kX]->add(Wire(node, kNiu * kVcsMax + number));
  sink.turn = static_cast<std::uint8_t>((number + 1) & (kVcsMax - 1));
  if (sink.by_endpoint) {
    sink.ready_at = endpoint_.flit_received(packets_[id], node, now_);
  } else {
    sink.pace.take(now_, port_interval_);
  }
  if (sink.is_held_up) {
    const Cycle next = endpoint_.flit_received(packets_[id], node, now_);
    if (next > now_ + 1) hold(node, static_cast<int>(number), next);
  }
  const bool is_interleaved = (interleaved_vcs_ >> number & 1) != 0;
  if (!is_interleaved) sink.current_vc = is_last ? -1 : static_cast<int>(number);
  if (!is_last) return;
  end_packet(sink, number);
  const Packet packet = packets_[id];
  free_packets_.push_back(id);
  --packets_in_flight_;
  if (packet.tree >= 0) end_copy(packet.tree);
  endpoint_.packet_received(packet, node, static_cast<int>(number), now_);
}

// --- routers ------------------------------------------------------------------------------------

// Whether no packet owns the output VC; a drained VC becomes free here.
bool FlitNetwork::is_free(Router& router, unsigned output_vc) const {
  if ((router.owned >> output_vc & 1) == 0) return true;
  if ((router.draining >> output_vc & 1) == 0 || router.free_at[output_vc] > now_) return false;
  clear_bit(router.owned, output_vc);
  clear_bit(router.draining, output_vc);
  return true;
}

// Whether packets wait for the output VC or, if they may change buddy, for that of the other buddy
// bit.
bool FlitNetwork::is_awaited(const Router& router, unsigned output_vc) {
  const std::uint64_t other = router.flexible != 0 ? router.wanted >> (output_vc ^ 1) : 0;
  return ((router.wanted >> output_vc | other) & 1) != 0;
}

// Gives output VCs to waiting packets: first the VC of the packet's own buddy bit, then, if the
// packet may change it, the other one.
void FlitNetwork::allocate(std::vector<Wire>& releases) {
  give_vcs(undecided_.all());
  give_vcs(releases);
  undecided_.clear();
  releases.clear();
  flexible_routers_.filter([this](int node) {
    give_other_buddy(node);
    return false;
  });
}

void FlitNetwork::give_vcs(std::span<const Wire> output_vcs) {
  for (const Wire output_vc : output_vcs) {
    Router& router = router_of(output_vc);
    const std::uint64_t contenders = router.contenders[output_vc.number()];
    if (contenders != 0) give_vc(router, contenders, output_vc);
    if (router.flexible != 0) flexible_routers_.insert(router.node);
  }
}

void FlitNetwork::give_other_buddy(int node) {
  Router& router = routers_[index(node)];
  for (std::uint64_t rest = router.wanted; rest != 0; rest &= rest - 1) {
    const unsigned wanted = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t left = router.contenders[wanted] & router.flexible;
    if (left == 0 || !give_vc(router, left, Wire(node, wanted ^ 1))) continue;
    // Contenders that lost may now be alone with the VC they want.
    undecided_.add(Wire(node, wanted));
  }
}

// Gives the VC to one of the contenders, in turn, if it is free. Until its release, a VC may only
// go to the next packet of the same buffer, and only when no other packet waits for it.
bool FlitNetwork::give_vc(Router& router, std::uint64_t contenders, Wire place) {
  const unsigned output_vc = place.number();
  OutputVc& given = router.out[output_vc];
  unsigned number =
      (static_cast<unsigned>(std::countr_zero(std::rotr(contenders, given.turn))) + given.turn) &
      63;
  if (!is_free(router, output_vc)) {
    if ((router.draining >> output_vc & 1) == 0) return false;
    number = given.last_owner;
    if (contenders != std::uint64_t{1} << number) {
      release_when_free(router, place);
      return false;
    }
    clear_bit(router.draining, output_vc);
  }
  given.turn = static_cast<std::uint8_t>(number + 1);
  given.last_owner = given.holder = static_cast<std::uint8_t>(number);
  set_bit(router.owned, output_vc);
  update_room(router, number, output_vc / kVcsMax, given.used);
  const unsigned wanted =
      std::exchange(router.in[number].way, static_cast<std::uint8_t>(output_vc));
  const std::uint64_t others = router.contenders[wanted] & ~(std::uint64_t{1} << number);
  router.contenders[wanted] = others;
  router.wanted &= ~(std::uint64_t{others == 0} << wanted);
  clear_bit(router.flexible, number);
  set_bit(router.input.allocated, number);
  active_routers_.insert(router.node);
  return true;
}

// Packets that wait for a VC not yet released are examined again at its release.
void FlitNetwork::release_when_free(const Router& router, Wire output_vc) {
  const Cycle ahead = router.free_at[output_vc.number()] - now_;
  slot_in(static_cast<int>(ahead)).releases.push_back(output_vc);
}

// Room at the other end is kept as sets of input VCs, so that VCs that could not send are not
// examined. Input VC `number` owns an output VC, of which `used` flits are at the other end; the
// pool of the output may have changed, too.
void FlitNetwork::update_room(Router& router, unsigned number, unsigned output,
                              unsigned used) const {
  // All ones if it is so; neither a branch nor a shift, of which there are enough here.
  const auto is_below = [](std::int64_t one, std::int64_t other) {
    return static_cast<std::uint64_t>((one - other) >> 63);
  };
  const std::int64_t max = pool_flits_per_vc_max_;
  const std::uint64_t self = std::uint64_t{1} << number;
  const std::uint64_t full = self & is_below(max, used);
  const std::uint64_t pooled = (router.pooled[output] & ~self) | (self & is_below(used - 1, max));
  const std::uint64_t without = without_pool_[router.pool_used[output]];
  router.pooled[output] = pooled;
  router.blocked = (router.blocked & ~(self | pooled)) | (pooled & without) | full;
}

// A credit frees a slot: the VC's own slot if the VC has no flits there any more, otherwise a slot
// of the pool.
void FlitNetwork::credit_arrives(Wire place) {
  Router& router = router_of(place);
  OutputVc& vc = router.out[place.number()];
  const unsigned output = place.number() / kVcsMax;
  const unsigned used = --vc.used;
  router.pool_used[output] =
      static_cast<std::uint8_t>(router.pool_used[output] - (used != 0 ? 1 : 0));
  update_room(router, vc.holder, output, used);
  active_routers_.insert_if(router.node, router.ready() != 0 ? 1 : 0);
}

// Input port that wins an output, by the port whose turn it is and the set of ports that want it.
constexpr std::uint8_t kFirstInput[3][8] = {
    {0, 0, 1, 0, 2, 0, 1, 0}, {0, 0, 1, 1, 2, 2, 1, 1}, {0, 0, 1, 0, 2, 2, 2, 2}};

// Chooses the flits that leave a router; move_chosen sends them. False when no VC can send in the
// next cycle unless a flit or a credit arrives, or one that is sent leaves others behind it.
bool FlitNetwork::choose_flits(int node) {
  const Router& router = routers_[index(node)];
  const std::uint64_t candidates = router.ready();
  if (candidates == 0) return false;
  if ((candidates & router.multicast) != 0) return choose_among_multicasts(node, candidates);
  if ((candidates & (candidates - 1)) != 0) return choose_one_per_port(node, candidates);
  moves_.add(Wire(node, static_cast<unsigned>(std::countr_zero(candidates))));
  return false;
}

// VC before port: each input port commits to one VC, then each output port picks an input port.
// Without branches, which would be unpredictable: a port without a candidate chooses a VC that
// nobody asks for.
bool FlitNetwork::choose_one_per_port(int node, std::uint64_t candidates) {
  const Router& router = routers_[index(node)];
  std::array<unsigned, kPorts> chosen;
  unsigned wishes = 0;  // kPorts bits per output: the input ports that want it
  for (unsigned input = 0; input < kPorts; ++input) {
    const unsigned of_port = static_cast<unsigned>(candidates >> input * kVcsMax & 0xffff);
    const unsigned turn = router.input_turn[input];
    const unsigned first =
        static_cast<unsigned>(std::countr_zero(in_turn(of_port, turn) | 1u << 16));
    const unsigned number = input * kVcsMax + ((first + turn) & (kVcsMax - 1));
    chosen[input] = number;
    wishes |= unsigned{of_port != 0} << (router.in[number].way / kVcsMax * kPorts + input);
  }
  for (unsigned output = 0; output < kPorts; ++output) {
    const unsigned wanting = wishes >> output * kPorts & ((1u << kPorts) - 1);
    const unsigned number = chosen[kFirstInput[router.output_turn[output]][wanting]];
    moves_.add_if(Wire(node, number), wanting != 0);
  }
  return true;
}

// Outputs that the front flit of a ready VC could take in this cycle, one bit per port.
unsigned FlitNetwork::possible_outputs(const Router& router, unsigned number) const {
  if ((router.multicast >> number & 1) == 0) return 1u << router.in[number].way / kVcsMax;
  const Copies& copies = router.copies[number];
  unsigned possible = 0;
  for (unsigned outputs = copies.outputs; outputs != 0; outputs &= outputs - 1) {
    const unsigned output = static_cast<unsigned>(std::countr_zero(outputs));
    const unsigned vc = output * kVcsMax + copies.output_vc[output];
    if (has_room(router.out[vc].used, router.pool_used[output], vc)) possible |= 1u << output;
  }
  return possible;
}

// The same where a VC may ask for several outputs.
bool FlitNetwork::choose_among_multicasts(int node, std::uint64_t candidates) {
  const Router& router = routers_[index(node)];
  std::array<unsigned, kPorts> chosen;
  unsigned wishes = 0;
  bool is_any = false;
  for (unsigned input = 0; input < kPorts; ++input) {
    const unsigned of_port = static_cast<unsigned>(candidates >> input * kVcsMax & 0xffff);
    const unsigned turn = router.input_turn[input];
    for (unsigned rest = in_turn(of_port, turn); rest != 0; rest &= rest - 1) {
      const unsigned vc = (static_cast<unsigned>(std::countr_zero(rest)) + turn) & 15u;
      const unsigned number = input * kVcsMax + vc;
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
  for (unsigned output = 0; wishes != 0; ++output, wishes >>= kPorts) {
    const unsigned wanting = wishes & ((1u << kPorts) - 1);
    if (wanting == 0) continue;
    const Wire place(node, chosen[kFirstInput[router.output_turn[output]][wanting]]);
    if ((router.multicast >> place.number() & 1) != 0) {
      send_copy(place, output);
    } else {
      moves_.add(place);
    }
  }
  return is_any;
}

void FlitNetwork::move_chosen() {
  for (const Wire place : moves_.all()) send_flit(place);
  moves_.clear();
}

// Sends a unicast's front flit.
void FlitNetwork::send_flit(Wire place) {
  Router& router = router_of(place);
  const unsigned number = place.number();
  const InputVc& vc = router.in[number];
  put_on_link(router, number, vc.way, vc.packet, (router.header >> number & 1) != 0);
  clear_bit(router.header, number);
  free_slot(router, number);
  if (vc.flits_left == 0) {
    release_vc(router, number, place.with_number(vc.way));
    end_packet(router, place);
  }
  active_routers_.insert_if(router.node, router.ready() != 0 ? 1 : 0);
}

// Sends a flit of input VC `number`.
void FlitNetwork::put_on_link(Router& router, unsigned number, unsigned output_vc, PacketId packet,
                              bool is_header) {
  const unsigned output = output_vc / kVcsMax;
  Links& links = router.links[output];
  OutputVc& vc = router.out[output_vc];
  ++links.flits;
  arrivals_[output]->add({links.target.with_vc(output_vc % kVcsMax), packet}, is_header);
  router.pool_used[output] =
      static_cast<std::uint8_t>(router.pool_used[output] + (vc.used != 0 ? 1 : 0));
  update_room(router, vc.holder, output, ++vc.used);
  take_turns(router, number, output);
}

void FlitNetwork::take_turns(Router& router, unsigned number, unsigned output) {
  const unsigned input = number / kVcsMax;
  router.input_turn[input] = static_cast<std::uint8_t>((number + 1) & (kVcsMax - 1));
  router.output_turn[output] = static_cast<std::uint8_t>(input == kPorts - 1 ? 0 : input + 1);
}

// Frees the slot of the front flit, and returns its credit to the sender.
void FlitNetwork::free_slot(Router& router, unsigned number) {
  InputVc& vc = router.in[number];
  --vc.flits_left;
  --vc.flits;
  router.input.occupied &= ~(std::uint64_t{vc.flits == 0} << number);
  const unsigned input = number / kVcsMax;
  credits_[input]->add(router.links[input].upstream.with_vc(number % kVcsMax));
}

// Packets that were behind those that have left reach the front.
void FlitNetwork::begin_followers() {
  for (const Wire place : followed_.all()) {
    fronts_.add({place, next_follower(router_of(place), place.number())});
  }
  followed_.clear();
  begin_packets();
}

// The packet in front has left; the next one, if there is one, is about to be the front.
void FlitNetwork::end_packet(Router& router, Wire place) {
  const std::uint64_t left = std::uint64_t{1} << place.number();
  const std::uint64_t followed = router.input.followed & left;
  router.input.allocated &= ~left;
  router.input.begun &= ~left | followed;
  followed_.add_if(place, followed != 0);
}

// Sends a multicast's front flit through one of the outputs that need it.
void FlitNetwork::send_copy(Wire place, unsigned output) {
  Router& router = router_of(place);
  const unsigned number = place.number();
  const InputVc& vc = router.in[number];
  Copies& copies = router.copies[number];
  const unsigned output_vc = output * kVcsMax + copies.output_vc[output];
  const bool is_header = (router.header >> number & 1) != 0;
  const bool is_last = vc.flits_left == 1;
  put_on_link(router, number, output_vc, is_header ? branch_off(vc.packet, output) : vc.packet,
              is_header);
  if (is_last && !headers_[vc.packet].keeps_path) {
    release_vc(router, number, place.with_number(output_vc));
  }
  clear_bit(copies.outputs, output);
  if (copies.outputs != 0) return;

  copies.outputs = copies.all_outputs;
  clear_bit(router.header, number);
  free_slot(router, number);
  if (!is_last) return;
  free_packets_.push_back(vc.packet);
  clear_bit(router.multicast, number);
  end_packet(router, place);
}

// Creates the packet for the copy of a multicast that continues through one output.
PacketId FlitNetwork::branch_off(PacketId id, unsigned output) {
  Packet copy = packets_[id];
  if (output != kNiu) {
    copy.branch = trees_[index(copy.tree)].branches[index(copy.branch)].child[output];
  }
  return add_packet(copy);
}

// A packet's last flit leaves: its output VC becomes free vc_release_cycles later.
void FlitNetwork::release_vc(Router& router, unsigned number, Wire output_vc) {
  OutputVc& left = router.out[output_vc.number()];
  left.last_owner = static_cast<std::uint8_t>(number);  // not yet set for a multicast
  left.holder = kNobody;
  clear_bit(router.pooled[output_vc.number() / kVcsMax], number);
  clear_bit(router.blocked, number);
  router.free_at[output_vc.number()] = now_ + figures_.vc_release_cycles;
  set_bit(router.draining, output_vc.number());
  if (is_awaited(router, output_vc.number())) release_when_free(router, output_vc);
}

}  // namespace towpath::noc
