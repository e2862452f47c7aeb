// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/network.hpp"

#include <bit>
#include <utility>

#include "towpath/noc/bits.hpp"
#include "towpath/sim/invariant.hpp"

namespace towpath::noc {

namespace {

std::size_t wheel_size(const machine::RouterFigures& figures) {
  const int longest =
      std::max({figures.hop_cycles, figures.niu_to_router_cycles, figures.router_to_niu_cycles,
                figures.credit_return_cycles, figures.vc_release_cycles});
  return std::bit_ceil(static_cast<std::size_t>(longest) + 1);
}

}  // namespace

template <typename Visit>
void Network::NodeSet::filter(Visit visit) {
  for (std::size_t word = 0; word < words_.size(); ++word) {
    for (std::uint64_t rest = words_[word]; rest != 0; rest &= rest - 1) {
      const int lowest = std::countr_zero(rest);
      if (!visit(static_cast<int>(word * 64) + lowest)) {
        words_[word] &= ~(std::uint64_t{1} << lowest);
      }
    }
  }
}

Network::Network(const machine::Chip& chip, int noc, Endpoint& endpoint, std::uint64_t seed)
    : torus_(chip.width, chip.height, noc),
      endpoint_(endpoint),
      figures_(chip.router),
      backoff_min_(chip.niu.backoff_cycles_min),
      backoff_max_(chip.niu.backoff_cycles_max),
      classes_(chip.router.classes),
      pool_limit_(chip.router.pool_flits - chip.router.pool_flits_reserved),
      port_interval_(flit_interval(chip.router.flit_bytes, chip.niu.port_rate)),
      routers_(index(torus_.nodes())),
      sources_(index(torus_.nodes())),
      sinks_(index(torus_.nodes())),
      wheel_(wheel_size(chip.router)),
      wheel_mask_(wheel_.size() - 1),
      active_routers_(torus_.nodes()),
      active_sources_(torus_.nodes()),
      active_sinks_(torus_.nodes()),
      kept_tree_(index(torus_.nodes()) * 2, -1),
      path_sources_(index(torus_.nodes()) * kPorts * kVcsMax, -1),
      random_(seed, noc == 0 ? "noc 0" : "noc 1") {
  for (int vc = 0; vc < kVcsMax; ++vc) {
    if ((vc >> 1) % classes_ >= static_cast<int>(PacketClass::broadcast))
      set_bit(interleaved_vcs_, vc);
  }
  for (Slot& slot : wheel_) {
    slot.to_routers.items.resize(index(torus_.nodes()) * kPorts);
    slot.to_sinks.items.resize(index(torus_.nodes()));
    slot.router_credits.items.resize(index(torus_.nodes()) * kPorts);
    slot.source_credits.items.resize(index(torus_.nodes()));
  }
  for (int node = 0; node < torus_.nodes(); ++node) {
    Router& router = routers_[index(node)];
    router.x = static_cast<std::int16_t>(torus_.x_of(node));
    router.y = static_cast<std::int16_t>(torus_.y_of(node));
    routers_[index(torus_.right_of(node))].upstream[kX] = code(node, kX);
    routers_[index(torus_.below(node))].upstream[kY] = code(node, kY);
    router.upstream[kNiu] = code(node, kFromNiu);
    const auto join = [](OutputLink& link, std::uint32_t target, int delay) {
      link.target = target;
      link.delay = static_cast<std::uint8_t>(delay);
    };
    join(router.output[kX], code(torus_.right_of(node), kX), figures_.hop_cycles);
    join(router.output[kY], code(torus_.below(node), kY), figures_.hop_cycles);
    join(router.output[kNiu], code(node, kFromNiu), figures_.router_to_niu_cycles);
    join(sources_[index(node)].link, code(node, kNiu), figures_.niu_to_router_cycles);
  }
}

std::int64_t Network::link_flits(int node, int port) const {
  return port == kFromNiu ? sources_[index(node)].link.flits
                          : routers_[index(node)].output[index(port)].flits;
}

void Network::pace_by_endpoint(int node) { sinks_[index(node)].by_endpoint = true; }

// --- sending ------------------------------------------------------------------------------------

PacketId Network::add_packet(const Packet& packet) {
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

void Network::step() {
  receive_slot(slot_in(0));
  if (!events_.empty() && events_.top().at <= now_) run_events();
  active_sinks_.filter([this](int node) { return step_sink(node); });
  active_sources_.filter([this](int node) { return step_source(node); });
  active_routers_.filter([this](int node) {
    Router& router = routers_[index(node)];
    if (router.undecided != 0) allocate(router);
    const bool may_move = move_flits(router);
    return may_move || router.undecided != 0;
  });
  ++now_;
}

void Network::receive_slot(Slot& slot) {
  for (std::size_t i = 0; i < slot.to_routers.size; ++i) {
    const Arrival& arrival = slot.to_routers.items[i];
    const int node = static_cast<int>(arrival.to >> 6);
    Router& router = routers_[index(node)];
    arrive(router, arrival);
    active_routers_.insert(node);
  }
  for (std::size_t i = 0; i < slot.to_sinks.size; ++i) {
    const Arrival& arrival = slot.to_sinks.items[i];
    const int node = static_cast<int>(arrival.to >> 6);
    arrive(sinks_[index(node)], arrival);
    active_sinks_.insert(node);
  }
  for (std::size_t i = 0; i < slot.router_credits.size; ++i) {
    const std::uint32_t credit = slot.router_credits.items[i];
    const int node = static_cast<int>(credit >> 6);
    Router& router = routers_[index(node)];
    const int output = static_cast<int>(credit >> 4 & 3);
    return_credit(router.output[index(output)], static_cast<int>(credit & 15));
    if (router.blocked == 0 && router.multicast == 0) continue;
    if (unblock(router, output, static_cast<int>(credit & 15))) active_routers_.insert(node);
  }
  for (std::size_t i = 0; i < slot.source_credits.size; ++i) {
    const std::uint32_t credit = slot.source_credits.items[i];
    const int node = static_cast<int>(credit >> 6);
    return_credit(sources_[index(node)].link, static_cast<int>(credit & 15));
    active_sources_.insert(node);
  }
  for (const std::uint32_t release : slot.releases) {
    const int node = static_cast<int>(release >> 6);
    set_bit(routers_[index(node)].undecided, static_cast<int>(release & 63));
    active_routers_.insert(node);
  }
  slot.releases.clear();
  slot.to_routers.size = slot.to_sinks.size = 0;
  slot.router_credits.size = slot.source_credits.size = 0;
}

Cycle Network::next_work() const {
  if (!active_routers_.empty() || !active_sources_.empty() || !active_sinks_.empty()) return now_;
  const Cycle next = events_.empty() ? kNever : events_.top().at;
  for (std::size_t ahead = 0; ahead < wheel_.size(); ++ahead) {
    if (!wheel_[(static_cast<std::size_t>(now_) + ahead) & wheel_mask_].is_empty()) {
      return std::min(next, now_ + static_cast<Cycle>(ahead));
    }
  }
  return next;
}

void Network::skip_to(Cycle cycle) {
  TOWPATH_CHECK(cycle >= now_ && cycle <= next_work(),
                "cycles {} to {} may not be skipped; there is work in cycle {}", now_, cycle,
                next_work());
  now_ = cycle;
}

void Network::schedule(Cycle at, EventKind kind, int node, int detail) {
  events_.push({at, sequence_++, kind, node, detail});
}

void Network::run_events() {
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
      case EventKind::probe: probe(event.node, event.detail); break;
      case EventKind::granted: finish_reservation(event.node); break;
      case EventKind::retry: start_reservation(event.node); break;
    }
  }
}

