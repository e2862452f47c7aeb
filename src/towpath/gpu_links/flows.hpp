// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu_links/network.hpp"
#include "towpath/gpu_links/ties.hpp"
#include "towpath/sim/event_queue.hpp"
#include "towpath/sim/snapshot.hpp"

// The messages of a Network with fewer events, for runs whose senders and receivers are all known
// beforehand: the same times and loads.
//
// A flow is all that one sender sends over one route. What reaches a link is taken in order of
// arrival, so an event is needed only where flows from different links meet. A link that one flow
// has for itself, or whose flows all come from the same link before it, is passed at once, ahead of
// simulated time.
//
//   Flows flows(network, Protocol::simple);
//   const std::uint32_t flow = flows.add(route, turn);  // all of them
//   flows.join();
//   Flows::Notice notice = flows.send(flow, flows.train(flow, 64_KiB, pace), when, tag);
//   while (flows.next(0, Flows::kUnknown, notice)) ...  // each may call send()
//
// Flows that meet no others are of different partitions, if their user divides them so. Each has a
// time of its own.
//
// Wrong: a send() from before the notice that next() gave last in the flow's partition. Another
// message may have passed.

namespace towpath::gpu_links {

class Flows {
 public:
  static constexpr Time kUnknown = Time::max();

  // What has become known of a message.
  struct Notice {
    std::uint64_t tag = 0;    // the sender's own
    Time left = kUnknown;     // its last byte leaves the sender
    Time arrived = kUnknown;  // it reaches the far end
    Time at = kUnknown;       // of next(): the moment that it tells of
  };

  // What the segments of a message take on the links of a flow.
  struct Train {
    struct Hop {
      Time first;  // of the message: with its overhead
      Time whole;
      Time last;
      Time latency;
      Time busy;  // by all segments together
    };
    Bytes size;
    Rate pace;
    std::uint32_t segments = 1;
    Time pace_whole;
    Time pace_last;
    std::vector<Hop> hops;  // and behind them the links beside the first, and beside the last
  };
  // What a flow through a switch to or from a group is besides; see Message. It has no turn.
  struct Group {
    Rate rate_max;
    std::span<const int> beside_first;
    std::span<const int> beside_last;
  };

  // All messages are under one protocol. The network keeps its routes as long as this lives.
  Flows(const Network& network, Protocol protocol);
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  // `turn` as that of a Message. The route has links.
  std::uint32_t add(const Route& route, std::uint64_t turn) { return add(route, turn, {}); }
  // Others must not have the lists of the group. send() is called at `when` then, from next().
  std::uint32_t add_group(const Route& route, const Group& group) {
    return add(route, kNoTurn, group);
  }
  // After the last add().
  void join();
  // Calls visit(link) for each link where others meet a flow.
  template <typename Visit>
  void for_each_meeting(std::uint32_t flow, const Visit& visit) const {
    for (const Hop& hop : hops_of(flows_[flow])) {
      if (!hop.is_meeting) continue;
      visit(links_[hop.link]);
      for (const std::uint32_t place : beside(hop)) visit(links_[place]);
    }
  }
  // What the links of a flow take from the last one where it meets others: from when its passage
  // is told until it is through. All of them if it meets nobody.
  Time latency_after_meeting(std::uint32_t flow) const;
  // The partition of each flow, after join(): flows that meet are in the same one. Otherwise all
  // are in partition 0.
  void divide(std::span<const std::uint32_t> partition_of_flow, std::uint32_t partitions);

  // Of messages of `size` on the wire, which is not zero, sent at `pace`.
  const Train& train(std::uint32_t flow, Bytes size, Rate pace);

