// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "towpath/gpu_links/network.hpp"

namespace towpath::gpu_links {

// The time that the segments of a message take on the links of a flow.
struct Train {
  // A whole segment, then each of the smaller ones at the end: see next_segment.
  using Times = std::array<Time, 1 + kSmallSegmentsMax>;
  struct Hop {
    Times times;
    Time overhead;  // of the message, added to its first segment
    Time latency;
    Time busy;  // by all segments together
  };
  Bytes size;
  Rate pace;
  Bytes segment_min;
  std::uint32_t segments = 0;
  std::uint32_t wholes = 0;
  Times paces;
  std::vector<Hop> hops;  // then the companions of the first link, and of the last

  std::size_t place_of(std::uint32_t number) const {
    return number < wholes ? 0 : number - wholes + 1;
  }
  Time occupied(const Hop& hop, std::uint32_t number) const {
    return number == 0 ? hop.times[place_of(0)] + hop.overhead : hop.times[place_of(number)];
  }
  Time pace_of(std::uint32_t number) const { return paces[place_of(number)]; }
};

// The flows of a run, which are complete before its first message, and the links on which they
// meet.
//
// A flow is everything that one sender sends over one route. A link with a single flow, or whose
// flows all come from the same previous link, keeps the order of arrival. On all other links flows
// meet.
class FlowTable {
 public:
  // A flow through a switch to or from a group. See Message. It has no turn.
  struct Group {
    Rate rate_max;
    std::span<const int> beside_first;
    std::span<const int> beside_last;
  };
  struct Hop {
    std::uint32_t link = 0;  // its place among the links that flows take
    bool is_meeting = false;
    bool is_shared = false;  // ranks that are rotated differently may meet
    std::uint16_t beside_count = 0;
    int moves = 0;             // as in the route
    std::uint32_t beside = 0;  // the first in beside_
    std::uint32_t costs = 0;   // of that, in a train
  };
  struct Flow {
    std::uint32_t first_hop = 0;
    std::uint16_t hops = 0;
    bool is_alone = true;  // no hop is a meeting
    std::uint32_t kind = 0;
    std::uint32_t partition = 0;
    std::uint64_t turn = 0;
    const Train* counted = nullptr;  // its last messages,
    std::uint64_t count = 0;         // which are not in the loads yet
  };

  // All messages use one protocol. The network keeps its routes for the lifetime of this object.
  FlowTable(const Network& network, Protocol protocol);
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  // `turn` is that of a Message. The route must have links.
  std::uint32_t add(const Route& route, std::uint64_t turn) { return add(route, turn, {}); }
  // No other flow may have the lists of the group.
  std::uint32_t add_group(const Route& route, const Group& group) {
    return add(route, kNoTurn, group);
  }
  // After the last add().
  void join();

  // Calls visit(link) for each link on which a flow meets others.
  template <typename Visit>
  void for_each_meeting(std::uint32_t flow, const Visit& visit) const {
    for (const Hop& hop : hops_of(flows_[flow])) {
      if (!hop.is_meeting) continue;
      visit(links_[hop.link]);
      for (const std::uint32_t place : beside(hop)) visit(links_[place]);
    }
  }
  // Adds the bytes of a flow on the wire to the busy time of each of its links, by their places.
  void add_busy(std::uint32_t flow, Bytes size, std::span<Time> busy) const;
  // The latency from the last link on which a flow meets others to the end of the route, or of the
  // whole route if it meets no other.
  Time latency_after_meeting(std::uint32_t flow) const;
  // The partition of each flow, after join(): flows that meet are in the same partition.
  void divide(std::span<const std::uint32_t> partition_of_flow);

  // For messages of `size` on the wire, which is not zero, sent at `pace` with the `segment_min` of
  // a Message.
  const Train& train(std::uint32_t flow, Bytes size, Rate pace, Bytes segment_min);

  std::vector<Flow>& flows() { return flows_; }
  const std::vector<Flow>& flows() const { return flows_; }
  std::span<const Hop> hops_of(const Flow& flow) const {
    return {hops_.data() + flow.first_hop, flow.hops};
  }
  // Places of the companions of a link.
  std::span<const std::uint32_t> beside(const Hop& hop) const {
    return {beside_.data() + hop.beside, hop.beside_count};
  }
  // The links that flows take, by their places.
  const std::vector<int>& links() const { return links_; }
  std::size_t links_of_machine() const { return place_of_.size(); }

 private:
  // Flows over equal links share their trains.
  using LinkUses = std::vector<LinkUse>;
  struct Kind {
    const LinkUses* uses = nullptr;
    std::deque<Train> trains;
  };

  std::uint32_t add(const Route& route, std::uint64_t turn, const Group& group);
  std::uint32_t place_of(int link);
  void add_beside(Hop& hop, std::span<const int> links, const Group& group, LinkUses& uses);

  const Network& network_;
  Protocol protocol_;
  std::map<LinkUses, std::uint32_t> kind_of_;
  std::vector<Kind> kinds_;
  std::vector<Flow> flows_;
  std::vector<Hop> hops_;
  std::vector<std::uint32_t> beside_;                 // places of companions of links
  std::map<const int*, std::uint32_t> beside_known_;  // by the address of the list
  std::vector<std::uint32_t> place_of_;               // per link of the machine
  std::vector<int> links_;                            // while storing deferred messages
};

}  // namespace towpath::gpu_links