// A packet comes to the front of a router's buffer: where does it go on, and on which VC?
void Network::begin_packet(Router& router, int number, PacketId id) {
  InputVc& vc = router.input.vc[index(number)];
  const Header& header = headers_[id];
  vc.packet = id;
  vc.flits_left = header.flits;
  vc.header_in_front = true;
  vc.is_multicast = header.is_multicast;
  if (header.is_multicast) {
    const Packet& packet = packets_[id];
    const MulticastTree::Branch& branch = trees_[index(packet.tree)].branches[index(packet.branch)];
    vc.outputs = vc.all_outputs = branch.outputs;
    vc.output_vc = branch.output_vc;
    set_bit(router.input.allocated, number);
    set_bit(router.multicast, number);
    return;
  }
  const int output = header.destination_x != router.x   ? kX
                     : header.destination_y != router.y ? kY
                                                        : kNiu;
  const int input_vc = number % kVcsMax;
  const int dateline = next_dateline(router, number / kVcsMax, input_vc, output);
  const int wanted =
      output * kVcsMax + vc_of(dateline, (input_vc >> 1) % classes_, input_vc & 1);
  vc.wanted = static_cast<std::uint8_t>(wanted);
  set_bit(header.keeps_buddy ? router.insistent : router.flexible, number);
  set_bit(router.output_vc[index(wanted)].contenders, number);
  set_bit(router.wanted, wanted);
  set_bit(router.undecided, wanted);
}

