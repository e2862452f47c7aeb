// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu_links/link_history.hpp"
#include "towpath/gpu_links/link_use.hpp"
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
// of arrival of their heads. A segment occupies the link for its bytes at the link's rate (the
// first segment of a message also for the link's message overhead), while its head continues after
// the link's latency (virtual cut-through). The tail of a segment never leaves a link before it has
// arrived, so the slowest link of a route, or the sender's pace, determines the speed. The sender
// offers the next segment when the previous one has left it, which is its back-pressure.
//
// A link and its queue belong to the part of the machine of its sending end. A network with a fold
// or a history has one part.

namespace towpath::gpu_links {

inline constexpr std::uint64_t kNoTurn = ~std::uint64_t{0};
// Messages with a turn reach a link after all other events at that moment, so that all of them are
// known.
inline constexpr int kEntryPriority = 1;

struct Route {
  std::vector<int> links;
  std::vector<int> moves;    // of each link to its representative, empty without a fold
  Time latency;              // one way, of an empty message
  bool leaves_host = false;  // some link of it is the network
  std::uint32_t from_part = 0;
  std::uint32_t to_part = 0;
};

using sim::LinkLoad;

struct Message;

// A part of a message in flight. Private to the network.
struct Segment {
  Message* message = nullptr;
  Bytes size;
  std::size_t hop = 0;
  Time tail_in;  // when its last byte reaches the current link
  bool is_first = false;
  bool is_last = false;
};

// A message in flight. The caller owns it and keeps it until `arrived` is called.
struct Message {
  const Route* route = nullptr;
  Bytes size;  // on the wire
  Rate pace;   // at which the sender produces it
  Protocol protocol = Protocol::simple;
  Rate rate_max;  // of each link it takes, or zero for the links' rates
  Bytes segment_max = kSegment;
  Bytes segment_min = kSegment;  // see next_segment
  // If a switch combines or copies: further links that every segment uses together with the first
  // link of the route, and with the last.
  std::span<const int> beside_first;
  std::span<const int> beside_last;
  // If several heads reach a link at the same moment, the one with the lowest turn is first. A turn
  // is below 2^40 and belongs to one message at a time. Messages without a turn come before, in the
  // order in which they were scheduled.
  std::uint64_t turn = kNoTurn;
  Time delay;                        // added at the far end, before `arrived`
  void (*left)(Message&) = nullptr;  // the last byte is on its way, may be null
  void (*arrived)(Message&) = nullptr;

  // Private to the network.
  class Network* network = nullptr;
  Bytes remaining;
  Segment first;  // most messages have no other
};

class Network {
 public:
  Network(const Parts& parts, std::shared_ptr<const machine::Machine> machine);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // From now on routes use representatives, one per link of the machine. Must be called before the
  // first route.
  void fold(std::shared_ptr<const std::vector<FoldedLink>> folded);
  // True if messages of ranks that are rotated by different numbers have reached a link at the same
  // time since fold(). The order of these messages then differs between the links that it
  // represents.
  bool has_ties() const { return ties_.is_found(); }
  // True if messages with different rotations may use the link, according to the routes so far.
  bool is_shared(int link) const {
    return !is_shared_.empty() && is_shared_[static_cast<std::size_t>(link)];
  }

  // Valid for the lifetime of the network. Request all routes from a rank together, see
  // RouteSearch, and in that rank's part.
  const Route& route(int from_rank, int to_rank);

  // Starts now. An empty message takes its route's latency and does not load a link.
  void send(Message& message);
  // Starts at that time, in its turn.
  void send_at(Time when, Message& message);

  const machine::Machine& machine() const { return *machine_; }
  // A link of the machine under a protocol, limited to `rate_max` unless that is zero.
  LinkUse use_of(int link, Protocol protocol, Rate rate_max) const;
  // One per link of the machine, since the start.
  const std::vector<LinkLoad>& loads() const {
    loads_.resize(machine_->links().size());
    return loads_;
  }
  // Starts to record the bytes of all links in the history, which the caller owns. Null ends the
  // recording.
  void record(LinkHistory* history) { history_ = history; }

 private:
  // One part of the machine.
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
    Time start;      // the head continues
    Time tail_left;  // the link's sending end
  };
  Time pass_link(Segment& segment);
  Passage enter(int link, const Segment& segment);
  Rate rate_on(std::size_t link, Protocol protocol) const;
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
  // Per link. With one part, it is allocated at the first message, so that users of only routes do
  // not need it.
  std::vector<Time> free_at_;
  mutable std::vector<LinkLoad> loads_;
  // Per link. Null without a fold.
  std::shared_ptr<const std::vector<FoldedLink>> folded_;
  // Rotations of the first route over each link. Ranks request their routes before the first
  // message.
  std::unordered_map<int, int> first_moves_;
  std::vector<bool> is_shared_;  // per link, empty without a fold
  Ties ties_;
  LinkHistory* history_ = nullptr;
};

}  // namespace towpath::gpu_links
