// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/gpu_links/flow_table.hpp"
#include "towpath/gpu_links/segment_queue.hpp"
#include "towpath/gpu_links/ties.hpp"
#include "towpath/sim/snapshot.hpp"

// The messages of a Network with fewer events, for runs whose senders and receivers are all known
// in advance. Times and loads are the same.
//
// A link takes segments in order of arrival, so an event is needed only on links on which flows
// meet (see FlowTable). All other links are passed at once, ahead of simulated time.
//
//   FlowTable table(network, Protocol::simple);
//   const std::uint32_t flow = table.add(route, turn);  // all of them
//   table.join();
//   Flows flows(table);
//   flows.begin(1);
//   Flows::Notice notice = flows.send(flow, table.train(flow, 64_KiB, pace), when, tag);
//   while (flows.next(0, Flows::kUnknown, notice)) ...  // each may call send()
//
// Flows that meet no other flows are in different partitions, if their user divides them so. Each
// partition has its own clock.
//
// Wrong: a send() before the last notice that next() has returned in the flow's partition. Another
// message may have passed.

namespace towpath::gpu_links {

class Flows {
 public:
  static constexpr Time kUnknown = Time::max();

  // The progress of a message.
  struct Notice {
    std::uint64_t tag = 0;    // given by the sender
    Time left = kUnknown;     // its last byte leaves the sender
    Time arrived = kUnknown;  // it reaches the far end
    Time at = kUnknown;       // of next(): the moment of the event
  };

  // The table outlives this object.
  explicit Flows(FlowTable& table) : table_(table) {}
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  // All flows are added and divided into partitions.
  void begin(std::uint32_t partitions);

  // A message starts at `when`, after the flow's earlier messages have left. Times that are not
  // known yet come from next().
  Notice send(std::uint32_t flow, const Train& train, Time when, std::uint64_t tag);
  // next() returns a notice with the tag at `when`, before segments with a turn that arrive then.
  void call(std::uint32_t partition, Time when, std::uint64_t tag) {
    call_in_turn(partition, when, kNoTurn, tag);
  }
  // In its turn among the segments that arrive at the same time.
  void call_in_turn(std::uint32_t partition, Time when, std::uint64_t turn, std::uint64_t tag);
  // Processes the earliest waiting segment or call of the partition. False if there is none before
  // `end`. The notice may be empty.
  bool next(std::uint32_t partition, Time end, Notice& notice);
  // The time of that segment, in one partition or in all. kUnknown if none waits.
  Time first_time(std::uint32_t partition) const { return waiting_[partition].first_time(); }
  Time first_time() const;
  // One per link of the machine.
  std::vector<LinkLoad> loads() const;
  // Only the links that flows use, with their numbers: on a large machine far fewer.
  std::vector<std::pair<int, LinkLoad>> used_loads() const;
  // See Network::has_ties.
  bool has_ties() const { return ties_.is_found(); }
  // Segments that reached a link on which flows meet, and calls.
  std::uint64_t meetings() const { return meetings_; }

  // Appends the segments in flight and the busy times of links. `name_of` removes from a tag the
  // part that grows with each message.
  template <typename NameOf>
  void describe(sim::Snapshot& snapshot, const NameOf& name_of);
  // Delays all segments in flight and the busy times of links.
  void shift(Time by);
  // Loads and meetings until now.
  struct Counts {
    std::vector<LinkLoad> loads;  // per link that flows take
    std::uint64_t meetings = 0;
  };
  Counts counts() const;
  // Adds the difference from `before` `times` times.
  void count_again(const Counts& before, std::uint64_t times);

 private:
  using Flow = FlowTable::Flow;
  using Hop = FlowTable::Hop;
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
  using Entry = SegmentQueue<Segment>::Entry;

  static void send_over_link(const Train& train, Time& free_at, Time when, Notice& notice);
  void send_alone(const Flow& flow, const Train& train, Time when, Notice& notice);
  std::uint32_t repeat_whole(const Flow& flow, const Train& train, std::uint32_t number,
                             Time& left);
  void await(Segment& segment, Time head);
  struct Passage {
    Time left;  // the last byte leaves the sender; only at the first link
    Time head;  // the head is at the next link
  };
  Passage pass(Segment& segment, Time head);
  Time occupy_beside(const Hop& hop, const Segment& segment, Time head, Time& start);
  void walk(Segment& segment, Time head, Notice& notice);
  void count(const Flow& flow, std::vector<LinkLoad>& loads) const;
  static void count_at(std::uint32_t place, const Flow& flow, const Train::Hop& cost,
                       std::vector<LinkLoad>& loads);
  Segment& new_segment();
  Segment& copy_of(const Segment& segment);
  void release(Segment& segment);

  FlowTable& table_;
  std::vector<Time> free_at_;                   // per link that flows take
  std::vector<Time> free_at_before_;            // per hop, of the segment before
  std::vector<LinkLoad> loads_;                 // per link that flows take
  std::vector<SegmentQueue<Segment>> waiting_;  // per partition
  std::deque<Segment> segments_;                // storage
  Segment* free_segments_ = nullptr;
  std::uint64_t meetings_ = 0;
  std::uint64_t sequence_ = 0;  // of segments and calls without a turn
  Ties ties_;
};

template <typename NameOf>
void Flows::describe(sim::Snapshot& snapshot, const NameOf& name_of) {
  for (const Time free_at : free_at_) snapshot.add_if_later(free_at);
  std::vector<Entry> waiting;
  for (auto& queue : waiting_) {
    queue.for_each([&](const Entry& entry) { waiting.push_back(entry); });
  }
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
