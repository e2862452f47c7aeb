// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/machine.hpp"

// Routes of one machine, as defined by Machine::route.
//
// The search starts at both ends and stops where they meet. A device that does not lead to a third
// one, such as an adapter between a GPU and a switch, is visited only next to an end. A switch with
// thousands of them therefore costs no more than one with few. Results around a source are reused
// for its next routes, so request all routes from a rank together.

namespace towpath::machine {

// A link of a route, and another link of equal cost.
struct RouteTie {
  int taken = 0;
  int other = 0;
};

class RouteSearch {
 public:
  // The machine must outlive this object.
  explicit RouteSearch(const Machine& machine) : machine_(machine) {}

  // Throws the same errors as Machine::route.
  std::vector<int> route(int from_rank, int to_rank);
  // Alternatives of equal cost along the route. Empty if there is no route.
  std::vector<RouteTie> ties(int from_rank, int to_rank);

 private:
  using Distance = std::pair<Time, int>;                    // latency, links
  using Entry = std::tuple<Time, int, int>;                 // latency, links, device
  using Links = std::unordered_map<int, std::vector<int>>;  // by device
  struct Reached {
    Distance distance;
    // The links of best paths from the source, or to the target.
    std::vector<int> links;
    bool is_settled = false;
  };
  // Search state around the source or the target.
  struct Side {
    bool is_source = false;
    int end = -1;
    std::unordered_map<int, Reached> reached{};
    std::vector<Entry> open{};  // a heap, nearest first
    std::size_t work = 0;       // links visited for the routes from this source
  };

  template <typename Visit>
  bool walk(int from_rank, int to_rank, const Visit& visit);
  bool search(int source, int target);
  void begin(Side& side, int end);
  void look(Side& side, int device, std::span<const int> links);
  void reach(Side& side, int link, const Distance& distance);
  void settle(Side& side);
  static bool is_open(Side& side);
  std::span<const int> onward(const Side& side, int device) const;
  int far_end(const Side& side, int link) const;
  const Side& opposite(const Side& side) const { return side.is_source ? target_ : source_; }
  Links links_to_target() const;
  bool is_on_best_way(int device, const Reached& from_source) const;
  void sort_as_found(std::vector<int>& links) const;
  int preferred(std::vector<int>& links) const;

  const Machine& machine_;
  Side source_{.is_source = true};
  Side target_;
  Distance best_;
};

}  // namespace towpath::machine
