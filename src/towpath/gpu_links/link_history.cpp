// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu_links/link_history.hpp"

#include <algorithm>

namespace towpath::gpu_links {

void LinkHistory::double_intervals() {
  for (std::vector<std::uint64_t>& link : carried_) {
    if (link.empty()) continue;
    for (std::size_t i = 0; i < kIntervals / 2; ++i) link[i] = link[2 * i] + link[2 * i + 1];
    std::fill(link.begin() + kIntervals / 2, link.end(), 0);
  }
  interval_ = interval_ * 2;
}

void LinkHistory::add(std::size_t link, Time begin, Time end, Bytes size) {
  while (end.ps() > interval_.ps() * static_cast<std::int64_t>(kIntervals)) double_intervals();
  std::vector<std::uint64_t>& carried = carried_[link];
  if (carried.empty()) carried.assign(kIntervals, 0);
  const std::int64_t duration_ps = std::max<std::int64_t>((end - begin).ps(), 1);
  // Differences of cumulative sums, so that rounding loses no byte.
  std::uint64_t before = 0;
  for (std::int64_t i = begin.ps() / interval_.ps(); before < size.count(); ++i) {
    const std::int64_t passed_ps = std::min((i + 1) * interval_.ps() - begin.ps(), duration_ps);
    const auto until = static_cast<std::uint64_t>(Int128{size.count()} * passed_ps / duration_ps);
    const auto place = std::min(static_cast<std::size_t>(i), kIntervals - 1);
    carried[place] += until - before;
    before = until;
  }
}

}  // namespace towpath::gpu_links
