// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/broadcasts.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/base/invariant.hpp"
#include "towpath/tenstorrent/ccl/endpoint.hpp"
#include "towpath/tenstorrent/ccl/unicasts.hpp"

namespace towpath::tenstorrent::ccl {

using fabric::Direction;
using transport::DirectMove;
using transport::Raise;

void Broadcasts::enable() {
  if (is_enabled()) return;
  const int planes = chips_.topology().planes();
  for (int place = 0; place < chips_.topology().places(); ++place) {
    Place& here = chips_.at(place);
    // No other data lands there.
    for (int plane = 0; plane < planes; ++plane) {
      landings_[index(place)].push_back(here.arrivals.unicasts(place, plane).landings);
    }
    here.workers.create_multicast_workers();
  }
}

void Broadcasts::check_unicasts() const {
  if (!is_enabled()) return;
  throw std::invalid_argument(
      "a Move to a peer starts where ranks send to all others at once; a schedule on chips cannot "
      "do both");
}

// --- routes --------------------------------------------------------------------------------------

std::vector<Target> Broadcasts::targets(int from, std::span<const int> ranks) const {
  std::vector<Target> found;
  for (const int rank : ranks) found.push_back({chips_.place_of(rank) - from, rank});
  return found;
}

bool Broadcasts::reaches(int from, std::span<const int> ranks) const {
  const fabric::Dimension& line = chips_.topology().shape().dimensions.front();
  return shorter_ways(line, targets(from, ranks)).has_value();
}

std::string Broadcasts::refusal(int from, std::span<const int> ranks) const {
  if (chips_.topology().is_two_dimensional()) {
    return "ranks on a mesh of chips do not store to all others at once; those on a line or ring "
           "of them do";
  }
  std::vector<int> others(ranks.begin(), ranks.end());
  std::erase_if(others, [&](int rank) { return chips_.place_of(rank) == from; });
  if (reaches(from, others)) return {};
  return "ranks store to all others at once where no chip between them is left out";
}

MulticastWay Broadcasts::way_of(int from, int plane, int way, const Targets& targets,
                                bool has_bytes) const {
  const Direction direction = fabric::direction_of(0, way == 1);
  const auto header = [&](int chips) {
    return chips_.fabric().multicast_along(from, direction, chips, targets.skipped);
  };
  const int chips = static_cast<int>(targets.ranks.size());
  MulticastWay found;
  found.header = found.shorter = header(chips);
  found.alternates = has_bytes && targets.shares_last;
  found.begins_shorter = way == 1;
  if (targets.shares_last) found.shorter = header(chips - 1);
  if (targets.shares_last && !has_bytes && way == 1) found.header = found.shorter;
  const int nearest = chips_.place_of(targets.ranks.front());
  found.lander = chips_.fabric().port(nearest, fabric::opposite(direction), plane).tile;
  found.arrival_word = fabric::pack(chips_.at(nearest).arrivals.multicast_word(from, plane, way));
  return found;
}

// --- one broadcast -------------------------------------------------------------------------------

Broadcast& Broadcasts::new_broadcast(Endpoint& from, DirectMove* move) {
  Broadcast& all = pools_[index(from.place())].take();
  all.broadcasts = this;
  all.from = &from;
  all.move = move;
  if (move != nullptr) from.load_for(all);
  return all;
}

// Pages of the array are spread over the planes, as in tt-metal over links.
void Broadcasts::send(Endpoint& from, std::span<const int> ranks, std::span<const Raise> raises,
                      DirectMove* move) {
  const fabric::Topology& topology = chips_.topology();
  const auto ways = shorter_ways(topology.shape().dimensions.front(), targets(from.place(), ranks));
  TOWPATH_CHECK(ways, "rank {} sends past chips that it leaves out", from.rank());
  Broadcast& all = new_broadcast(from, move);
  const auto planes = index(topology.planes());
  all.to_leave = topology.planes();
  all.to_deliver = static_cast<int>(ranks.size());
  for (const int rank : ranks) {
    const auto raise = std::ranges::find(raises, rank, &Raise::rank);
    all.shares.push_back(&from.new_share(all, rank, raise == raises.end() ? nullptr : &*raise));
  }
  const std::uint64_t size_bytes = move == nullptr ? 0 : move->size_bytes;
  const std::uint64_t pages = (size_bytes + kArrayPageBytes - 1) / kArrayPageBytes;
  std::uint64_t first = 0;
  for (std::size_t plane = 0; plane < planes; ++plane) {
    const std::uint64_t count = pages / planes + (plane < pages % planes ? 1 : 0);
    const std::uint64_t end = std::min(first + count * kArrayPageBytes, size_bytes);
    add_stretch(all, static_cast<int>(plane), first, end, *ways);
    first = end;
  }
  // Nothing leaves before everything is counted.
  ChipWorkers& workers = chips_.at(from.place()).workers;
  for (std::size_t plane = 0; plane < planes; ++plane) {
    workers.multicast(static_cast<int>(plane)).add(all.stretches[plane]);
  }
}

void Broadcasts::add_stretch(Broadcast& all, int plane, std::uint64_t first, std::uint64_t end,
                             const BothWays& targets) {
  Stretch& stretch = all.stretches.emplace_back();
  stretch.broadcast = &all;
  stretch.offset = first;
  stretch.size_bytes = end - first;
  stretch.left = [](Multicast& left) {
    Broadcast& sent = *static_cast<Stretch&>(left).broadcast;
    sent.broadcasts->stretch_left(sent);
  };
  take_pages_for(stretch, plane);
  const DirectMove* const move = all.move;
  stretch.is_stored =
      move != nullptr && move->sources.front().offset != move->destinations.front().offset;
  for (int way = 0; way < kWays; ++way) {
    const Targets& there = targets[index(way)];
    if (there.ranks.empty()) continue;
    stretch.ways[index(way)] = way_of(all.from->place(), plane, way, there, stretch.size_bytes > 0);
    for (Delivery* share : all.shares) {
      if (there.reaches(share->to->rank(), way, stretch.size_bytes > 0)) {
        expect(stretch, *share, plane, way);
      }
    }
  }
}

// At the source for the payload, and at all receivers, the same at each.
void Broadcasts::take_pages_for(Stretch& stretch, int plane) {
  const int from = stretch.broadcast->from->place();
  ChipWorkers& workers = chips_.at(from).workers;
  const std::uint64_t packet_bytes = multicast_packet_bytes(chips_.payload_bytes_max());
  const std::uint64_t packets = (stretch.size_bytes + packet_bytes - 1) / packet_bytes;
  stretch.staged_pages = chips_.take_pages(workers.staging(), packets, from);
  stretch.staging = workers.staging().first_page(stretch.staged_pages);
  PageRing& landings = landings_[index(from)][index(plane)];
  stretch.landing_pages = chips_.take_pages(landings, packets, from);
  stretch.landing = landings.first_page(stretch.landing_pages);
  const std::span<const std::byte> payload(stretch.broadcast->payload);
  if (payload.empty()) return;
  workers.write_pages(stretch.staging, payload.subspan(stretch.offset, stretch.size_bytes),
                      packet_bytes);
}

// A share has a part for each increment that it waits for.
void Broadcasts::expect(Stretch& stretch, Delivery& share, int plane, int way) {
  DeliveryPart& part = unicasts_.new_part(share, stretch.offset, stretch.size_bytes);
  part.landing = stretch.landing;
  part.packet_bytes = multicast_packet_bytes(chips_.payload_bytes_max());
  part.stream = &chips_.at(share.to->place()).arrivals.multicasts(share.from->place(), plane, way);
  stretch.broadcast->parts.push_back(&part);
  ++share.to_arrive;
  unicasts_.announce(part);
}

void Broadcasts::stretch_left(Broadcast& all) {
  if (--all.to_leave > 0) return;
  if (all.move != nullptr) all.from->left(all);
  if (all.to_deliver == 0) finish(all);
}

void Broadcasts::share_delivered(Broadcast& all) {
  if (--all.to_deliver == 0 && all.to_leave == 0) finish(all);
}

void Broadcasts::finish(Broadcast& all) {
  const int from = all.from->place();
  Place& place = chips_.at(from);
  for (std::size_t plane = 0; plane < all.stretches.size(); ++plane) {
    const Stretch& stretch = all.stretches[plane];
    if (stretch.size_bytes == 0) continue;
    place.workers.staging().release(stretch.staged_pages);
    landings_[index(from)][plane].release(stretch.landing_pages);
  }
  for (DeliveryPart* part : all.parts) place.parts.release(*part);
  all.stretches.clear();
  all.notices.clear();
  all.parts.clear();
  all.shares.clear();
  DirectMove* const move = std::exchange(all.move, nullptr);
  pools_[index(from)].release(all);
  if (move != nullptr && move->visible != nullptr) move->visible(*move);
}

// --- rendezvous ----------------------------------------------------------------------------------

void Broadcasts::notify_all(Endpoint& from, transport::Signal signal, bool is_all_round) {
  std::vector<int> others;
  for (int rank = 0; rank < chips_.ranks(); ++rank) {
    if (rank != from.rank()) others.push_back(rank);
  }
  const fabric::Dimension& line = chips_.topology().shape().dimensions.front();
  const std::vector<Target> there = targets(from.place(), others);
  const BothWays ways = is_all_round ? all_round(line, there) : *shorter_ways(line, there);
  Broadcast& all = new_broadcast(from, nullptr);
  all.to_deliver = static_cast<int>(others.size());
  for (const int other : others) {
    const Raise raise{other, signal, 1};
    all.shares.push_back(&from.new_share(all, other, &raise));
  }
  Stretch& stretch = all.stretches.emplace_back();
  stretch.broadcast = &all;
  for (int way = 0; way < kWays; ++way) {
    const Targets& reached = ways[index(way)];
    if (reached.ranks.empty()) continue;
    stretch.ways[index(way)] = way_of(from.place(), 0, way, reached, false);
    for (Delivery* share : all.shares) {
      if (reached.reaches(share->to->rank(), way, false)) expect(stretch, *share, 0, way);
    }
    ++all.to_leave;
  }
  for (int way = 0; way < kWays; ++way) {
    if (stretch.ways[index(way)]) add_notice(all, *stretch.ways[index(way)], way);
  }
}

void Broadcasts::add_notice(Broadcast& all, const MulticastWay& way, int number) {
  ChipWorkers& workers = chips_.at(all.from->place()).workers;
  Notice& notice = all.notices.emplace_back();
  notice.broadcast = &all;
  notice.header = way.header;
  notice.lander = way.lander;
  notice.arrival_word = way.arrival_word;
  notice.arrivals = 1;
  notice.pages = &workers.pages();
  notice.left = [](Part& left) {
    Broadcast& sent = *static_cast<Notice&>(left).broadcast;
    sent.broadcasts->stretch_left(sent);
  };
  workers.toward(fabric::direction_of(0, number == 1), 0).add(notice);
}

using fabric::Dimension;

namespace {

using Hops = std::pair<int, int>;  // and the rank at their end
using Routes = std::array<std::vector<Hops>, kWays>;

std::array<int, kWays> hops_to(const Dimension& line, int steps) {
  if (!line.is_ring) return {steps, -steps};
  return {(line.size + steps) % line.size, (line.size - steps) % line.size};
}

// In the shorter direction; half way around a ring in both.
void add(Routes& routes, const Dimension& line, const Target& target) {
  const std::array<int, kWays> hops = hops_to(line, target.steps);
  for (std::size_t way = 0; way < kWays; ++way) {
    const bool is_shorter = line.is_ring ? hops[way] <= hops[1 - way] : hops[way] > 0;
    if (is_shorter) routes[way].emplace_back(hops[way], target.rank);
  }
}

// True if no chip between the first and the last is left out.
bool is_unbroken(const std::vector<Hops>& hops) {
  return hops.empty() || hops.back().first - hops.front().first + 1 == std::ssize(hops);
}

// True if both directions end at the chip half way around. If one of them has no other chip, it
// ends before.
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