  // A message starts at `when`, after all that its flow has sent before has left. What is not known
  // yet, next() tells.
  Notice send(std::uint32_t flow, const Train& train, Time when, std::uint64_t tag);
  // next() brings a notice with the tag at `when`, ahead of what reaches a link then in its turn.
  void call(std::uint32_t partition, Time when, std::uint64_t tag) {
    call_in_turn(partition, when, kNoTurn, tag);
  }
  // In its turn among what reaches a link then.
  void call_in_turn(std::uint32_t partition, Time when, std::uint64_t turn, std::uint64_t tag);
  // Brings the earliest segment on that flows of the partition wait for, or makes a call; false
  // when there is none before `end`. The notice may have nothing new.
  bool next(std::uint32_t partition, Time end, Notice& notice);
  // When that segment, or that of all partitions, reaches its link; kUnknown when none waits. The
  // former not of a single partition.
  Time first_time(std::uint32_t partition) const { return waiting_[partition].first_time(); }
  Time first_time() const;
  // One per link of the machine.
  std::vector<LinkLoad> loads() const;
  // Of the links that flows take, with their numbers: on a large machine far fewer.
  std::vector<std::pair<int, LinkLoad>> used_loads() const;
  // As Network::has_ties.
  bool has_ties() const { return ties_.is_found(); }
  // Segments that reached a link where flows meet.
  std::uint64_t meetings() const { return meetings_; }

  // What is under way, and until when links are taken. `name_of` a tag leaves out what grows from
  // message to message.
  template <typename NameOf>
  void describe(sim::Snapshot& snapshot, const NameOf& name_of);
  // All that is under way, and until when links are taken, is so much later.
  void shift(Time by);
  // What has been counted so far.
  struct Counts {
    std::vector<LinkLoad> loads;  // per link that flows take
    std::uint64_t meetings = 0;
  };
  Counts counts() const;
  // Counts what came after `before` so many times more.
  void count_again(const Counts& before, std::uint64_t times);

