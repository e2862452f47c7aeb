// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu_links/flows.hpp"

#include "towpath/base/index.hpp"

namespace towpath::gpu_links {
namespace {

// Order of the events at one moment.
constexpr std::uint64_t kInTurn = std::uint64_t{1} << 63;

}  // namespace

void Flows::begin(std::uint32_t partitions) {
  free_at_.resize(table_.links().size());
  loads_.resize(table_.links().size());
  waiting_.resize(partitions);
}

Flows::Notice Flows::send(std::uint32_t number, const Train& train, Time when, std::uint64_t tag) {
  Flow& flow = table_.flows()[number];
  if (flow.counted != &train) {
    count(flow, loads_);
    flow.counted = &train;
    flow.count = 0;
  }
  ++flow.count;
  Notice notice{.tag = tag};
  if (flow.is_alone) {
    send_alone(flow, train, when, notice);
    return notice;
  }
  Segment& first = new_segment();
  first.train = &train;
  first.hops = table_.hops_of(flow).data();
  first.turn = flow.turn;
  first.partition = flow.partition;
  first.tag = tag;
  first.number = 0;
  first.hop = 0;
  first.hop_count = flow.hops;
  if (first.hops[0].is_meeting && flow.turn != kNoTurn) {
    await(first, when);
  } else {
    walk(first, when, notice);
  }
  return notice;
}

// With a single link, a segment arrives when the previous one has left, and does not wait.
void Flows::send_over_link(const Train& train, Time& free_at, Time when, Notice& notice) {
  const Train::Hop& cost = train.hops.front();
  free_at = std::max(when, free_at) + train.occupied(cost, 0);
  Time left = std::max(free_at, when + train.pace_of(0));
  std::uint32_t number = 1;
  if (train.wholes > 2) {
    left += std::max(cost.times[0], train.paces[0]) * (train.wholes - 2);
    number = train.wholes - 1;
  }
  for (; number < train.segments; ++number) {
    free_at = left + train.occupied(cost, number);
    left = std::max(free_at, left + train.pace_of(number));
  }
  notice.left = left;
  notice.arrived = left + cost.latency;
}

// Passes all segments at once, one after the other.
void Flows::send_alone(const Flow& flow, const Train& train, Time when, Notice& notice) {
  const std::span<const Hop> hops = table_.hops_of(flow);
  if (hops.size() == 1) return send_over_link(train, free_at_[hops.front().link], when, notice);
  Time left = when;
  Time tail;
  for (std::uint32_t number = 0; number < train.segments; ++number) {
    Time head = left;
    tail = head + train.pace_of(number);
    for (std::size_t h = 0; h < hops.size(); ++h) {
      const Train::Hop& cost = train.hops[h];
      Time& free_at = free_at_[hops[h].link];
      const Time start = occupy(head, train.occupied(cost, number), free_at);
      tail = tail_left(free_at, tail);
      if (h == 0) left = tail;
      tail += cost.latency;
      head = start + cost.latency;
    }
    if (train.wholes > 2) number = repeat_whole(flow, train, number, left);
  }
  notice.left = left;
  notice.arrived = tail;
}

// If a whole segment is later than its predecessor by the same time on all links, all further
// segments of its size behave in the same way. They pass at once. Returns the number of the last
// one.
std::uint32_t Flows::repeat_whole(const Flow& flow, const Train& train, std::uint32_t number,
                                  Time& left) {
  const std::span<const Hop> hops = table_.hops_of(flow);
  if (number == 0) free_at_before_.assign(hops.size() + 1, Time());
  const Time step = left - free_at_before_.back();
  bool is_steady = number > 0 && number + 1 < train.wholes;
  free_at_before_.back() = left;
  for (std::size_t h = 0; h < hops.size(); ++h) {
    const Time free_at = free_at_[hops[h].link];
    is_steady &= free_at - free_at_before_[h] == step;
    free_at_before_[h] = free_at;
  }
  if (!is_steady) return number;
  const std::uint32_t last_whole = train.wholes - 1;
  const Time all = step * (last_whole - number);
  left += all;
  for (const Hop& hop : hops) free_at_[hop.link] += all;
  return last_whole;
}

// The head reaches a link on which flows meet.
void Flows::await(Segment& segment, Time head) {
  const bool has_turn = segment.turn != kNoTurn;
  const std::uint64_t order = has_turn ? kInTurn | segment.turn << 8 | segment.hop : sequence_++;
  waiting_[segment.partition].push({head, order, &segment});
}

void Flows::call_in_turn(std::uint32_t partition, Time when, std::uint64_t turn,
                         std::uint64_t tag) {
  Segment& call = new_segment();
  call.train = nullptr;
  call.turn = turn;
  call.hop = 0;
  call.partition = partition;
  call.tag = tag;
  await(call, when);
}

bool Flows::next(std::uint32_t partition, Time end, Notice& notice) {
  SegmentQueue<Segment>& waiting = waiting_[partition];
  const Time head = waiting.first_time();
  if (head >= end) return false;
  Segment& segment = waiting.pop();
  ++meetings_;
  notice = {segment.tag, kUnknown, kUnknown, head};
  if (segment.train == nullptr) {
    release(segment);
  } else {
    walk(segment, head, notice);
  }
  return true;
}

Time Flows::first_time() const {
  Time first = kUnknown;
  for (const auto& waiting : waiting_) first = std::min(first, waiting.first_time());
  return first;
}

// The head is at a link. The segment passes until the next link on which flows meet.
Flows::Passage Flows::pass(Segment& segment, Time head) {
  const Train& train = *segment.train;
  const Hop& first = segment.hops[segment.hop];
  if (first.is_shared) ties_.note(first.link, first.moves, head);
  Passage passage;
  if (segment.hop == 0) segment.tail_in = head + train.pace_of(segment.number);
  do {
    const Train::Hop& cost = train.hops[segment.hop];
    const Hop& hop = segment.hops[segment.hop];
    Time& free_at = free_at_[hop.link];
    Time start = occupy(head, train.occupied(cost, segment.number), free_at);
    Time tail = tail_left(free_at, segment.tail_in);
    if (hop.beside_count > 0) tail = std::max(tail, occupy_beside(hop, segment, head, start));
    if (segment.hop == 0) passage.left = tail;
    segment.tail_in = tail + cost.latency;
    head = start + cost.latency;
    ++segment.hop;
  } while (segment.hop < segment.hop_count && !segment.hops[segment.hop].is_meeting);
  passage.head = head;
  return passage;
}

// Returns the time at which the last link is free again, and raises `start` to the latest start.
Time Flows::occupy_beside(const Hop& hop, const Segment& segment, Time head, Time& start) {
  const Train& train = *segment.train;
  const Train::Hop* cost = train.hops.data() + hop.costs;
  Time end;
  for (const std::uint32_t place : table_.beside(hop)) {
    Time& free_at = free_at_[place];
    const Time occupied = train.occupied(*cost++, segment.number);
    start = std::max(start, occupy(head, occupied, free_at));
    end = std::max(end, free_at);
  }
  return end;
}

// Passes a segment and its successors, until one has to wait for other flows.
void Flows::walk(Segment& at_head, Time head, Notice& notice) {
  const Train& train = *at_head.train;
  Segment* segment = &at_head;
  for (;;) {
    const bool is_at_sender = segment->hop == 0;
    const bool is_last = segment->number + 1 == train.segments;
    const Passage passage = pass(*segment, head);
    if (is_at_sender && is_last) notice.left = passage.left;
    const bool is_through = segment->hop == segment->hop_count;
    if (is_through && is_last) notice.arrived = segment->tail_in;
    if (!is_through) await(*segment, passage.head);
    if (!is_at_sender || is_last) {
      if (is_through) release(*segment);
      return;
    }
    // The record of a completed segment is reused for its successor.
    if (!is_through) segment = &copy_of(*segment);
    segment->hop = 0;
    ++segment->number;
    head = passage.left;
    if (segment->hops[0].is_meeting) return await(*segment, head);
  }
}

void Flows::count(const Flow& flow, std::vector<LinkLoad>& loads) const {
  if (flow.count == 0) return;
  const std::span<const Hop> hops = table_.hops_of(flow);
  for (std::size_t h = 0; h < hops.size(); ++h) {
    count_at(hops[h].link, flow, flow.counted->hops[h], loads);
    std::size_t cost = hops[h].costs;
    for (const std::uint32_t place : table_.beside(hops[h])) {
      count_at(place, flow, flow.counted->hops[cost++], loads);
    }
  }
}

void Flows::count_at(std::uint32_t place, const Flow& flow, const Train::Hop& cost,
                     std::vector<LinkLoad>& loads) {
  LinkLoad& load = loads[place];
  load.bytes += flow.counted->size * flow.count;
  load.busy += cost.busy * static_cast<std::int64_t>(flow.count);
  load.messages += flow.count;
}

void Flows::shift(Time by) {
  for (Time& free_at : free_at_) free_at += by;
  for (auto& waiting : waiting_) {
    waiting.for_each([by](Entry& entry) {
      entry.at += by;
      entry.segment->tail_in += by;
    });
  }
}

Flows::Counts Flows::counts() const {
  Counts counts{loads_, meetings_};
  for (const Flow& flow : table_.flows()) count(flow, counts.loads);
  return counts;
}

void Flows::count_again(const Counts& before, std::uint64_t times) {
  const Counts now = counts();
  for (std::size_t place = 0; place < loads_.size(); ++place) {
    const LinkLoad& from = before.loads[place];
    const LinkLoad& to = now.loads[place];
    loads_[place].bytes += (to.bytes - from.bytes) * times;
    loads_[place].busy += (to.busy - from.busy) * static_cast<std::int64_t>(times);
    loads_[place].messages += (to.messages - from.messages) * times;
  }
  meetings_ += (now.meetings - before.meetings) * times;
}

std::vector<std::pair<int, LinkLoad>> Flows::used_loads() const {
  const std::vector<LinkLoad> loads = counts().loads;
  std::vector<std::pair<int, LinkLoad>> used;
  for (std::size_t place = 0; place < table_.links().size(); ++place) {
    used.emplace_back(table_.links()[place], loads[place]);
  }
  return used;
}

std::vector<LinkLoad> Flows::loads() const {
  std::vector<LinkLoad> all(table_.links_of_machine());
  for (const auto& [link, load] : used_loads()) all[index(link)] = load;
  return all;
}

void Flows::release(Segment& segment) {
  segment.next_free = free_segments_;
  free_segments_ = &segment;
}

Flows::Segment& Flows::copy_of(const Segment& segment) {
  Segment& copy = new_segment();
  copy = segment;
  return copy;
}

Flows::Segment& Flows::new_segment() {
  if (free_segments_ == nullptr) return segments_.emplace_back();
  Segment& segment = *free_segments_;
  free_segments_ = segment.next_free;
  return segment;
}

}  // namespace towpath::gpu_links
