// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu_links/link_history.hpp"
#include "towpath/gpu_links/parts.hpp"
#include "towpath/gpu_links/ties.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/machine/route_search.hpp"
#include "towpath/sim/crossing.hpp"
#include "towpath/sim/link_load.hpp"

// The links of a cluster under load: NVLink and NVSwitch inside a host, PCIe to the NIC, network
// switches between hosts.
//
// A message is cut into segments. Each link is a server that holds one segment at a time, in order
// of arrival of their heads: a segment occupies it for its bytes at the link's rate (the first one
// of a message also for the link's message overhead) while its head goes on after the link's
// latency (virtual cut-through). A segment's tail never leaves a link before it has come in, so the
// slowest link of a route, or the sender's own pace, sets the speed. The sender offers the next
// segment when the one before has left it: that is its back-pressure.
//
// A link belongs to the part of the machine that its sending end is in, and so does what waits for
// it. Folds and histories are of networks in one part.

namespace towpath::gpu_links {

// What contention is resolved in, chosen for speed: halving it takes 1.8 times the events. It moves
// rings on a DGX H100 by less than 0.1 %, trees by up to 2 % in Simple and, at 1 MiB in LL128, by
// 10 %; from 64 MiB on everything by less than 1 % (benchmarks/collective/README.md).
inline constexpr Bytes kSegment{64 * 1024};

inline constexpr std::uint64_t kNoTurn = ~std::uint64_t{0};
// Messages with a turn reach a link after all else that happens at that moment, so that all that
// do are known.
inline constexpr int kEntryPriority = 1;

struct Route {
  std::vector<int> links;
  std::vector<int> moves;    // of each link to the one that stands for it; empty if none does
  Time latency;              // one way, of an empty message
  bool leaves_host = false;  // some link of it is the network
  std::uint32_t from_part = 0;
  std::uint32_t to_part = 0;
};

using sim::LinkLoad;

struct Message;

// A part of a message under way; the network's own.
struct Segment {
  Message* message = nullptr;
  Bytes size;
  std::size_t hop = 0;
  Time tail_in;  // when its last byte reaches the current link
  bool is_first = false;
  bool is_last = false;
};

// A message under way. The caller owns it and keeps it until `arrived` is called.
struct Message {
  const Route* route = nullptr;
  Bytes size;  // on the wire
  Rate pace;   // at which the sender produces it
  Protocol protocol = Protocol::simple;
  Rate rate_max;  // of each link it takes; zero for the links' own
  Bytes segment_max = kSegment;
  // Where a switch combines or copies: links that every segment takes as well, beside the first
  // link of the route and beside its last.
  std::span<const int> beside_first;
  std::span<const int> beside_last;
  // Which of several messages goes first where their heads reach a link at the same moment: that
  // of the lowest turn, which is below 2^40 and of one message at a time. Without it, and before
  // those with one, the message that was scheduled first.
  std::uint64_t turn = kNoTurn;
  Time delay;                        // added at the far end, before `arrived`
  void (*left)(Message&) = nullptr;  // the last byte is on its way; may be null
  void (*arrived)(Message&) = nullptr;

  // The network's own.
  class Network* network = nullptr;
  Bytes remaining;
  Segment first;  // most messages have no other
};

class Network {
 public:
  Network(const Parts& parts, std::shared_ptr<const machine::Machine> machine);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // From now on routes lead over the link that stands for each of theirs, one per link of the
  // machine. Before the first route.
  void fold(std::shared_ptr<const std::vector<FoldedLink>> folded);
  // Whether messages of ranks that are rotated by different numbers have come to a link at the same
  // time since fold(). Which of them goes first is not the same for all that the link stands for.
  bool has_ties() const { return ties_.is_found(); }
  // Whether messages that are rotated differently may take the link, by the routes so far.
  bool is_shared(int link) const {
    return !is_shared_.empty() && is_shared_[static_cast<std::size_t>(link)];
  }

  // Valid as long as the network is. Ask for all routes from a rank together, see RouteSearch, and
  // in that rank's part.
  const Route& route(int from_rank, int to_rank);

  // Starts now. An empty message takes its route's latency and loads no link.
  void send(Message& message);
  // Starts then, in its turn.
  void send_at(Time when, Message& message);

  const machine::Machine& machine() const { return *machine_; }
  // Of a link of the machine for what is sent under a protocol: a proxy may slow an adapter down;
  // see machine::ProtocolCost.
  Rate rate_on(std::size_t link, Protocol protocol) const;
  // One per link of the machine, since the beginning.
  const std::vector<LinkLoad>& loads() const {
    loads_.resize(machine_->links().size());
    return loads_;
  }
  // What links carry from now on is told to the history; null ends that. The caller owns it.
  void record(LinkHistory* history) { history_ = history; }

 private:
  // What belongs to one part of the machine.
  struct Part {
    Part(sim::Simulation& own, const machine::Machine& machine)
        : simulation(own), crossing(own), search(machine) {}
    sim::Simulation& simulation;
    sim::Crossing crossing;
    machine::RouteSearch search;
    std::unordered_map<std::uint64_t, std::unique_ptr<Route>> routes;
    std::deque<Segment> segments;  // storage
    std::vector<Segment*> free_segments;
  };

  static void send_now(void* message);
  static void offer_next(void* message);
  static void enter_link(void* segment);
  static void leave_sender(void* message);
  static void arrive(void* message);
  Part& part_of_link(int link) { return *parts_[part_of_link_[static_cast<std::size_t>(link)]]; }
  static void schedule(Part& from, Part& to, Time when, sim::Action action, void* context);
  void schedule_entry(Time when, std::size_t hop, Message& message, sim::Action action,
                      void* context);
  void offer_segment(Message& message, Segment& segment);
  struct Passage {
    Time start;      // the head goes on
    Time tail_left;  // the link's sending end
  };
  Time pass_link(Segment& segment);
  Passage occupy(int link, const Segment& segment);
  void begin_loads();
  void take_representatives(Route& route);
  void forward(Segment& segment, Time head_out, Time tail_out);
  static Segment& new_segment(Part& part);
  void trace_link(int link, Time start, Time end, Bytes size);

  std::shared_ptr<const machine::Machine> machine_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::uint32_t> part_of_device_;  // empty: all in the first one
  std::vector<std::uint32_t> part_of_link_;
  std::vector<bool> leaves_adapter_;  // per link
  // Per link, from the first message on where there is one part: who only asks for routes does
  // without.
  std::vector<Time> free_at_;
  mutable std::vector<LinkLoad> loads_;
  // Per link; null where each link stands for itself.
  std::shared_ptr<const std::vector<FoldedLink>> folded_;
  // Of the first route over each link. Ranks ask for their routes before the first message leaves.
  std::unordered_map<int, int> first_moves_;
  std::vector<bool> is_shared_;  // per link; empty where each link stands for itself
  Ties ties_;
  LinkHistory* history_ = nullptr;
};

}  // namespace towpath::gpu_links
