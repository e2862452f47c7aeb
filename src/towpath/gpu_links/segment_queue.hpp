// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "towpath/base/units.hpp"

namespace towpath::gpu_links {

// The pending segments and calls of a partition of Flows. At the same time, the lowest order is
// first. Most entries come after all or most of the others and go into a sorted row, and the others
// go into a heap.
template <typename Segment>
class SegmentQueue {
 public:
  struct Entry {
    Time at;
    std::uint64_t order = 0;
    Segment* segment = nullptr;
    bool operator>(const Entry& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  // Time::max() when the queue is empty.
  Time first_time() const {
    if (is_first_of_row()) return row_[first_].at;
    return heap_.empty() ? Time::max() : heap_.front().at;
  }

  void push(const Entry& entry) {
    if (row_.size() == row_.capacity() && first_ > row_.size() / 2) {
      row_.erase(row_.begin(), row_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
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

  Segment& pop() {
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

  // All entries, in no order. They may be changed if their order is not.
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

}  // namespace towpath::gpu_links
