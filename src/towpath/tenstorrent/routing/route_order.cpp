// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/routing/route_order.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "towpath/sim/random.hpp"

namespace towpath::tenstorrent::routing {

namespace {

// Routes with consecutively numbered cores.
struct NumberedHop {
  std::size_t from;
  std::size_t to;
};

struct Problem {
  std::vector<std::vector<NumberedHop>> routes;
  std::vector<std::vector<bool>> share_cores;  // by pair of routes
  std::size_t cores = 0;
  std::size_t buffers = 1;
  int least = 0;  // least timesteps of any order
};

Problem problem_of(std::span<const Route> routes, int buffers_per_core) {
  if (buffers_per_core < 1) throw std::invalid_argument("a core needs at least one buffer");
  std::map<machine::EthernetEnd, std::size_t> number_of;
  const auto number = [&](machine::EthernetEnd core) {
    return number_of.try_emplace(core, number_of.size()).first->second;
  };
  Problem problem;
  for (const Route& route : routes) {
    auto& numbered = problem.routes.emplace_back();
    for (const Hop& hop : route) {
      const std::size_t from = number(hop.from);
      numbered.push_back({from, number(hop.to)});
    }
  }
  problem.cores = number_of.size();
  problem.buffers = static_cast<std::size_t>(buffers_per_core);
  problem.least = timesteps_min(routes);
  for (const auto& route : problem.routes) {
    std::vector<bool> used(problem.cores);
    for (const auto& [from, to] : route) used[from] = used[to] = true;
    auto& shared = problem.share_cores.emplace_back();
    for (const auto& other : problem.routes) {
      shared.push_back(std::any_of(other.begin(), other.end(), [&](const NumberedHop& hop) {
        return used[hop.from] || used[hop.to];
      }));
    }
  }
  return problem;
}

// State after the routes added so far. A route added later is behind them in every list, so it does
// not affect them.
struct Progress {
  explicit Progress(const Problem& problem) : busy_until(problem.cores), freed_at(problem.cores) {}

  std::vector<int> busy_until;             // by core: timestep of its last command
  std::vector<std::vector<int>> freed_at;  // by core and received packet: when its buffer is free
  int timesteps = 0;
  int total = 0;  // sum of the routes' last timesteps
};

void add_route(const Problem& problem, std::size_t number, Progress& progress) {
  int arrived = 0;
  std::vector<int>* holder = nullptr;  // buffers of the core that holds the packet
  for (const auto& [from, to] : problem.routes[number]) {
    std::vector<int>& freed = progress.freed_at[to];
    const int free = freed.size() < problem.buffers ? 0 : freed[freed.size() - problem.buffers];
    const int at =
        1 + std::max({arrived, progress.busy_until[from], progress.busy_until[to], free});
    progress.busy_until[from] = progress.busy_until[to] = arrived = at;
    if (holder != nullptr) holder->back() = at;
    freed.push_back(at);
    holder = &freed;
  }
  progress.timesteps = std::max(progress.timesteps, arrived);
  progress.total += arrived;
}

// Examines every order, except orders that cannot improve and orders that only exchange two routes
// without a common core.
class ExactSearch {
 public:
  ExactSearch(const Problem& problem, RouteOrder best)
      : problem_(problem), best_(std::move(best)) {}

  RouteOrder run() {
    std::vector<int> order;
    descend(order, std::vector<bool>(problem_.routes.size()), Progress(problem_));
    best_.is_best = true;
    return best_;
  }

 private:
  void descend(std::vector<int>& order, std::vector<bool> is_added, const Progress& progress) {
    if (order.size() == problem_.routes.size()) {
      best_.order = order;
      best_.timesteps = progress.timesteps;
      return;
    }
    for (std::size_t next = 0; next < problem_.routes.size(); ++next) {
      if (best_.timesteps == problem_.least) return;
      if (is_added[next] || !is_first_of_its_kind(order, next)) continue;
      Progress further = progress;
      add_route(problem_, next, further);
      is_added[next] = true;
      if (bound(further, is_added) < best_.timesteps) {
        order.push_back(static_cast<int>(next));
        descend(order, is_added, further);
        order.pop_back();
      }
      is_added[next] = false;
    }
  }

