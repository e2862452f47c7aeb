// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/ejector.hpp"

#include <algorithm>
#include <bit>

#include "towpath/noc/router/vc_buffers.hpp"

namespace towpath::noc {

Ejector::Ejector(const machine::Chip& chip, NetworkState& state, Endpoint& endpoint)
    : now_(state.now),
      packets_(state.packets),
      trees_(state.trees),
      links_(state.links),
      endpoint_(endpoint),
      port_interval_(NiuRates(chip).port_interval),
      interleaved_vcs_(state.routing.interleaved_vcs()),
      sinks_(index(state.routers.count())),
      active_(state.routers.count()) {}

// --- buffers ------------------------------------------------------------------------------------

void Ejector::flits_arrive(LinkPipeline::Arrivals& arrivals) {
  for (const Arrival& arrival : arrivals.headers().all()) {
    header_arrives(sinks_[arrival.to.node()], arrival);
    active_.insert(static_cast<int>(arrival.to.node()));
  }
  for (const Arrival& arrival : arrivals.others().all()) {
    store_flit(sinks_[arrival.to.node()], arrival.to.vc());
    active_.insert(static_cast<int>(arrival.to.node()));
  }
}

void Ejector::header_arrives(Sink& sink, const Arrival& arrival) {
  const unsigned vc = arrival.to.vc();
  store_flit(sink, vc);
  if ((sink.input.begun >> vc & 1) != 0) {
    follow(sink, vc, arrival.packet, packets_);
  } else {
    set_bit(sink.input.begun, vc);
    begin_packet(sink, vc, arrival.packet);
  }
}

void Ejector::begin_packet(Sink& sink, unsigned vc, PacketId id) {
  sink.in[vc].packet = id;
  sink.in[vc].flits_left = packets_.header(id).flits;
}

// The front packet has left. The next one becomes the front.
void Ejector::end_packet(Sink& sink, unsigned vc) {
  if ((sink.input.followed >> vc & 1) == 0) {
    clear_bit(sink.input.begun, vc);
  } else {
    begin_packet(sink, vc, take_follower(sink, vc, packets_));
  }
}

// --- held VCs -----------------------------------------------------------------------------------

void Ejector::hold(int node, int vc, Cycle until) {
  Sink& sink = sinks_[index(node)];
  set_bit(sink.held, vc);
  sink.held_until[index(vc)] = std::max(sink.held_until[index(vc)], until);
  if (until != kNever) timers_.add(until, {node, vc});
}

void Ejector::release(int node, int vc, Cycle at) {
  sinks_[index(node)].held_until[index(vc)] = at;
  timers_.add(at, {node, vc});
}

void Ejector::run_event(const Event& event) {
  Sink& sink = sinks_[index(event.node)];
  if (event.vc >= 0) {
    if (sink.held_until[index(event.vc)] > now_) return;
    clear_bit(sink.held, event.vc);
  }
  active_.insert(event.node);
}

// --- taking flits -------------------------------------------------------------------------------

// VCs from which the next flit may be taken.
unsigned Ejector::takeable(const Sink& sink) const {
  const unsigned waiting = static_cast<unsigned>(sink.input.occupied) & ~sink.held;
  if (sink.current_vc < 0) return waiting;
  return waiting & (unsigned{interleaved_vcs_} | 1u << sink.current_vc);
}

void Ejector::step() {
  timers_.run_until(now_, [this](const Event& event) { run_event(event); });
  active_.filter([this](int node) { return step(node); });
}

bool Ejector::step(int node) {
  Sink& sink = sinks_[index(node)];
  const unsigned waiting = takeable(sink);
  if (waiting == 0) return false;
  if (sink.is_paced_by_endpoint && sink.ready_at > now_) {
    timers_.add(sink.ready_at, {node});
    return false;
  }
  if (!sink.is_paced_by_endpoint && !sink.pace.is_ready(now_)) return true;
  const unsigned priority = sink.priority;
  take_flit(node, (static_cast<unsigned>(std::countr_zero(rotated(waiting, priority))) + priority) &
                      (kVcsMax - 1));
  return true;
}

void Ejector::take_flit(int node, unsigned number) {
  Sink& sink = sinks_[index(node)];
  InputVc& vc = sink.in[number];
  const PacketId id = vc.packet;
  const bool is_last = --vc.flits_left == 0;
  if (--vc.flits == 0) clear_bit(sink.input.occupied, number);
  links_.send_credit_of_niu(VcRef(node, kNiu * kVcsMax + number));
  sink.priority = static_cast<std::uint8_t>((number + 1) & (kVcsMax - 1));
  if (sink.is_paced_by_endpoint) {
    sink.ready_at = endpoint_.flit_received(packets_[id], node, now_);
  } else {
    sink.pace.take(now_, port_interval_);
  }
  if (sink.is_held_up_by_endpoint) {
    const Cycle next = endpoint_.flit_received(packets_[id], node, now_);
    if (next > now_ + 1) hold(node, static_cast<int>(number), next);
  }
  const bool is_interleaved = (interleaved_vcs_ >> number & 1) != 0;
  if (!is_interleaved) sink.current_vc = is_last ? -1 : static_cast<int>(number);
  if (!is_last) return;
  end_packet(sink, number);
  const Packet packet = packets_[id];
  packets_.remove(id);
  ++received_;
  if (packet.tree >= 0) trees_.end_copy(packet.tree);
  endpoint_.packet_received(packet, node, static_cast<int>(number), now_);
}

}  // namespace towpath::noc
