// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

// Knowledge of kernels about each other, as vector clocks. A kernel's clock advances with
// everything it does that others may learn of; a kernel that sees the effect knows what the first
// kernel knew then.

namespace towpath::tenstorrent {

// Place where kernels run, numbered through all cores of the cluster; successive kernels share it.
using Place = std::uint32_t;
// A transmit queue of an Ethernet core, numbered through the cluster. What it sends has a position:
// the number of bytes sent before.
using Stream = std::uint32_t;

class Knowledge {
 public:
  std::uint32_t clock(Place place) const { return place < clocks_.size() ? clocks_[place] : 0; }
  // Position up to which everything is known to have arrived at the far end.
  std::uint64_t arrived(Stream stream) const {
    return stream < arrived_.size() ? arrived_[stream] : 0;
  }
  bool covers(const Knowledge& other) const;
  void join(const Knowledge& other);
  void learn_clock(Place place, std::uint32_t clock);
  void learn_arrival(Stream stream, std::uint64_t position);

 private:
  std::vector<std::uint32_t> clocks_;
  std::vector<std::uint64_t> arrived_;
};

// Knowledge at one moment of a place's clock; it travels with what is sent.
struct Stamp {
  std::shared_ptr<const Knowledge> known;
  Place place = 0;
  std::uint32_t clock = 0;
};

// Whether who was at `stamp` knew of another moment.
inline bool covers(const Stamp& stamp, const Stamp& other) {
  return stamp.place == other.place || stamp.known->clock(other.place) >= other.clock;
}

// The growing knowledge of one kernel. Stamps share it until it grows.
class Learner {
 public:
  Learner(Place place, std::uint32_t clock)
      : known_(std::make_shared<Knowledge>()), place_(place), clock_(clock) {}

  Place place() const { return place_; }
  std::uint32_t clock() const { return clock_; }
  // Advances the clock.
  Stamp step() { return {known_, place_, ++clock_}; }
  bool knows(const Stamp& stamp) const {
    return stamp.place == place_ || known_->clock(stamp.place) >= stamp.clock;
  }
  bool knows_arrived(Stream stream, std::uint64_t position) const {
    return known_->arrived(stream) >= position;
  }
  void learn(const Stamp& stamp);
  void learn(const Knowledge& known);
  void learn_arrival(Stream stream, std::uint64_t position);
  const Knowledge& known() const { return *known_; }

 private:
  // A copy that is not shared, for changes.
  Knowledge& own();

  std::shared_ptr<Knowledge> known_;
  Place place_;
  std::uint32_t clock_;
};

// A value for each byte of a memory, stored as ranges.
template <typename Value>
class RangeMap {
 public:
  void assign(std::uint64_t first, std::uint64_t end, Value value) {
    erase(first, end);
    ranges_.emplace(first, Range{end, std::move(value)});
  }

  void erase(std::uint64_t first, std::uint64_t end) {
    auto at = first_overlap(first);
    while (at != ranges_.end() && at->first < end) {
      const std::uint64_t begin = at->first;
      Range range = std::move(at->second);
      at = ranges_.erase(at);
      if (range.end > end) ranges_.emplace(end, Range{range.end, range.value});
      if (begin < first) ranges_.emplace(begin, Range{first, std::move(range.value)});
    }
  }

  // Calls action(first, end, value) for each piece inside the range, in order. It must not change
  // the map.
  template <typename Action>
  void each(std::uint64_t first, std::uint64_t end, Action action) const {
    for (auto at = first_overlap(first); at != ranges_.end() && at->first < end; ++at) {
      action(std::max(at->first, first), std::min(at->second.end, end), at->second.value);
    }
  }

 private:
  struct Range {
    std::uint64_t end;
    Value value;
  };

  template <typename Ranges>
  static auto first_overlap_in(Ranges& ranges, std::uint64_t first) {
    auto at = ranges.upper_bound(first);
    if (at != ranges.begin() && std::prev(at)->second.end > first) --at;
    return at;
  }
  auto first_overlap(std::uint64_t first) { return first_overlap_in(ranges_, first); }
  auto first_overlap(std::uint64_t first) const { return first_overlap_in(ranges_, first); }

  std::map<std::uint64_t, Range> ranges_;
};

}  // namespace towpath::tenstorrent
