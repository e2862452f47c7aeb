// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/route_search.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::machine {

RouteSearch::RouteSearch(std::shared_ptr<const Machine> machine)
    : machine_(std::move(machine)), reached_(machine_->devices().size()) {}

std::vector<int> RouteSearch::route(int from_rank, int to_rank) {
  const int source = machine_->checked_device_of_rank(from_rank);
  const int target = machine_->checked_device_of_rank(to_rank);
  if (source != source_) begin(source);
  if (!settle(target)) return machine_->route(from_rank, to_rank);  // which says what is wrong
  std::vector<int> route;
  for (int device = target; device != source;) {
    route.push_back(last_link(device, target));
    device = machine_->links()[index(route.back())].from;
  }
  std::reverse(route.begin(), route.end());
  return route;
}

void RouteSearch::begin(int source) {
  for (const int device : touched_) reached_[index(device)] = {};
  touched_.clear();
  as_good_.clear();
  open_.clear();
  source_ = source;
  reached_[index(source)].latency = Time();
  touched_.push_back(source);
  open_.emplace_back(Time(), 0, source);
}

// As Machine::last_links, but the target's neighbours are looked at, too, for targets to come. All
// that leads to a device on a best path is known once the device is settled.
bool RouteSearch::settle(int target) {
  while (!reached_[index(target)].is_settled && !open_.empty()) {
    std::pop_heap(open_.begin(), open_.end(), std::greater<>());
    const auto [latency, links, device] = open_.back();
    open_.pop_back();
    Reached& here = reached_[index(device)];
    if (here.latency != latency || here.links != links) continue;  // was improved since
    here.is_settled = true;
    if (device != source_ && !machine_->devices()[index(device)].forwards) continue;
    for (const int number : machine_->links_from_[index(device)]) {
      reach(number, latency + machine_->links()[index(number)].latency, links + 1);
    }
  }
  return reached_[index(target)].is_settled;
}

void RouteSearch::reach(int number, Time latency, int links) {
  const int device = machine_->links()[index(number)].to;
  Reached& there = reached_[index(device)];
  const std::pair candidate(latency, links);
  const std::pair known(there.latency, there.links);
  if (candidate > known) return;
  if (candidate == known) {
    as_good_[device].push_back(number);
    return;
  }
  if (there.last != -1) as_good_.erase(device);
  if (there.latency == Time::max()) touched_.push_back(device);
  there = {latency, links, number, false};
  open_.emplace_back(latency, links, device);
  std::push_heap(open_.begin(), open_.end(), std::greater<>());
}

int RouteSearch::last_link(int device, int target) const {
  int last = reached_[index(device)].last;
  const auto others = as_good_.find(device);
  if (others == as_good_.end()) return last;
  for (const int other : others->second) {
    if (machine_->is_preferred(other, last, source_, target)) last = other;
  }
  return last;
}

}  // namespace towpath::machine
