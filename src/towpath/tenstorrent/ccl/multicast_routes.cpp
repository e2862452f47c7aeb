// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/multicast_routes.hpp"

#include <algorithm>
#include <utility>

namespace towpath::tenstorrent::ccl {

using fabric::Dimension;

namespace {

using Hops = std::pair<int, int>;  // and the rank at their end
using Routes = std::array<std::vector<Hops>, kWays>;

std::array<int, kWays> hops_to(const Dimension& line, int steps) {
  if (!line.is_ring) return {steps, -steps};
  return {(line.size + steps) % line.size, (line.size - steps) % line.size};
}

// By the shorter direction; half way round a ring by both.
void add(Routes& routes, const Dimension& line, const Target& target) {
  const std::array<int, kWays> hops = hops_to(line, target.steps);
  for (std::size_t way = 0; way < kWays; ++way) {
    const bool is_shorter = line.is_ring ? hops[way] <= hops[1 - way] : hops[way] > 0;
    if (is_shorter) routes[way].emplace_back(hops[way], target.rank);
  }
}

// Whether no chip between the first and the last is left out.
bool is_unbroken(const std::vector<Hops>& hops) {
  return hops.empty() || hops.back().first - hops.front().first + 1 == std::ssize(hops);
}

// Whether both directions end at the chip half way round. If one of them has no other chip, it ends
// before.
bool share_last(Routes& routes, const Dimension& line) {
  const std::vector<Hops>& first = routes.front();
  if (!line.is_ring || first.empty() || 2 * first.back().first != line.size) return false;
  if (std::min(first.size(), routes.back().size()) > 1) return true;
  routes.back().pop_back();
  return false;
}

}  // namespace

bool Targets::reaches(int rank, int way, bool has_bytes) const {
  if (shares_last && !has_bytes && way == 1 && rank == ranks.back()) return false;
  return std::ranges::find(ranks, rank) != ranks.end();
}

std::optional<BothWays> shorter_ways(const Dimension& line, std::span<const Target> targets) {
  Routes routes;
  for (const Target& target : targets) add(routes, line, target);
  for (auto& each : routes) std::ranges::sort(each);
  const bool shares_last = share_last(routes, line);
  BothWays found;
  for (std::size_t way = 0; way < kWays; ++way) {
    if (!is_unbroken(routes[way])) return std::nullopt;
    for (const Hops& each : routes[way]) found[way].ranks.push_back(each.second);
    if (!routes[way].empty()) found[way].skipped = routes[way].front().first - 1;
    found[way].shares_last = shares_last;
  }
  return found;
}

BothWays all_round(const Dimension& ring, std::span<const Target> targets) {
  BothWays found;
  for (std::size_t way = 0; way < kWays; ++way) {
    std::vector<Hops> hops;
    for (const Target& target : targets) {
      hops.emplace_back(hops_to(ring, target.steps)[way], target.rank);
    }
    std::ranges::sort(hops);
    for (const Hops& each : hops) found[way].ranks.push_back(each.second);
  }
  return found;
}

}  // namespace towpath::tenstorrent::ccl
