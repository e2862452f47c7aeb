// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "towpath/noc/niu/endpoint.hpp"
#include "towpath/noc/niu/niu_rates.hpp"
#include "towpath/noc/niu/path_reservation.hpp"
#include "towpath/noc/niu/timers.hpp"

namespace towpath::noc {

// The sending half of all NIUs: lanes of queued packets, and the link to the router. In each cycle
// a NIU puts at most one flit on that link.
class Injector {
 public:
  Injector(const machine::Chip& chip, NetworkState& state, const BufferPool& pool,
           PathReservation& reservation, Endpoint& endpoint);

  // See Network.
  void send(const Packet& packet);
  void send_multicast(const Packet& packet, const std::vector<int>& destinations);
  void watch_counted_flits(int flits) { watched_flits_ = flits; }
  int counted_flits(int node) const { return sources_[index(node)].counted_flits; }
  std::int64_t link_flits(int node) const { return sources_[index(node)].link.flits; }
  // Packets sent, a multicast once per destination.
  std::int64_t sent() const { return sent_; }

  void credits_arrive(std::span<const VcRef> credits);
  // The path of a multicast has been reserved.
  void path_granted(std::int32_t tree);
  void step();
  Cycle next_work() const { return active_.empty() ? wakeups_.next() : now_; }

 private:
  // Sending end of a NIU's link to its router.
  struct Link {
    std::array<std::uint8_t, kVcsMax> used{};  // as in OutputVc
    std::uint8_t pool_used = 0;
    VcRef target;
    std::int64_t flits = 0;
  };
  struct Lane {
    PacketId packet = kNoPacket;  // in front
    PacketId next = kNoPacket;    // linked list of packets behind it
    PacketId last = kNoPacket;
    int flits_sent = 0;  // flits of the front packet
    int vc = 0;
  };
  struct Source {
    Link link;
    std::uint16_t owned = 0;   // VCs that a packet owns
    std::uint8_t sending = 0;  // lanes whose front packet has its VC
    std::uint8_t waiting = 0;  // lanes whose front packet waits for one
    std::uint8_t priority = 0;
    int counted_flits = 0;
    Pace pace;
    std::array<Lane, kLanes> lane;
    // By buddy: the tree whose linked multicast has left and keeps the VC for the next, or -1.
    std::array<std::int32_t, 2> linked_tree{-1, -1};
  };

  void queue(PacketId id);
  int best_vc(const Source& source, const Packet& packet) const;
  bool take_vc(Source& source, int lane);
  Cycle next_flit_at(const Lane& lane) const;
  bool is_granted(const Packet& packet);
  bool step(int node);
  void send_flit(Source& source, int lane);
  void finish_sending(Source& source, int lane);

  const Cycle& now_;
  const Routing& routing_;
  PacketTable& packets_;
  MulticastTrees& trees_;
  LinkPipeline& links_;
  const BufferPool& pool_;
  PathReservation& reservation_;
  Endpoint& endpoint_;
  NiuRates rates_;
  std::vector<Source> sources_;
  std::vector<int> orders_;  // by packet: a multicast's among the packets of its tree
  NodeSet active_;
  Timers<int> wakeups_;  // nodes
  int watched_flits_ = 0;
  std::int64_t sent_ = 0;
};

}  // namespace towpath::noc
