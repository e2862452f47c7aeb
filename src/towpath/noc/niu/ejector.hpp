// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "towpath/noc/niu/endpoint.hpp"
#include "towpath/noc/niu/niu_rates.hpp"
#include "towpath/noc/niu/timers.hpp"
#include "towpath/noc/router/network_state.hpp"

namespace towpath::noc {

// The receiving half of all NIUs. In each cycle a NIU takes at most one flit from its buffers:
// unicast requests one after the other, multicasts and responses in rotation.
class Ejector {
 public:
  Ejector(const machine::Chip& chip, NetworkState& state, Endpoint& endpoint);

  // See Network.
  void hold(int node, int vc, Cycle until);
  void release(int node, int vc, Cycle at);
  void pace_by_endpoint(int node) { sinks_[index(node)].is_paced_by_endpoint = true; }
  void hold_up_by_endpoint(int node) { sinks_[index(node)].is_held_up_by_endpoint = true; }
  // Packets received, a multicast once per destination.
  std::int64_t received() const { return received_; }

  void flits_arrive(LinkPipeline::Arrivals& arrivals);
  void step();
  Cycle next_work() const { return active_.empty() ? timers_.next() : now_; }

 private:
  struct Sink {
    InputSets input;
    std::uint8_t priority = 0;
    std::array<InputVc, kVcsMax> in;
    std::array<Followers, kVcsMax> followers;
    Pace pace;
    std::uint16_t held = 0;
    std::array<Cycle, kVcsMax> held_until{};
    int current_vc = -1;  // VC of the request being taken
    bool is_paced_by_endpoint = false;
    bool is_held_up_by_endpoint = false;
    Cycle ready_at = 0;
  };
  // A NIU wakes up, or releases a VC.
  struct Event {
    int node;
    int vc = -1;
  };

  void header_arrives(Sink& sink, const Arrival& arrival);
  void begin_packet(Sink& sink, unsigned vc, PacketId id);
  void end_packet(Sink& sink, unsigned vc);
  unsigned takeable(const Sink& sink) const;
  void run_event(const Event& event);
  bool step(int node);
  void take_flit(int node, unsigned vc);

  const Cycle& now_;
  PacketTable& packets_;
  MulticastTrees& trees_;
  LinkPipeline& links_;
  Endpoint& endpoint_;
  PaceTime port_interval_;
  std::uint16_t interleaved_vcs_;
  std::vector<Sink> sinks_;
  NodeSet active_;
  Timers<Event> timers_;
  std::int64_t received_ = 0;
};

}  // namespace towpath::noc