  bool is_first_of_its_kind(const std::vector<int>& order, std::size_t next) const {
    return order.empty() || static_cast<std::size_t>(order.back()) < next ||
           problem_.share_cores[next][static_cast<std::size_t>(order.back())];
  }

  // Lower bound of timesteps for any order of the remaining routes.
  int bound(const Progress& progress, const std::vector<bool>& is_added) const {
    std::vector<int> busy_until = progress.busy_until;
    for (std::size_t route = 0; route < problem_.routes.size(); ++route) {
      if (is_added[route]) continue;
      for (const auto& [from, to] : problem_.routes[route]) ++busy_until[from], ++busy_until[to];
    }
    int least = progress.timesteps;
    for (std::size_t core = 0; core < busy_until.size(); ++core) {
      least = std::max(least, busy_until[core]);
    }
    return least;
  }

  const Problem& problem_;
  RouteOrder best_;
};

using Cost = std::pair<int, int>;  // timesteps, then the sum of all routes' ends

Cost cost_of(const Problem& problem, const std::vector<int>& order) {
  Progress progress(problem);
  for (const int route : order) add_route(problem, static_cast<std::size_t>(route), progress);
  return {progress.timesteps, progress.total};
}

// Moves single routes as long as the result is no worse. Restarts from a shuffled order after a
// long time without improvement.
RouteOrder search_locally(const Problem& problem, const OrderSearch& search,
                          const std::vector<int>& given) {
  sim::Random random(search.seed, "route order");
  const auto below = [&](std::size_t bound) {
    return static_cast<std::ptrdiff_t>(random.below(static_cast<std::uint64_t>(bound)));
  };
  const int patience = 50 * static_cast<int>(given.size());
  std::vector<int> order = given;
  Cost cost = cost_of(problem, order);
  std::vector<int> best = order;
  Cost best_cost = cost;
  int since_better = 0;
  for (int i = 0; i < search.candidates_max && best_cost.first > problem.least; ++i) {
    std::vector<int> candidate = order;
    const bool is_new_start = since_better > patience;
    if (is_new_start) {
      for (std::size_t last = candidate.size(); last > 1; --last) {
        std::swap(candidate[last - 1], candidate[static_cast<std::size_t>(below(last))]);
      }
    } else {
      const int moved = candidate[static_cast<std::size_t>(below(candidate.size()))];
      std::erase(candidate, moved);
      candidate.insert(candidate.begin() + below(candidate.size() + 1), moved);
    }
    const Cost candidate_cost = cost_of(problem, candidate);
    since_better = is_new_start || candidate_cost < cost ? 0 : since_better + 1;
    if (is_new_start || candidate_cost <= cost) {
      order = std::move(candidate);
      cost = candidate_cost;
    }
    if (cost < best_cost) {
      best = order;
      best_cost = cost;
    }
  }
  return {best, best_cost.first, best_cost.first == problem.least};
}

}  // namespace

int timesteps_min(std::span<const Route> routes) {
  std::map<machine::EthernetEnd, int> commands;
  int least = 0;
  for (const Route& route : routes) {
    least = std::max(least, static_cast<int>(route.size()));
    for (const Hop& hop : route) ++commands[hop.from], ++commands[hop.to];
  }
  for (const auto& [core, count] : commands) least = std::max(least, count);
  return least;
}

RouteOrder find_route_order(std::span<const Route> routes, const OrderSearch& search) {
  const Problem problem = problem_of(routes, search.buffers_per_core);
  const std::vector<int> given = given_order(routes);
  const int timesteps = cost_of(problem, given).first;
  if (timesteps == problem.least) return {given, timesteps, true};
  if (static_cast<int>(routes.size()) <= search.exact_routes_max) {
    return ExactSearch(problem, {given, timesteps, true}).run();
  }
  return search_locally(problem, search, given);
}

}  // namespace towpath::tenstorrent::routing