void Network::begin_packet(Sink& sink, int number, PacketId id) {
  InputVc& vc = sink.input.vc[index(number)];
  vc.packet = id;
  vc.flits_left = headers_[id].flits;
}

template <typename End>
void Network::arrive(End& end, const Arrival& arrival) {
  const int number = static_cast<int>(arrival.to & (end.input.turn.size() == 1 ? 15 : 63));
  InputVc& vc = end.input.vc[index(number)];
  ++vc.flits;
  set_bit(end.input.occupied, number);
  if (arrival.packet == kNoPacket) return;
  if (vc.packet == kNoPacket) {
    begin_packet(end, number, arrival.packet);
    return;
  }
  PacketQueue& behind = end.input.behind[index(number)];
  (behind.first == kNoPacket ? behind.first : next_packet_[behind.last]) = arrival.packet;
  behind.last = arrival.packet;
}

// The packet in front has left; the one behind it comes forward.
template <typename End>
void Network::end_packet(End& end, int number) {
  InputVc& vc = end.input.vc[index(number)];
  clear_bit(end.input.allocated, number);
  vc.packet = kNoPacket;
  vc.outputs = 0;
  PacketQueue& behind = end.input.behind[index(number)];
  if (behind.first == kNoPacket) return;
  const PacketId next = behind.first;
  behind.first = next == behind.last ? kNoPacket : next_packet_[next];
  begin_packet(end, number, next);
}

// --- NIUs ---------------------------------------------------------------------------------------

void Network::hold(int node, int vc, Cycle until) {
  Sink& sink = sinks_[index(node)];
  set_bit(sink.held, vc);
  sink.held_until[index(vc)] = std::max(sink.held_until[index(vc)], until);
  schedule(until, EventKind::release, node, vc);
}

// The VCs whose next flit may be taken.
unsigned Network::takeable(const Sink& sink) const {
  const unsigned waiting = static_cast<unsigned>(sink.input.occupied) & ~sink.held;
  if (sink.current_vc < 0) return waiting;
  return waiting & (unsigned{interleaved_vcs_} | 1u << sink.current_vc);
}

bool Network::step_sink(int node) {
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
      (static_cast<unsigned>(std::countr_zero(in_turn(waiting, turn))) + turn) & 15u);
  take_flit(node, vc);
  return true;
}

