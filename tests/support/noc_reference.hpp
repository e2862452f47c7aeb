// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "towpath/noc/flit_network.hpp"

// The model that network.hpp describes once more, written for reading: every link, VC, router and
// NIU is looked at in every cycle, and every flit and every credit is an object with the cycle from
// which it counts. Slow, and the measure of what Network has to do.

namespace towpath::noc {

class ReferenceNetwork {
 public:
  ReferenceNetwork(const machine::Chip& chip, int noc, Endpoint& endpoint, std::uint64_t seed);

  // As those of Network.
  Cycle now() const { return now_; }
  void send(const Packet& packet);
  void send_multicast(const Packet& packet, const std::vector<int>& destinations);
  void hold(int node, int vc, Cycle until);
  void pace_by_endpoint(int node) { sinks_[node].is_paced_by_endpoint = true; }
  void step();
  std::int64_t packets_in_flight() const { return packets_in_flight_; }
  std::int64_t flit_hops() const { return flit_hops_; }
  std::int64_t link_flits(int node, int port) const { return links_[node][port].flits; }

 private:
  using PerOutput = std::array<int, kPorts>;

  struct Tree;
  struct QueuedPacket {
    Packet packet;
    Tree* tree = nullptr;  // of a multicast
    int order = 0;         // among those of its tree
  };
  struct Flit {
    const QueuedPacket* of = nullptr;
    int index = 0;   // 0: the header
    Cycle from = 0;  // may leave the buffer from this cycle on
    bool is_last() const { return index + 1 == of->packet.flits; }
  };
  // Buffer at the receiving end of a link, and what the sending end knows of it.
  struct VirtualChannel {
    std::deque<Flit> flits;     // in the buffer, or on their way there
    Flit last{};                // that the sender put on the link
    std::deque<Cycle> credits;  // when the sender will know of slots that became free
    int used = 0;               // slots, as far as the sender knows
    bool is_owned = false;      // by a packet, from its header to its last flit
    int turn = 0;               // the input VC, port by port, that is first to get it
    Cycle free_from = 0;        // when it is released after the packet before
    int last_place = -1;        // the input VC that packet came from, port by port
    int last_multicaster = -1;  // whose multicast reserved it last
    // State of the packet in front; -1: that output is not needed, or not given yet.
    bool is_routed = false;
    PerOutput output_vc{-1, -1, -1};
    std::array<bool, kPorts> has_left{};  // outputs that the flit in front needs no more
  };
  struct Link {
    std::vector<VirtualChannel> vcs;
    int delay = 0;
    int receiver_turn = 0;  // the VC that the receiving end looks at first
    int sender_turn = 0;    // the input port that is first at a sending router
    std::int64_t flits = 0;
  };
  struct Router {
    int x = 0;
    int y = 0;
    std::array<Link*, kPorts> input{};
    std::array<Link*, kPorts> output{};
  };
  // At most one flit per interval; a fraction of a cycle that is waited is not lost.
  struct Pacing {
    PaceTime due = 0;
    bool is_ready(Cycle now) const { return due <= now * kPaceCycle; }
    void take(Cycle now, PaceTime interval);
  };
  struct Lane {
    std::deque<QueuedPacket*> packets;
    int vc = -1;         // of the packet in front, once it has one
    int flits_sent = 0;  // of the packet in front
  };
  struct Source {
    std::array<Lane, kLanes> lanes;
    std::vector<bool> is_vc_taken;
    int turn = 0;  // the lane that is first
    Pacing pacing;
    std::array<Tree*, 2> kept{};   // by buddy: the path of the last multicast sent, if linked
    std::array<Tree*, 2> chain{};  // by buddy: for whose next packet the VC is kept
  };
  struct Sink {
    std::vector<Cycle> held_until;  // by VC
    Pacing pacing;
    bool is_paced_by_endpoint = false;
    int request_vc = -1;  // of the request that is being taken
    Cycle ready_at = 0;
  };
  // A multicast's path: where its copies pass, and what was reserved there.
  struct Tree {
    struct Stop {
      int hops = 0;  // from the source
      int input = kNiu;
      int input_vc = 0;
      std::array<bool, kPorts> outputs{};
      PerOutput output_vc{-1, -1, -1};
      int before = -1;  // the stop before this one
      bool is_reserved = false;
      int given_up = 0;  // the last attempt of which it has heard that it failed
    };
    std::map<int, Stop> stops;  // by node
    int source = 0;
    int buddy = 0;
    int destinations = 0;
    enum { idle, probing, granted } state = idle;
    int attempt = 0;
    bool is_refused = false;
    int probes = 0;  // under way
    Cycle answered_at = 0;
    int tries = 0;
    int packets_sent = 0;
    int packets_started = 0;
    bool reads_when_granted = false;
  };

