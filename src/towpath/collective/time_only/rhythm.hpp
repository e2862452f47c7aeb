// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "towpath/base/units.hpp"

namespace towpath::collective::time_only {

// Detects a steady state: the smallest k for which end[i] - end[i - k] is constant over three
// cycles.
class Rhythm {
 public:
  void clear() { count_ = 0; }
  void add(Time end) { ends_[count_++ % kEnds] = end; }
  // end[i] - end[i - k], or zero if there is no such k.
  Time period() const;

 private:
  static constexpr std::size_t kCycleMax = 8;
  static constexpr std::size_t kEnds = 4 * kCycleMax;  // a power of two

  bool has_cycle(std::size_t cycle) const;
  Time end(std::size_t ago) const { return ends_[(count_ - 1 - ago) % kEnds]; }

  std::array<Time, kEnds> ends_{};
  std::size_t count_ = 0;
};

}  // namespace towpath::collective::time_only
