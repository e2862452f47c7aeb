// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/machine.hpp"

// Many routes of one machine: the same as Machine::route, which begins anew for each. A search from
// one rank goes on where it stopped for the rank before, so ask for all routes from a rank
// together.

namespace towpath::machine {

class RouteSearch {
 public:
  explicit RouteSearch(std::shared_ptr<const Machine> machine);

  // Throws as Machine::route.
  std::vector<int> route(int from_rank, int to_rank);

 private:
  struct Reached {
    Time latency = Time::max();
    int links = 0;
    int last = -1;  // link of a best path
    bool is_settled = false;
  };
  using Entry = std::tuple<Time, int, int>;  // latency, links, device

  void begin(int source);
  bool settle(int target);
  void reach(int number, Time latency, int links);
  int last_link(int device, int target) const;

  std::shared_ptr<const Machine> machine_;
  int source_ = -1;               // device
  std::vector<Reached> reached_;  // per device
  std::vector<int> touched_;      // devices that are not as in the beginning
  std::vector<Entry> open_;       // a heap, nearest first
  // Links that are as good as a device's last one, in the order in which they were found.
  std::unordered_map<int, std::vector<int>> as_good_;
};

}  // namespace towpath::machine