void Network::take_flit(int node, int number) {
  Sink& sink = sinks_[index(node)];
  InputVc& vc = sink.input.vc[index(number)];
  const PacketId id = vc.packet;
  const bool is_last = --vc.flits_left == 0;
  if (--vc.flits == 0) clear_bit(sink.input.occupied, number);
  slot_in(figures_.credit_return_cycles)
      .router_credits.add(code(node, kNiu) | static_cast<std::uint32_t>(number));
  sink.input.turn[0] = static_cast<std::uint8_t>((number + 1) & 15);
  if (sink.by_endpoint) {
    sink.ready_at = endpoint_.flit_received(packets_[id], node, now_);
  } else {
    sink.pace.take(now_, port_interval_);
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

int Network::next_dateline(const Router& router, int input, int vc, int output) const {
  if (!figures_.has_dateline) return 0;
  if (output == kNiu) return dateline_of(vc);
  const bool is_last =
      output == kX ? router.x + 1 == torus_.width() : router.y + 1 == torus_.height();
  return is_last || (input == output && dateline_of(vc) == 1) ? 1 : 0;
}

// Whether nobody has the output VC; nobody does once it is drained.
bool Network::is_free(Router& router, int output_vc) const {
  if ((router.owned >> output_vc & 1) == 0) return true;
  if ((router.draining >> output_vc & 1) == 0) return false;
  if (router.output_vc[index(output_vc)].free_at > now_) return false;
  clear_bit(router.owned, output_vc);
  clear_bit(router.draining, output_vc);
  return true;
}

// Gives output VCs to the packets that wait for one: first to each the VC of its own buddy bit,
// then to those that may change it the other one.
void Network::allocate(Router& router) {
  std::uint64_t rest = router.undecided & router.wanted;
  router.undecided = 0;
  for (; rest != 0; rest &= rest - 1) {
    const int output_vc = std::countr_zero(rest);
    give_vc(router, router.output_vc[index(output_vc)].contenders, output_vc);
  }
  if (router.flexible == 0) return;
  for (rest = router.wanted; rest != 0; rest &= rest - 1) {
    const int wanted = std::countr_zero(rest);
    const std::uint64_t left = router.output_vc[index(wanted)].contenders & router.flexible;
    // Who contended with the one that got a VC may be alone with the one it wants now.
    if (left != 0 && give_vc(router, left, wanted ^ 1)) set_bit(router.undecided, wanted);
  }
}

// To one of the contenders, in turn, if the VC is free. Until it is released, a VC may only go on
// to the next packet of the same buffer, and only when nobody else waits for it.
bool Network::give_vc(Router& router, std::uint64_t contenders, int output_vc) {
  OutputVc& given = router.output_vc[index(output_vc)];
  const std::uint64_t from_turn = contenders >> given.turn << given.turn;
  int number = std::countr_zero(from_turn != 0 ? from_turn : contenders);
  if (!is_free(router, output_vc)) {
    if ((router.draining >> output_vc & 1) == 0) return false;
    if (contenders != std::uint64_t{1} << given.owner) {
      release_when_free(router, output_vc);
      return false;
    }
    number = given.owner;
    clear_bit(router.draining, output_vc);
  }
  given.turn = static_cast<std::uint8_t>((number + 1) % (kPorts * kVcsMax));
  given.owner = static_cast<std::uint8_t>(number);
  set_bit(router.owned, output_vc);
  const int output = output_vc / kVcsMax;
  InputVc& vc = router.input.vc[index(number)];
  vc.outputs = vc.all_outputs = static_cast<std::uint8_t>(1u << output);
  vc.output_vc[index(output)] = static_cast<std::uint8_t>(output_vc % kVcsMax);
  OutputVc& wanted = router.output_vc[vc.wanted];
  clear_bit(wanted.contenders, number);
  if (wanted.contenders == 0) clear_bit(router.wanted, int{vc.wanted});
  clear_bit(router.insistent, number);
  clear_bit(router.flexible, number);
  set_bit(router.input.allocated, number);
  return true;
}

// The packets that wait for a VC which is not released are looked at again when it is.
void Network::release_when_free(Router& router, int output_vc) {
  const Cycle ahead = router.output_vc[index(output_vc)].free_at - now_;
  slot_in(static_cast<int>(ahead))
      .releases.push_back(code(torus_.node_at(router.x, router.y), 0) |
                          static_cast<std::uint32_t>(output_vc));
}

// A credit has come: the VC's owner may have room now, and so may all if the pool was full.
bool Network::unblock(Router& router, int output, int vc) const {
  const std::uint64_t before = router.blocked;
  unsigned owned = bit16(vc);
  if (router.output[index(output)].pool_used + 1 == pool_limit_) {
    owned = static_cast<unsigned>(router.owned >> output * kVcsMax & 0xffff);
  }
  for (; owned != 0; owned &= owned - 1) {
    const int number = output * kVcsMax + std::countr_zero(owned);
    clear_bit(router.blocked, int{router.output_vc[index(number)].owner});
  }
  return router.blocked != before || router.multicast != 0;
}

// False when no VC can send in the next cycle, unless a flit or a credit arrives.
bool Network::move_flits(Router& router) {
  const std::uint64_t candidates =
      router.input.occupied & router.input.allocated & ~router.blocked;
  if (candidates == 0) return false;
  if ((candidates & (candidates - 1)) != 0) return move_one_of_many(router, candidates);
  const int number = std::countr_zero(candidates);
  const InputVc& vc = router.input.vc[index(number)];
  const std::uint64_t port = std::uint64_t{0xffff} << (number & ~(kVcsMax - 1));
  if (vc.is_multicast || (router.insistent & port) != 0) {
    return move_one_of_many(router, candidates);
  }
  const int output = std::countr_zero(unsigned{vc.outputs});
  const unsigned sendable = router.output[index(output)].sendable(pool_limit_);
  if ((sendable >> vc.output_vc[index(output)] & 1) == 0) {
    set_bit(router.blocked, number);
    return false;
  }
  send_flit(router, number, output);
  return (router.input.occupied & router.input.allocated) != 0;
}

// Whether a static VC of the port that waits for its output VC is in turn before those in the mask
// `before`, which counts from the port's turn; then the turn goes on behind it.
bool Network::is_turn_of_waiting(Router& router, unsigned input, unsigned before) {
  if (router.insistent == 0 || now_ < router.retry_at[input]) return false;
  const std::uint64_t all = router.insistent & router.input.occupied;
  const unsigned turn = router.input.turn[input];
  const unsigned waiting =
      in_turn(static_cast<unsigned>(all >> input * kVcsMax & 0xffff), turn) & before;
  if (waiting == 0) return false;
  const unsigned first = static_cast<unsigned>(std::countr_zero(waiting)) + turn;
  router.input.turn[input] = static_cast<std::uint8_t>((first + 1) & 15u);
  router.retry_at[input] = now_ + figures_.vc_retry_cycles;
  return true;
}

// VC before port: each input port commits to one VC, then each output port picks an input port. A
// VC whose packet waits for its output VC takes its turn like any other, and the port idles then.
bool Network::move_one_of_many(Router& router, std::uint64_t candidates) {
  std::array<unsigned, kPorts> sendable;
  for (unsigned output = 0; output < kPorts; ++output) {
    sendable[output] = router.output[output].sendable(pool_limit_);
  }
  std::array<int, kPorts> chosen;
  std::array<unsigned, kPorts> wishes{};  // per output, the input ports that want it
  bool is_any = false;
  for (unsigned input = 0; input < kPorts; ++input) {
    const unsigned turn = router.input.turn[input];
    unsigned rest = in_turn(static_cast<unsigned>(candidates >> input * kVcsMax & 0xffff), turn);
    for (unsigned possible = 0; rest != 0 && possible == 0; rest &= rest - 1) {
      const unsigned vc_number = (static_cast<unsigned>(std::countr_zero(rest)) + turn) & 15u;
      const InputVc& vc = router.input.vc[input * kVcsMax + vc_number];
      for (unsigned outputs = vc.outputs; outputs != 0; outputs &= outputs - 1) {
        const unsigned output = static_cast<unsigned>(std::countr_zero(outputs));
        possible |= (sendable[output] >> vc.output_vc[output] & 1) << output;
      }
      if (possible != 0) {
        if (is_turn_of_waiting(router, input, (rest & -rest) - 1)) {
          is_any = true;
          break;
        }
        chosen[input] = static_cast<int>(input * kVcsMax + vc_number);
        for (unsigned output = 0; output < kPorts; ++output) {
          wishes[output] |= (possible >> output & 1) << input;
        }
      } else if (!vc.is_multicast) {
        set_bit(router.blocked, static_cast<int>(input * kVcsMax + vc_number));
      }
    }
  }
  for (int output = 0; output < kPorts; ++output) {
    const unsigned wanting = wishes[index(output)];
    if (wanting == 0) continue;
    is_any = true;
    const unsigned turn = router.output[index(output)].turn;
    const unsigned turned = (wanting | wanting << kPorts) >> turn;
    const unsigned input = (static_cast<unsigned>(std::countr_zero(turned)) + turn) % kPorts;
    send_flit(router, chosen[input], output);
  }
  return is_any;
}

// The copy of a multicast that goes on through one output has a packet of its own.
PacketId Network::branch_off(PacketId id, int output) {
  Packet copy = packets_[id];
  if (output != kNiu) {
    copy.branch = trees_[index(copy.tree)].branches[index(copy.branch)].child[index(output)];
  }
  return add_packet(copy);
}

void Network::send_flit(Router& router, int number, int output) {
  InputVc& vc = router.input.vc[index(number)];
  OutputLink& link = router.output[index(output)];
  const int input = number / kVcsMax;
  const int input_vc = number % kVcsMax;
  const int output_vc = vc.output_vc[index(output)];
  const bool is_last = vc.flits_left == 1;
  const PacketId header = !vc.header_in_front ? kNoPacket
                          : vc.is_multicast   ? branch_off(vc.packet, output)
                                              : vc.packet;
  use_slot(link, output_vc);
  ++flit_hops_;
  Slot& slot = slot_in(link.delay);
  const Arrival arrival{link.target | static_cast<std::uint32_t>(output_vc), header};
  (output == kNiu ? slot.to_sinks : slot.to_routers).add(arrival);
  router.input.turn[index(input)] = static_cast<std::uint8_t>((input_vc + 1) & 15);
  link.turn = static_cast<std::uint8_t>(input == kPorts - 1 ? 0 : input + 1);
  if (is_last && !headers_[vc.packet].keeps_path) {
    let_go(router, number, output * kVcsMax + output_vc);
  }
  vc.outputs = static_cast<std::uint8_t>(vc.outputs & ~(1u << output));
  if (vc.outputs != 0) return;

  vc.outputs = vc.all_outputs;
  vc.header_in_front = false;
  --vc.flits_left;
  if (--vc.flits == 0) clear_bit(router.input.occupied, number);
  Slot& back = slot_in(figures_.credit_return_cycles);
  (input == kNiu ? back.source_credits : back.router_credits)
      .add(router.upstream[index(input)] | static_cast<std::uint32_t>(input_vc));
  if (is_last) {
    if (vc.is_multicast) {
      free_packets_.push_back(vc.packet);
      clear_bit(router.multicast, number);
    }
    end_packet(router, number);
  }
}

// A packet's last flit leaves: its output VC is free for all vc_release_cycles later.
void Network::let_go(Router& router, int number, int output_vc) {
  OutputVc& left = router.output_vc[index(output_vc)];
  left.owner = static_cast<std::uint8_t>(number);  // of a multicast not yet so
  left.free_at = now_ + figures_.vc_release_cycles;
  set_bit(router.draining, output_vc);
  // Those that wait for it, or, if they can do with it, for the one of the other buddy bit.
  const bool is_awaited = (router.wanted >> output_vc & 1) != 0 ||
                          ((router.wanted >> (output_vc ^ 1) & 1) != 0 && router.flexible != 0);
  if (is_awaited) release_when_free(router, output_vc);
}

}  // namespace towpath::noc
