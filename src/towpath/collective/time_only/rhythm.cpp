// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/time_only/rhythm.hpp"

namespace towpath::collective::time_only {

Time Rhythm::period() const {
  for (std::size_t cycle = 1; cycle <= kCycleMax; ++cycle) {
    if (has_cycle(cycle)) return end(0) - end(cycle);
  }
  return Time();
}

bool Rhythm::has_cycle(std::size_t cycle) const {
  if (count_ < 3 * cycle + 1) return false;
  const Time period = end(0) - end(cycle);
  for (std::size_t ago = 1; ago + cycle <= 3 * cycle; ++ago) {
    if (end(ago) - end(ago + cycle) != period) return false;
  }
  return true;
}

}  // namespace towpath::collective::time_only