 private:
  struct Hop {
    std::uint32_t link = 0;  // its place among those that flows take
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
    std::uint64_t count = 0;         // which loads_ does not have yet
  };
  // Flows over equal links share their trains.
  using LinkCosts = std::vector<std::tuple<Rate, Time, Time>>;  // rate, overhead, latency
  struct Kind {
    const LinkCosts* costs = nullptr;
    std::deque<Train> trains;
  };
  // A part of a message that waits for its turn on a link.
  struct alignas(64) Segment {
    const Train* train = nullptr;  // none of a call
    const Hop* hops = nullptr;
    std::uint64_t turn = 0;
    std::uint64_t tag = 0;
    std::uint32_t number = 0;
    std::uint16_t hop = 0;
    std::uint16_t hop_count = 0;
    std::uint32_t partition = 0;
    Time tail_in;  // when its last byte reaches that link
    Segment* next_free = nullptr;
  };
  // Waits, and comes at a time; of those at the same time the lowest order is first.
  struct Entry {
    Time at;
    std::uint64_t order = 0;
    Segment* segment = nullptr;
    bool operator>(const Entry& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  // Segments that wait in a partition, in the order in which they come. Most come after all or most
  // of the others, and go into a sorted row; the others go into a heap.
  class Waiting {
   public:
    Time first_time() const;
    void push(Time at, std::uint64_t order, Segment& segment);
    Segment& pop();
    // All, in no order, which may be changed, if their order is not.
    template <typename Visit>
    void for_each(const Visit& visit) {
      for (std::size_t i = first_; i < row_.size(); ++i) visit(row_[i]);
      for (Entry& entry : heap_) visit(entry);
    }

   private:
    static constexpr std::size_t kLookedAtMax = 16;  // of the row, before one goes into the heap

    bool is_first_of_row() const {
      return first_ < row_.size() && (heap_.empty() || heap_.front() > row_[first_]);
    }

    std::vector<Entry> row_;
    std::size_t first_ = 0;  // those before are gone
    std::vector<Entry> heap_;
  };

  std::span<const Hop> hops_of(const Flow& flow) const {
    return {hops_.data() + flow.first_hop, flow.hops};
  }
  std::uint32_t place_of(int link);
  Rate rate_on(int link, const Group& group) const;
  static void send_over_link(const Train& train, Time& free_at, Time when, Notice& notice);
  void send_alone(const Flow& flow, const Train& train, Time when, Notice& notice);
  std::uint32_t repeat_whole(const Flow& flow, const Train& train, std::uint32_t number,
                             Time& left);
  std::span<const std::uint32_t> beside(const Hop& hop) const {
    return {beside_.data() + hop.beside, hop.beside_count};
  }
  void add_beside(Hop& hop, std::span<const int> links, const Group& group, LinkCosts& costs);
  static std::uint64_t order_of(const Segment& segment) { return segment.turn << 8 | segment.hop; }
  std::uint32_t add(const Route& route, std::uint64_t turn, const Group& group);
  void await(Segment& segment, Time head);
  struct Passage {
    Time left;  // the segment's last byte has left its sender; only from there
    Time head;  // the head is at the next link
  };
  Passage pass(Segment& segment, Time head);
  Time occupy_beside(const Hop& hop, const Segment& segment, Time head, Time& start);
  void walk(Segment& segment, Time head, Notice& notice);
  void count(const Flow& flow, std::vector<LinkLoad>& loads) const;
  static void count_at(std::uint32_t place, const Flow& flow, const Train::Hop& cost,
                       std::vector<LinkLoad>& loads);
  // Calls visit(entry) for each that waits; it may change all times by the same.
  template <typename Visit>
  void for_each_waiting(const Visit& visit);
  Segment& new_segment();
  Segment& copy_of(const Segment& segment);
  void release(Segment& segment);

  const Network& network_;
  Protocol protocol_;
  std::map<LinkCosts, std::uint32_t> kind_of_;
  std::vector<Kind> kinds_;
  std::vector<Flow> flows_;
  std::vector<Hop> hops_;
  std::vector<std::uint32_t> beside_;                 // places of links beside those of hops
  std::map<const int*, std::uint32_t> beside_known_;  // by where the flow's user has them
  std::vector<std::uint32_t> place_of_;  // per link of the machine, among those that flows take
  std::vector<int> links_;               // those
  std::vector<Time> free_at_;            // per one of them
  std::vector<Time> free_at_before_;     // per hop, of the segment before
  std::vector<LinkLoad> loads_;          // per link that flows take
  sim::EventQueue queue_;                // of waiting segments, if there is one partition
  std::vector<Waiting> waiting_;         // per partition, if there are several
  std::deque<Segment> segments_;         // storage
  Segment* free_segments_ = nullptr;
  std::uint64_t meetings_ = 0;
  std::uint64_t sequence_ = 0;  // of what waits without a turn
  Ties ties_;
};

template <typename Visit>
void Flows::for_each_waiting(const Visit& visit) {
  for (Waiting& waiting : waiting_) waiting.for_each(visit);
  std::vector<sim::Event> events(queue_.size());
  for (sim::Event& event : events) queue_.pop(kUnknown, event);
  queue_.rewind();
  for (const sim::Event& event : events) {
    Segment& segment = *static_cast<Segment*>(event.context);
    Entry entry{event.time(), order_of(segment), &segment};
    visit(entry);
    queue_.push_ordered(entry.at, 0, entry.order, nullptr, &segment);
  }
}

template <typename NameOf>
void Flows::describe(sim::Snapshot& snapshot, const NameOf& name_of) {
  for (const Time free_at : free_at_) snapshot.add_if_later(free_at);
  std::vector<Entry> waiting;
  for_each_waiting([&](const Entry& entry) { waiting.push_back(entry); });
  std::ranges::sort(waiting, [](const Entry& a, const Entry& b) { return b > a; });
  for (const Entry& entry : waiting) {
    const Segment& segment = *entry.segment;
    snapshot.add(entry.at);
    snapshot.add(entry.order);
    snapshot.add(name_of(segment.tag));
    snapshot.add(segment.number, segment.hop);
    snapshot.add(reinterpret_cast<std::uintptr_t>(segment.train));
    if (segment.hop > 0) snapshot.add(segment.tail_in);
  }
}

}  // namespace towpath::gpu_links
