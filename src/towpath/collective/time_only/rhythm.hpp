// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "towpath/base/units.hpp"

namespace towpath::collective::time_only {

// Tells when what is repeated ends at regular times: each so much later than the one `cycle`
// before.
class Rhythm {
 public:
  void clear() { count_ = 0; }
  void add(Time end) { ends_[count_++ % kEnds] = end; }
  // The time of the shortest cycle that the last ends have, over three cycles; zero if they have
  // none.
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
