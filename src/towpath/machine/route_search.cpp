// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/route_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "towpath/base/index.hpp"

namespace towpath::machine {
namespace {

template <typename Pair>
Pair sum(const Pair& a, const Pair& b) {
  return {a.first + b.first, a.second + b.second};
}

}  // namespace

std::vector<int> RouteSearch::route(int from_rank, int to_rank) {
  std::vector<int> route;
  const auto add = [&](int taken, const std::vector<int>&) { route.push_back(taken); };
  if (!walk(from_rank, to_rank, add)) {
    const auto name = [&](int rank) {
      return machine_.devices()[index(machine_.device_of_rank(rank))].name;
    };
    throw std::invalid_argument(
        fmt::format("machine '{}' has no path from rank {} ({}) to rank "
                    "{} ({})",
                    machine_.name(), from_rank, name(from_rank), to_rank, name(to_rank)));
  }
  std::reverse(route.begin(), route.end());
  return route;
}

std::vector<RouteTie> RouteSearch::ties(int from_rank, int to_rank) {
  std::vector<RouteTie> ties;
  walk(from_rank, to_rank, [&](int taken, const std::vector<int>& links) {
    for (const int other : links) {
      if (other != taken) ties.push_back({taken, other});
    }
  });
  return ties;
}

// Calls visit(link, links of equal cost) from the last link of the route backwards. Returns false
// if there is no route.
template <typename Visit>
bool RouteSearch::walk(int from_rank, int to_rank, const Visit& visit) {
  const int source = machine_.checked_device_of_rank(from_rank);
  const int target = machine_.checked_device_of_rank(to_rank);
  if (source == target) return true;
  if (!search(source, target)) return false;
  Links near_target = links_to_target();
  for (int device = target; device != source;) {
    std::vector<int> links;
    const auto known = near_target.find(device);
    if (known != near_target.end()) links = std::move(known->second);
    const auto from_source = source_.reached.find(device);
    if (from_source != source_.reached.end() &&
        (known == near_target.end() || is_on_best_way(device, from_source->second))) {
      const std::vector<int>& more = from_source->second.links;
      links.insert(links.end(), more.begin(), more.end());
    }
    const int taken = preferred(links);
    visit(taken, links);
    device = machine_.links()[index(taken)].from;
  }
  return true;
}

// All best paths are complete once no path over an open device can be as good: each of these passes
// through a device that both sides have reached.
bool RouteSearch::search(int source, int target) {
  best_ = {Time::max(), 0};
  if (source != source_.end) {
    target_.reached.clear();
    target_.work = 0;
    begin(source_, source);
  }
  begin(target_, target);
  while (is_open(source_) && is_open(target_)) {
    const auto [source_latency, source_links, near_source] = source_.open.front();
    const auto [target_latency, target_links, near_target] = target_.open.front();
    if (Distance(source_latency + target_latency, source_links + target_links) >= best_) break;
    // Results around the source are kept for later routes.
    const std::size_t more_at_source = onward(source_, near_source).size();
    const std::size_t more_at_target = onward(target_, near_target).size();
    const bool is_source = source_.work + more_at_source <= target_.work + more_at_target;
    settle(is_source ? source_ : target_);
  }
  return best_.first != Time::max();
}

// Visits the devices next to an end, and continues past devices that only lead to one other.
void RouteSearch::begin(Side& side, int end) {
  side.end = end;
  side.reached.clear();
  side.open.clear();
  if (side.is_source) side.work = 0;
  side.reached[end].is_settled = true;
  const std::span<const int> links =
      side.is_source ? machine_.links_from(end) : machine_.links_to(end);
  look(side, end, links);
  for (const int link : links) {
    const int device = far_end(side, link);
    const auto known = side.reached.find(device);
    if (known == side.reached.end() || known->second.links.front() != link) continue;
    if (!machine_.is_junction(device)) look(side, device, onward(side, device));
  }
}

void RouteSearch::look(Side& side, int device, std::span<const int> links) {
  const Distance here = side.reached[device].distance;
  for (const int link : links) {
    reach(side, link, sum(here, Distance(machine_.links()[index(link)].latency, 1)));
  }
}

void RouteSearch::reach(Side& side, int link, const Distance& distance) {
  const int device = far_end(side, link);
  const Side& other = opposite(side);
  const bool is_end = !side.is_source && device == source_.end;
  if (device == side.end || (!is_end && !machine_.devices()[index(device)].forwards)) return;
  const auto [at, is_new] = side.reached.try_emplace(device);
  Reached& there = at->second;
  if (!is_new && distance == there.distance) return there.links.push_back(link);
  if (!is_new && distance > there.distance) return;
  there.distance = distance;
  there.links.assign(1, link);
  if (machine_.is_junction(device)) {
    side.open.emplace_back(distance.first, distance.second, device);
    std::push_heap(side.open.begin(), side.open.end(), std::greater<>());
  }
  const auto met = other.reached.find(device);
  if (met != other.reached.end()) best_ = std::min(best_, sum(distance, met->second.distance));
}

void RouteSearch::settle(Side& side) {
  const int device = std::get<2>(side.open.front());
  side.reached[device].is_settled = true;
  const std::span<const int> links = onward(side, device);
  side.work += links.size();
  look(side, device, links);
}

// True if there is a device to settle. If so, it is at the front.
bool RouteSearch::is_open(Side& side) {
  while (!side.open.empty()) {
    const auto [latency, links, device] = side.open.front();
    const Reached& known = side.reached[device];
    if (!known.is_settled && known.distance == Distance(latency, links)) return true;
    std::pop_heap(side.open.begin(), side.open.end(), std::greater<>());
    side.open.pop_back();
  }
  return false;
}

std::span<const int> RouteSearch::onward(const Side& side, int device) const {
  return side.is_source ? machine_.passages_from(device) : machine_.passages_to(device);
}

int RouteSearch::far_end(const Side& side, int link) const {
  const Link& wire = machine_.links()[index(link)];
  return side.is_source ? wire.to : wire.from;
}

bool RouteSearch::is_on_best_way(int device, const Reached& from_source) const {
  const auto known = target_.reached.find(device);
  return known != target_.reached.end() &&
         sum(from_source.distance, known->second.distance) == best_;
}

// From the meeting point to the target: by device, the incoming links of best paths.
RouteSearch::Links RouteSearch::links_to_target() const {
  Links links;
  std::vector<int> open;
  for (const auto& [device, near_target] : target_.reached) {
    const auto near_source = source_.reached.find(device);
    if (near_source == source_.reached.end() || !is_on_best_way(device, near_source->second)) {
      continue;
    }
    links[device];
    open.push_back(device);
  }
  while (!open.empty()) {
    const int device = open.back();
    open.pop_back();
    for (const int link : target_.reached.at(device).links) {
      const int next = machine_.links()[index(link)].to;
      const auto [at, is_new] = links.try_emplace(next);
      at->second.push_back(link);
      if (is_new) open.push_back(next);
    }
  }
  return links;
}

// Sorts links as a search from the source would find links of equal cost: by latency, then by the
// number of their source device.
void RouteSearch::sort_as_found(std::vector<int>& links) const {
  const auto key = [&](int number) {
    const Link& link = machine_.links()[index(number)];
    return std::tuple(Time() - link.latency, link.from, number);
  };
  std::ranges::sort(links, {}, key);
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

int RouteSearch::preferred(std::vector<int>& links) const {
  if (links.size() > 1) sort_as_found(links);
  int last = links.front();
  for (const int other : links) {
    if (machine_.is_preferred(other, last, source_.end, target_.end)) last = other;
  }
  return last;
}

}  // namespace towpath::machine
