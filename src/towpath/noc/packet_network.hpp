// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/noc/niu/network.hpp"
#include "towpath/noc/niu/niu_rates.hpp"
#include "towpath/noc/niu/timers.hpp"
#include "towpath/noc/router/multicast_tree.hpp"

// One network on chip, packet by packet: coarser than FlitNetwork, and many times as fast.
//
// Only the head of a packet moves from router to router. The time of its tail is computed. At each
// router a head waits for its output VC, which is granted in order of arrival and is free again
// when the tail of its owner has passed. On a link, packets of several VCs share the rate. A packet
// that meets others is delayed by the time of their flits, but at most by the time of alternating
// with each of them. The others are also delayed.
//
// Left out: buffers are unlimited, so a waiting packet does not hold links or VCs behind it. A
// multicast is never refused its path, and no other packet waits for the path. A packet that is
// slowed down on a link behind its head is received later, but does not keep the VCs in between for
// longer. There is no deadlock.

namespace towpath::noc {

class PacketNetwork final : public Network {
 public:
  // `noc` is 0 or 1. The endpoint outlives the network.
  PacketNetwork(const machine::Chip& chip, int noc, Endpoint& endpoint);

  void send(const Packet& packet) override;
  void send_multicast(const Packet& packet, const std::vector<int>& destinations) override;
  void hold(int node, int vc, Cycle until) override;
  void release(int node, int vc, Cycle at) override;
  void pace_by_endpoint(int node) override { nius_[index(node)].is_paced_by_endpoint = true; }
  void hold_up_by_endpoint(int node) override { pace_by_endpoint(node); }
  void watch_counted_flits(int flits) override { watched_flits_ = flits; }
  int counted_flits(int node) const override { return nius_[index(node)].counted_flits; }
  void step() override;
  Cycle next_work() const override { return events_.next(); }
  std::int64_t packets_in_flight() const override { return packets_in_flight_; }
  std::int64_t link_flits(int node, int port) const override {
    return port == kFromNiu ? nius_[index(node)].link.flits
                            : routers_[index(node)].output[index(port)].flits;
  }

 private:
  struct Flight {
    Packet packet;
    Cycle tail_at = 0;          // when the tail reaches the place of the head
    Cycle way = 0;              // of the head: the time of links and routers alone
    PacketId next = kNoPacket;  // behind it in the queue in which it waits
    int node = 0;
    std::uint8_t input = 0;  // port by which it has come, or is about to
    std::uint8_t output = 0;
    std::uint8_t vc = 0;
  };
  struct Queue {
    PacketId first = kNoPacket;
    PacketId last = kNoPacket;
    bool empty() const { return first == kNoPacket; }
  };
  struct OutputVc {
    Cycle tail_at = kBefore;  // when the last flit of its latest owner leaves
    Cycle way = 0;            // of the latest owner's head up to here
    Queue waiting;
    PacketId owner = kNoPacket;  // the latest
  };
  // A link, and the VCs on it, contiguous.
  struct Output {
    PaceTime free_at = 0;  // when all that it has been given has left
    std::int64_t flits = 0;
    std::array<std::uint8_t, kVcsMax> last_input{};  // by VC: input VC of its latest owner
    std::array<OutputVc, kVcsMax> vc;
  };
  struct Router {
    std::array<Output, kPorts> output;
  };
  struct Lane {
    PacketId front = kNoPacket;
    Queue behind;
    std::uint8_t vc = 0;  // the front packet's
  };
  struct Niu {
    // sending
    std::array<Lane, kLanes> lane;
    std::uint16_t owned = 0;   // VCs that a packet owns
    std::uint8_t waiting = 0;  // lanes whose front packet waits for one
    Output link;
    int counted_flits = 0;
    std::array<std::int32_t, 2> kept_tree{-1, -1};  // by buddy: the tree of linked multicasts
    // receiving
    std::array<Queue, kVcsMax> arrived;
    std::array<Cycle, kVcsMax> held_until{};
    std::uint16_t held = 0;
    std::uint16_t taking = 0;  // VCs whose front packet is being taken
    std::uint8_t turn = 0;
    bool is_paced_by_endpoint = false;
    Cycle ready_at = 0;  // for the next flit, if the endpoint paces it
  };
  // The path of a linked multicast, and of all its successors on that path.
  struct Tree {
    MulticastTree shape;
    bool is_granted = false;
    int uses = 0;  // copies under way, and one while the path is kept
  };
  enum class EventKind : std::uint8_t { leave, sent, uncount, head, free, arrival, taken, release };
  struct Event {
    EventKind kind;
    std::int32_t where;       // node, or packet
    std::int32_t detail = 0;  // lane, VC or number of flits
  };
  static constexpr Cycle kBefore = -kNever / 2;  // longer ago than any VC takes to be released

  void schedule(Cycle at, EventKind kind, int where, int detail = 0) {
    events_.add(at, {kind, where, detail});
  }
  void run(const Event& event);
  PacketId add(const Packet& packet);
  void push(Queue& queue, PacketId id);
  PacketId pop(Queue& queue);

  void queue(PacketId id);
  void take_source_vc(int node, int lane);
  void leave(int node, int lane);
  void count_off(PacketId id, Cycle tail_at);
  void uncount(PacketId id, int flits);
  void finish_sending(int node, int lane);
  Cycle reservation_cycles(const MulticastTree& tree) const;

  void head_arrives(PacketId id);
  void ask_for_vc(PacketId id);
  Cycle free_at(const Output& output, unsigned vc, const Flight& flight) const;
  void give_next(int node, int number);
  void give(PacketId id, unsigned vc);
  Cycle pass(Output& link, unsigned vc, PacketId id, Cycle tail_at, PaceTime interval);
  PaceTime share(Output& link, PaceTime own, PaceTime ahead);

  void take_arrived(int node);
  void take(int node, int vc);
  void taken(PacketId id);

  Endpoint& endpoint_;
  NiuRates rates_;
  int path_link_cycles_;
  std::uint16_t interleaved_vcs_;
  std::vector<Router> routers_;
  std::vector<Niu> nius_;
  std::vector<Flight> flights_;
  std::vector<PacketId> free_flights_;
  std::vector<Tree> trees_;
  std::vector<std::int32_t> free_trees_;
  Timers<Event> events_;
  int watched_flits_ = 0;
  std::int64_t packets_in_flight_ = 0;
};

}  // namespace towpath::noc
