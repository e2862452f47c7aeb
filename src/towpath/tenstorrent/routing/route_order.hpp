// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "towpath/tenstorrent/routing/static_routes.hpp"

// The insertion order of static routes into the cores' lists determines their timesteps: routes
// without a common core run in parallel unless an intermediate route waits for both.

namespace towpath::tenstorrent::routing {

struct OrderSearch {
  int buffers_per_core = 1;
  int exact_routes_max = 10;    // above this number the search is heuristic
  int candidates_max = 20'000;  // orders examined by the heuristic
  std::uint64_t seed = 1;       // of the heuristic
};

struct RouteOrder {
  std::vector<int> order;
  int timesteps = 0;
  bool is_best = false;  // proven optimal
};

// Lower bound for every order, from the busiest core and the longest route. 0 without routes.
int timesteps_min(std::span<const Route> routes);

// The best order, or for many routes a good one that is never worse than the given order.
// Deterministic for a seed.
RouteOrder find_route_order(std::span<const Route> routes, const OrderSearch& search = {});

}  // namespace towpath::tenstorrent::routing
