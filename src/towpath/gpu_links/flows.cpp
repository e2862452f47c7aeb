// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu_links/flows.hpp"

#include <algorithm>
#include <functional>

#include "towpath/base/index.hpp"

namespace towpath::gpu_links {
namespace {

// Where a link's flows come from: the sender itself, a link, or several.
constexpr int kNobody = -3;
constexpr int kSeveral = -2;
constexpr int kSender = -1;

constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

// In the order of what waits for one moment.
constexpr std::uint64_t kInTurn = std::uint64_t{1} << 63;

Time occupied_by(const Flows::Train::Hop& hop, std::uint32_t number, std::uint32_t segments) {
  if (number == 0) return hop.first;
  return number + 1 == segments ? hop.last : hop.whole;
}

Time pace_of(const Flows::Train& train, std::uint32_t number) {
  return number + 1 == train.segments ? train.pace_last : train.pace_whole;
}

}  // namespace

Flows::Flows(const Network& network, Protocol protocol)
    : network_(network),
      protocol_(protocol),
      place_of_(network.machine().links().size(), kNowhere) {}

std::uint32_t Flows::place_of(int link) {
  std::uint32_t& place = place_of_[index(link)];
  if (place == kNowhere) {
    place = static_cast<std::uint32_t>(links_.size());
    links_.push_back(link);
    free_at_.emplace_back();
    loads_.emplace_back();
  }
  return place;
}

std::uint32_t Flows::add(const Route& route, std::uint64_t turn, const Group& group) {
  Flow flow;
  flow.first_hop = static_cast<std::uint32_t>(hops_.size());
  flow.hops = static_cast<std::uint16_t>(route.links.size());
  flow.turn = turn;
  LinkCosts costs;
  for (std::size_t h = 0; h < route.links.size(); ++h) {
    const int number = route.links[h];
    const machine::Link& link = network_.machine().links()[index(number)];
    costs.emplace_back(rate_on(number, group), link.message_overhead, link.latency);
    Hop& hop = hops_.emplace_back();
    hop.link = place_of(number);
    if (!route.moves.empty()) hop.moves = route.moves[h];
  }
  add_beside(hops_[flow.first_hop], group.beside_first, group, costs);
  add_beside(hops_.back(), group.beside_last, group, costs);
  const auto [at, is_new] =
      kind_of_.emplace(std::move(costs), static_cast<std::uint32_t>(kinds_.size()));
  if (is_new) kinds_.push_back({&at->first, {}});
  flow.kind = at->second;
  flows_.push_back(flow);
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

Rate Flows::rate_on(int link, const Group& group) const {
  const Rate rate = network_.rate_on(index(link), protocol_);
  return group.rate_max == Rate() ? rate : std::min(rate, group.rate_max);
}

// Flows of a rank share the list.
void Flows::add_beside(Hop& hop, std::span<const int> links, const Group& group, LinkCosts& costs) {
  if (links.empty()) return;
  hop.beside_count = static_cast<std::uint16_t>(links.size());
  hop.costs = static_cast<std::uint32_t>(costs.size());
  const auto [known, is_new] =
      beside_known_.emplace(links.data(), static_cast<std::uint32_t>(beside_.size()));
  hop.beside = known->second;
  for (const int number : links) {
    if (is_new) beside_.push_back(place_of(number));
    const machine::Link& link = network_.machine().links()[index(number)];
    costs.emplace_back(rate_on(number, group), link.message_overhead, link.latency);
  }
}

void Flows::join() {
  std::vector<int> from(free_at_.size(), kNobody);
  for (const std::uint32_t place : beside_) from[place] = kSeveral;
  for (const Flow& flow : flows_) {
    int before = kSender;
    for (const Hop& hop : hops_of(flow)) {
      int& known = from[hop.link];
      if (flow.turn == kNoTurn) known = kSeveral;  // others may hold up the one in front
      const bool is_same = known == before && before != kSender;
      if (known == kNobody) {
        known = before;
      } else if (!is_same) {
        known = kSeveral;
      }
      before = static_cast<int>(hop.link);
    }
  }
  for (Hop& hop : hops_) {
    hop.is_meeting = from[hop.link] == kSeveral;
    hop.is_shared = hop.is_meeting && network_.is_shared(links_[hop.link]);
  }
  for (Flow& flow : flows_) {
    flow.is_alone = std::none_of(hops_of(flow).begin(), hops_of(flow).end(),
                                 [](const Hop& hop) { return hop.is_meeting; });
  }
}

Time Flows::latency_after_meeting(std::uint32_t flow) const {
  const std::span<const Hop> hops = hops_of(flows_[flow]);
  Time latency;
  for (std::size_t h = hops.size(); h-- > 0;) {
    latency += network_.machine().links()[index(links_[hops[h].link])].latency;
    if (hops[h].is_meeting) break;
  }
  return latency;
}

void Flows::divide(std::span<const std::uint32_t> partition_of_flow, std::uint32_t partitions) {
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) {
    flows_[flow].partition = partition_of_flow[flow];
  }
  if (partitions > 1) waiting_.resize(partitions);
}

const Flows::Train& Flows::train(std::uint32_t flow, Bytes size, Rate pace) {
  Kind& kind = kinds_[flows_[flow].kind];
  for (const Train& known : kind.trains) {
    if (known.size == size && known.pace == pace) return known;
  }
  Train& train = kind.trains.emplace_back();
  train.size = size;
  train.pace = pace;
  const std::uint64_t whole = kSegment.count();
  train.segments = static_cast<std::uint32_t>((size.count() + whole - 1) / whole);
  const Bytes last = size - kSegment * (train.segments - 1);
  train.pace_whole = transfer_time(kSegment, pace);
  train.pace_last = transfer_time(last, pace);
  for (const auto& [rate, overhead, latency] : *kind.costs) {
    Train::Hop hop;
    hop.whole = transfer_time(kSegment, rate);
    hop.last = transfer_time(last, rate);
    hop.first = (train.segments == 1 ? hop.last : hop.whole) + overhead;
    hop.latency = latency;
    hop.busy = hop.first;
    if (train.segments > 1) hop.busy += hop.whole * (train.segments - 2) + hop.last;
    train.hops.push_back(hop);
  }
  return train;
}

Flows::Notice Flows::send(std::uint32_t number, const Train& train, Time when, std::uint64_t tag) {
  Flow& flow = flows_[number];
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
  first.hops = hops_.data() + flow.first_hop;
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

// On its only link a segment is not held up after the first: it comes when the one before has left.
void Flows::send_over_link(const Train& train, Time& free_at, Time when, Notice& notice) {
  const Train::Hop& cost = train.hops.front();
  free_at = std::max(when, free_at) + cost.first;
  Time left = std::max(free_at, when + pace_of(train, 0));
  if (train.segments > 1) {
    left += std::max(cost.whole, train.pace_whole) * (train.segments - 2);
    free_at = left + cost.last;
    left = std::max(free_at, left + train.pace_last);
  }
  notice.left = left;
  notice.arrived = left + cost.latency;
}

// All at once, segment by segment.
void Flows::send_alone(const Flow& flow, const Train& train, Time when, Notice& notice) {
  const std::span<const Hop> hops = hops_of(flow);
  if (hops.size() == 1) return send_over_link(train, free_at_[hops.front().link], when, notice);
  Time left = when;
  Time tail;
  for (std::uint32_t number = 0; number < train.segments; ++number) {
    Time head = left;
    tail = head + pace_of(train, number);
    for (std::size_t h = 0; h < hops.size(); ++h) {
      const Train::Hop& cost = train.hops[h];
      Time& free_at = free_at_[hops[h].link];
      const Time start = std::max(head, free_at);
      free_at = start + occupied_by(cost, number, train.segments);
      tail = std::max(free_at, tail);
      if (h == 0) left = tail;
      tail += cost.latency;
      head = start + cost.latency;
    }
    if (train.segments > 3) number = repeat_whole(flow, train, number, left);
  }
  notice.left = left;
  notice.arrived = tail;
}

// A whole segment that found all links later than the one before by the same time will be followed
// so by all others of its size. Takes those at once; returns the number of the last one.
std::uint32_t Flows::repeat_whole(const Flow& flow, const Train& train, std::uint32_t number,
                                  Time& left) {
  const std::span<const Hop> hops = hops_of(flow);
  if (number == 0) free_at_before_.assign(hops.size() + 1, Time());
  const Time step = left - free_at_before_.back();
  bool is_steady = number > 0 && number + 2 < train.segments;
  free_at_before_.back() = left;
  for (std::size_t h = 0; h < hops.size(); ++h) {
    const Time free_at = free_at_[hops[h].link];
    is_steady &= free_at - free_at_before_[h] == step;
    free_at_before_[h] = free_at;
  }
  if (!is_steady) return number;
  const std::uint32_t last_whole = train.segments - 2;
  const Time all = step * (last_whole - number);
  left += all;
  for (const Hop& hop : hops) free_at_[hop.link] += all;
  return last_whole;
}

// The head reaches a link where it may meet others.
void Flows::await(Segment& segment, Time head) {
  const bool has_turn = segment.turn != kNoTurn;
  const std::uint64_t order = has_turn ? order_of(segment) : sequence_++;
  if (waiting_.empty()) {
    return queue_.push_ordered(head, has_turn ? 0 : -1, order, nullptr, &segment);
  }
  waiting_[segment.partition].push(head, has_turn ? kInTurn | order : order, segment);
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
  Segment* segment = nullptr;
  Time head;
  if (waiting_.empty()) {
    sim::Event event;
    if (!queue_.pop(end - Time::from_ps(1), event)) return false;
    segment = static_cast<Segment*>(event.context);
    head = event.time();
  } else {
    Waiting& waiting = waiting_[partition];
    head = waiting.first_time();
    if (head >= end) return false;
    segment = &waiting.pop();
  }
  ++meetings_;
  notice = {segment->tag, kUnknown, kUnknown, head};
  if (segment->train == nullptr) {
    release(*segment);
  } else {
    walk(*segment, head, notice);
  }
  return true;
}

Time Flows::first_time() const {
  Time first = queue_.first_time();
  for (const Waiting& waiting : waiting_) first = std::min(first, waiting.first_time());
  return first;
}

Time Flows::Waiting::first_time() const {
  if (is_first_of_row()) return row_[first_].at;
  return heap_.empty() ? kUnknown : heap_.front().at;
}

void Flows::Waiting::push(Time at, std::uint64_t order, Segment& segment) {
  if (row_.size() == row_.capacity() && first_ > row_.size() / 2) {
    row_.erase(row_.begin(), row_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  const Entry entry{at, order, &segment};
  const std::size_t least = std::max(first_, row_.size() - std::min(row_.size(), kLookedAtMax));
  std::size_t place = row_.size();
  while (place > least && row_[place - 1] > entry) --place;
  if (place == least && place > first_ && row_[place - 1] > entry) {
    heap_.push_back(entry);
    std::ranges::push_heap(heap_, std::greater<>());
    return;
  }
  row_.insert(row_.begin() + static_cast<std::ptrdiff_t>(place), entry);
}

Flows::Segment& Flows::Waiting::pop() {
  if (!is_first_of_row()) {
    std::ranges::pop_heap(heap_, std::greater<>());
    Segment& first = *heap_.back().segment;
    heap_.pop_back();
    return first;
  }
  Segment& first = *row_[first_].segment;
  if (++first_ == row_.size()) {
    row_.clear();
    first_ = 0;
  }
  return first;
}

// The head is at a link. Takes the segment to the next link where it may meet others.
Flows::Passage Flows::pass(Segment& segment, Time head) {
  const Train& train = *segment.train;
  const Hop& first = segment.hops[segment.hop];
  if (first.is_shared) ties_.note(first.link, first.moves, head);
  Passage passage;
  if (segment.hop == 0) segment.tail_in = head + pace_of(train, segment.number);
  do {
    const Train::Hop& cost = train.hops[segment.hop];
    const Hop& hop = segment.hops[segment.hop];
    Time& free_at = free_at_[hop.link];
    Time start = std::max(head, free_at);
    free_at = start + occupied_by(cost, segment.number, train.segments);
    Time tail = std::max(free_at, segment.tail_in);
    if (hop.beside_count > 0) tail = std::max(tail, occupy_beside(hop, segment, head, start));
    if (segment.hop == 0) passage.left = tail;
    segment.tail_in = tail + cost.latency;
    head = start + cost.latency;
    ++segment.hop;
  } while (segment.hop < segment.hop_count && !segment.hops[segment.hop].is_meeting);
  passage.head = head;
  return passage;
}

// Returns when the last one is free again, and makes `start` as late as the latest begins.
Time Flows::occupy_beside(const Hop& hop, const Segment& segment, Time head, Time& start) {
  const Train& train = *segment.train;
  const Train::Hop* cost = train.hops.data() + hop.costs;
  Time end;
  for (const std::uint32_t place : beside(hop)) {
    Time& free_at = free_at_[place];
    const Time begin = std::max(head, free_at);
    start = std::max(start, begin);
    free_at = begin + occupied_by(*cost++, segment.number, train.segments);
    end = std::max(end, free_at);
  }
  return end;
}

// The same, and with the segments that follow it, as far as they need not wait for others.
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
    // The record of a segment that is through serves the one behind it.
    if (!is_through) segment = &copy_of(*segment);
    segment->hop = 0;
    ++segment->number;
    head = passage.left;
    if (segment->hops[0].is_meeting) return await(*segment, head);
  }
}

void Flows::count(const Flow& flow, std::vector<LinkLoad>& loads) const {
  if (flow.count == 0) return;
  const std::span<const Hop> hops = hops_of(flow);
  for (std::size_t h = 0; h < hops.size(); ++h) {
    count_at(hops[h].link, flow, flow.counted->hops[h], loads);
    std::size_t cost = hops[h].costs;
    for (const std::uint32_t place : beside(hops[h])) {
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
  for_each_waiting([by](Entry& entry) {
    entry.at += by;
    entry.segment->tail_in += by;
  });
}

Flows::Counts Flows::counts() const {
  Counts counts{loads_, meetings_};
  for (const Flow& flow : flows_) count(flow, counts.loads);
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
  for (std::size_t place = 0; place < links_.size(); ++place) {
    used.emplace_back(links_[place], loads[place]);
  }
  return used;
}

std::vector<LinkLoad> Flows::loads() const {
  std::vector<LinkLoad> all(place_of_.size());
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