  int number(int dateline, int packet_class, int buddy) const {
    return 2 * (classes_ * dateline + packet_class) + buddy;
  }
  int class_of(int vc) const { return vc / 2 % classes_; }
  bool is_interleaved(int vc) const {
    return class_of(vc) >= static_cast<int>(PacketClass::broadcast);
  }
  int neighbour(int node, int port) const;
  int links_between(int from, int to, int port) const;
  int next_port(const Router& router, int destination) const;
  int next_dateline(const Router& router, int input, int input_vc, int output) const;

  bool has_room(const Link& link, int vc) const;
  bool has_flit(const VirtualChannel& vc) const;
  bool waits(const VirtualChannel& vc) const;
  void push(Link& link, int vc, const QueuedPacket* packet, int index);
  void pop(Link& link, int vc);

  void run_reservations();
  void credits_arrive(Link& link);
  void step_sink(int node);
  void take_flit(int node, int vc);
  void queue(const QueuedPacket& packet);
  void give_source_vcs(int node, int first_lane);
  bool may_use(const Packet& packet, bool is_own_buddy, bool is_own_class) const;
  int free_source_vc(int node, const QueuedPacket& packet) const;
  bool may_send(int node, const Lane& lane);
  void step_source(int node);
  void send_flit(int node, int lane);
  void give_output_vcs(Router& router);
  void give_output_vc(Router& router, int output, int vc, const std::vector<int>& contenders);
  bool wants(const Router& router, const VirtualChannel& vc, int output) const;
  bool could_send(const Router& router, const VirtualChannel& vc) const;
  int choose_vc(Router& router, int input, int output);
  void move_flits(Router& router);
  void move_flit(Router& router, int input, int vc, int output);

  Tree& make_tree(int source, const std::vector<int>& destinations);
  void add_way(Tree& tree, int destination, int first_column);
  void start_reservation(Tree& tree);
  void probe(Tree& tree, int node, int attempt);
  void grant(Tree& tree);
  int take(Tree& tree, int node, int attempt);
  void refuse(Tree& tree, int node, int attempt);
  void give_up(Tree& tree, int node, int attempt);
  void try_again(Tree& tree);

  machine::RouterParameters figures_;
  int width_;
  int height_;
  int classes_;
  int vcs_;
  int major_;  // the axis that multicasts take first and last
  PaceTime port_interval_;
  PaceTime multicast_interval_;
  int path_link_cycles_;
  int backoff_min_;
  int backoff_max_;
  Endpoint& endpoint_;
  Cycle now_ = 0;
  std::vector<std::array<Link, kPorts + 1>> links_;  // by the node and port that they leave
  std::vector<Router> routers_;
  std::vector<Source> sources_;
  std::vector<Sink> sinks_;
  std::deque<QueuedPacket> packets_;  // all that there ever were
  std::deque<Tree> trees_;
  // Next steps of reservations, by cycle and then in the order in which they were requested.
  std::multimap<Cycle, std::function<void()>> reservations_;
  sim::Random random_;
  std::int64_t packets_in_flight_ = 0;
  std::int64_t flit_hops_ = 0;
};

}  // namespace towpath::noc
