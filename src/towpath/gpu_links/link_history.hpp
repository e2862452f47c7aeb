// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"

// The bytes that each link carried over time, in intervals of equal length. When time goes beyond
// the last interval, neighbours are merged, so memory is bounded and no byte is lost.

namespace towpath::gpu_links {

class LinkHistory {
 public:
  static constexpr std::size_t kIntervals = 512;

  explicit LinkHistory(std::size_t links) : carried_(links) {}

  // A link carries bytes evenly from begin to end.
  void add(std::size_t link, Time begin, Time end, Bytes size);

  std::size_t links() const { return carried_.size(); }
  Time interval() const { return interval_; }
  // Bytes by interval. Empty for an idle link.
  const std::vector<std::uint64_t>& carried(std::size_t link) const { return carried_[link]; }

 private:
  void double_intervals();

  Time interval_ = Time::from_ns(16);
  std::vector<std::vector<std::uint64_t>> carried_;
};

}  // namespace towpath::gpu_links
