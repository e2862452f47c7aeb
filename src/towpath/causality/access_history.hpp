// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// Race detection for a fixed number of agents with few words each (FastTrack): clocks of equal
// length in one array, and per memory cell the last store and the loads since.

namespace towpath::causality {

// Clocks of equal length, allocated and released by number.
class ClockPool {
 public:
  explicit ClockPool(std::size_t length) : length_(length) {}

  std::uint32_t copy_of(const std::uint32_t* clock) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(words_.size() / length_));
      words_.resize(words_.size() + length_);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    std::copy(clock, clock + length_, at(number));
    return number;
  }
  void release(std::uint32_t number) { free_.push_back(number); }
  const std::uint32_t* at(std::uint32_t number) const { return words_.data() + number * length_; }
  std::uint32_t* at(std::uint32_t number) { return words_.data() + number * length_; }
  // Raises one clock to another.
  void join(std::uint32_t* clock, const std::uint32_t* other) const {
    for (std::size_t i = 0; i < length_; ++i) clock[i] = std::max(clock[i], other[i]);
  }

 private:
  std::size_t length_;
  std::vector<std::uint32_t> words_;
  std::vector<std::uint32_t> free_;
};

// An access to a cell, with its agent's local time.
struct TimedAccess {
  static constexpr std::int32_t kNobody = -1;

  std::int32_t agent = kNobody;
  std::uint32_t time = 0;
  std::uint32_t step = 0;
};

class AccessHistory {
 public:
  // Both call unordered(earlier, earlier_stores) for each earlier conflicting access without
  // is_ordered(earlier).
  template <typename IsOrdered, typename Unordered>
  void load(const TimedAccess& access, const IsOrdered& is_ordered, const Unordered& unordered) {
    if (!is_before(store_, access, is_ordered)) unordered(store_, true);
    for (TimedAccess& earlier : loads_) {
      if (earlier.agent != access.agent) continue;
      earlier = access;
      return;
    }
    loads_.push_back(access);
  }
  template <typename IsOrdered, typename Unordered>
  void store(const TimedAccess& access, const IsOrdered& is_ordered, const Unordered& unordered) {
    if (!is_before(store_, access, is_ordered)) unordered(store_, true);
    for (const TimedAccess& earlier : loads_) {
      if (!is_before(earlier, access, is_ordered)) unordered(earlier, false);
    }
    store_ = access;
    loads_.clear();
  }

 private:
  template <typename IsOrdered>
  static bool is_before(const TimedAccess& earlier, const TimedAccess& access,
                        const IsOrdered& is_ordered) {
    return earlier.agent == TimedAccess::kNobody || earlier.agent == access.agent ||
           is_ordered(earlier);
  }

  TimedAccess store_;
  std::vector<TimedAccess> loads_;  // since the store, at most one per agent
};

}  // namespace towpath::causality
