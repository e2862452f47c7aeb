// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "towpath/tenstorrent/routing/static_routes.hpp"

// The order in which static routes are added to the lists of cores determines how many timesteps
// they take: routes that do not share cores run side by side only if no route between them waits
// for both.

namespace towpath::tenstorrent::routing {

struct OrderSearch {
  int buffers_per_core = 1;
  int exact_routes_max = 10;    // most routes for which the search is exact
  int candidates_max = 20'000;  // orders that a search of more routes examines
  std::uint64_t seed = 1;       // of that search
};

struct RouteOrder {
  std::vector<int> order;
  int timesteps = 0;
  bool is_best = false;  // no order takes fewer timesteps
};

// Lower bound for every order: neither a core nor a route can be done earlier. 0 without routes.
int timesteps_min(std::span<const Route> routes);

// The best order, or for many routes a good one that is never worse than the given order. The
// result is the same for the same seed.
RouteOrder find_route_order(std::span<const Route> routes, const OrderSearch& search = {});

}  // namespace towpath::tenstorrent::routing
