// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// What ranks send to all others at once: DirectMoves to their group, signals, greetings. A packet
// goes each way along the line or ring, and each router on its way delivers it and hands a copy on.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "towpath/base/invariant.hpp"
#include "towpath/noc/router/torus.hpp"
#include "towpath/tenstorrent/ccl/fabric_cluster_parts.hpp"

namespace towpath::tenstorrent::ccl {

using fabric::Direction;
using fabric::direction_of;
using fabric::pack;

// Those that a packet reaches one way, from the nearest on.
struct FabricCluster::Targets {
  std::vector<int> ranks;
  int skipped = 0;  // chips before the first
  // The last one is half way round: both ways bring it half of the packets.
  bool shares_last = false;

  // An increment alone goes half way round by the first way only.
  bool reaches(int rank, int way, bool has_bytes) const {
    if (shares_last && !has_bytes && way == 1 && rank == ranks.back()) return false;
    return std::ranges::find(ranks, rank) != ranks.end();
  }
};

// --- which way -----------------------------------------------------------------------------------

namespace {

using fabric::Dimension;
using Hops = std::pair<int, int>;  // and the rank at their end
using Ways = std::array<std::vector<Hops>, 2>;

// Each chip by the shorter way; half way round a ring it is on both.
void add(Ways& ways, const Dimension& line, int steps, int rank) {
  std::array<int, 2> hops = {steps, -steps};
  if (line.is_ring) hops = {(line.size + steps) % line.size, (line.size - steps) % line.size};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const bool is_shorter = line.is_ring ? hops[way] <= hops[1 - way] : hops[way] > 0;
    if (is_shorter) ways[way].emplace_back(hops[way], rank);
  }
}

// Whether no chip between the first and the last is left out.
bool is_unbroken(const std::vector<Hops>& hops) {
  return hops.empty() || hops.back().first - hops.front().first + 1 == std::ssize(hops);
}

// Whether both ways end at the chip half way round. Where one of them has no other, it ends before.
bool share_last(Ways& ways, const Dimension& line) {
  const std::vector<Hops>& first = ways.front();
  if (!line.is_ring || first.empty() || 2 * first.back().first != line.size) return false;
  if (std::min(first.size(), ways.back().size()) > 1) return true;
  ways.back().pop_back();
  return false;
}

}  // namespace

// None when a chip in between would get the packet, too.
std::optional<std::array<FabricCluster::Targets, 2>> FabricCluster::targets(
    int from, std::span<const int> ranks) const {
  const Dimension& line = topology().shape().dimensions.front();
  Ways ways;
  for (const int rank : ranks) add(ways, line, options_.places[index(rank)] - from, rank);
  for (auto& each : ways) std::ranges::sort(each);
  const bool shares_last = share_last(ways, line);
  std::array<Targets, kWays> found;
  for (std::size_t way = 0; way < kWays; ++way) {
    if (!is_unbroken(ways[way])) return std::nullopt;
    for (const Hops& each : ways[way]) found[way].ranks.push_back(each.second);
    if (!ways[way].empty()) found[way].skipped = ways[way].front().first - 1;
    found[way].shares_last = shares_last;
  }
  return found;
}

MulticastWay FabricCluster::way_of(int from, int plane, int way, const Targets& targets,
                                   bool has_bytes) const {
  const Direction direction = direction_of(0, way == 1);
  const auto header = [&](int chips) {
    return fabric_.multicast_along(from, direction, chips, targets.skipped);
  };
  const int chips = static_cast<int>(targets.ranks.size());
  MulticastWay found;
  found.header = found.shorter = header(chips);
  found.alternates = has_bytes && targets.shares_last;
  found.begins_shorter = way == 1;
  if (targets.shares_last) found.shorter = header(chips - 1);
  if (targets.shares_last && !has_bytes && way == 1) found.header = found.shorter;
  const int nearest = options_.places[index(targets.ranks.front())];
  found.lander = fabric_.port(nearest, fabric::opposite(direction), plane).tile;
  const auto word = kArrivals + multicast_stream(from, plane, way) * noc::kWordBytes;
  found.arrival_word = pack({places_[index(nearest)]->arrivals, word});
  return found;
}

std::string FabricCluster::multicast_refusal(int from, std::span<const int> ranks) const {
  if (topology().is_two_dimensional()) {
    return "ranks on a mesh of chips do not store to all others at once; those on a line or ring "
           "of them do";
  }
  std::vector<int> others(ranks.begin(), ranks.end());
  std::erase_if(others, [&](int rank) { return options_.places[index(rank)] == from; });
  if (targets(from, others)) return {};
  return "ranks store to all others at once where no chip between them is left out";
}

// --- the workers ---------------------------------------------------------------------------------

void FabricCluster::send_to_all() {
  if (std::exchange(sends_to_all_, true)) return;
  const int planes = topology().planes();
  for (int place = 0; place < topology().places(); ++place) {
    Place& here = *places_[index(place)];
    for (int plane = 0; plane < planes; ++plane) {
      // Nothing else lands there.
      here.multicast_landings.push_back(here.streams[index(place * planes + plane)].landings);
      create_multicast_worker(place, plane);
    }
  }
}

// Near both of its links.
void FabricCluster::create_multicast_worker(int place, int plane) {
  Place& here = *places_[index(place)];
  const machine::Chip& chip = fabric_.device(place).chip();
  MulticastWorker::Config config;
  config.payload_bytes_max = options_.payload_bytes_max;
  for (int way = 0; way < kWays; ++way) {
    const Direction direction = direction_of(0, way == 1);
    if (!topology().end(place, direction, plane)) continue;
    config.ports[index(way)] = fabric_.port(place, direction, plane);
  }
  const auto distance = [&](machine::Coordinate core) {
    int hops = 0;
    for (int way = 0; way < kWays; ++way) {
      const auto& port = config.ports[index(way)];
      if (port) hops += noc::hops(chip, core, port->tile, way);
    }
    return hops;
  };
  const auto nearest = std::ranges::min_element(here.free_cores, {}, distance);
  config.core = *nearest;
  here.free_cores.erase(nearest);
  here.multicast_workers.push_back(
      std::make_unique<MulticastWorker>(fabric_.program(place), here.pages, config));
}

void FabricCluster::check_unicasts() const {
  if (!sends_to_all_) return;
  throw std::invalid_argument(
      "a Move to a peer is started where ranks send to all others at once; a schedule that does "
      "both is not possible on chips");
}

std::size_t FabricCluster::multicast_stream(int from, int plane, int way) const {
  const int planes = topology().planes();
  return index(topology().places() * planes + (from * planes + plane) * kWays + way);
}

// --- one broadcast -------------------------------------------------------------------------------

void FabricCluster::Endpoint::start_direct(DirectMove& move) {
  const Location& to = move.destinations.front();
  std::vector<int> others(to.group.begin(), to.group.end());
  std::erase(others, rank());
  cluster_.broadcast(*this, others, move.raises, &move);
}

void FabricCluster::Endpoint::raise_all(std::span<const Raise> raises) {
  if (!cluster_.sends_to_all_) return Transport::raise_all(raises);
  std::vector<int> ranks;
  for (const Raise& raise : raises) ranks.push_back(raise.rank);
  if (cluster_.targets(place(), ranks)) return cluster_.broadcast(*this, ranks, raises, nullptr);
  for (const Raise& raise : raises) {
    cluster_.broadcast(*this, {&raise.rank, 1}, {&raise, 1}, nullptr);
  }
}

std::string FabricCluster::Endpoint::direct_refusal(const DirectNeeds& needs) const {
  if (!needs.peers.empty()) {
    return "chips do not load from or store to the memory of one other; all at once they do store "
           "to";
  }
  if (needs.combines) return "chips do not add up what they load from others";
  for (const std::vector<int>& group : needs.groups) {
    if (const std::string refusal = cluster_.multicast_refusal(place(), group); !refusal.empty()) {
      return refusal;
    }
  }
  return {};
}

FabricCluster::Delivery& FabricCluster::Endpoint::new_share(Broadcast& broadcast, int peer,
                                                            const Raise* raise) {
  check_peer(peer);
  Delivery& delivery = take_delivery();
  const DirectMove* const move = broadcast.move;
  delivery.move = nullptr;
  delivery.to = cluster_.endpoints_[index(peer)].get();
  delivery.broadcast = &broadcast;
  delivery.to_arrive = 0;
  delivery.size_bytes = move == nullptr ? 0 : move->size_bytes;
  delivery.remote = move == nullptr ? 0 : move->destinations.front().offset;
  if (delivery.size_bytes > 0) heap().check_range(delivery.remote, delivery.size_bytes);
  if (carries_data()) delivery.payload.resize(delivery.size_bytes);
  delivery.has_signal = raise != nullptr;
  if (raise != nullptr) {
    heap().check_signal(raise->signal);
    delivery.signal_word = heap().word_of(raise->signal);
    delivery.signal_value = raise->value;
    delivery.signal_operation = SignalOperation::add;
  }
  ++under_way_;
  return delivery;
}

void FabricCluster::Endpoint::load_for(Broadcast& broadcast) {
  const DirectMove& move = *broadcast.move;
  const Offset offset = move.sources.front().offset;
  heap().check_range(offset, move.size_bytes);
  if (!carries_data()) return;
  broadcast.payload.assign(data(offset), data(offset) + move.size_bytes);
}

// What it stores to itself is stored.
void FabricCluster::Endpoint::left(Broadcast& broadcast) {
  DirectMove& move = *broadcast.move;
  if (!broadcast.payload.empty()) {
    std::memcpy(data(move.destinations.front().offset), broadcast.payload.data(),
                broadcast.payload.size());
  }
  broadcast.payload.clear();
  if (move.done != nullptr) move.done(move);
}

FabricCluster::Broadcast& FabricCluster::new_broadcast(Endpoint& from, DirectMove* move) {
  Place& place = *places_[index(from.place())];
  if (place.free_broadcasts.empty()) {
    place.free_broadcasts.push_back(&place.broadcasts.emplace_back());
  }
  Broadcast& all = *place.free_broadcasts.back();
  place.free_broadcasts.pop_back();
  all.cluster = this;
  all.from = &from;
  all.move = move;
  if (move != nullptr) from.load_for(all);
  return all;
}

// Pages of the array are spread over the planes, as over links in tt-metal's.
void FabricCluster::broadcast(Endpoint& from, std::span<const int> ranks,
                              std::span<const Raise> raises, DirectMove* move) {
  const auto ways = targets(from.place(), ranks);
  TOWPATH_CHECK(ways, "rank {} sends past chips that it leaves out", from.rank());
  Broadcast& all = new_broadcast(from, move);
  const auto planes = index(topology().planes());
  all.to_leave = topology().planes();
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
  // Nothing leaves before all is counted.
  for (std::size_t plane = 0; plane < planes; ++plane) {
    places_[index(from.place())]->multicast_workers[plane]->add(all.stretches[plane]);
  }
}

void FabricCluster::add_stretch(Broadcast& all, int plane, std::uint64_t first, std::uint64_t end,
                                const std::array<Targets, 2>& targets) {
  Stretch& stretch = all.stretches.emplace_back();
  stretch.broadcast = &all;
  stretch.offset = first;
  stretch.size_bytes = end - first;
  stretch.left = [](Multicast& left) {
    Broadcast& sent = *static_cast<Stretch&>(left).broadcast;
    sent.cluster->stretch_left(sent);
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

// At the source, where the payload is, and at all receivers, the same at each.
void FabricCluster::take_pages_for(Stretch& stretch, int plane) {
  const int from = stretch.broadcast->from->place();
  Place& place = *places_[index(from)];
  const std::uint64_t packet_bytes = multicast_packet_bytes(options_.payload_bytes_max);
  const std::uint64_t packets = (stretch.size_bytes + packet_bytes - 1) / packet_bytes;
  stretch.staged_pages = take_pages(place.staging, packets, from);
  stretch.staging = place.staging.first_page(stretch.staged_pages);
  PageRing& landings = place.multicast_landings[index(plane)];
  stretch.landing_pages = take_pages(landings, packets, from);
  stretch.landing = landings.first_page(stretch.landing_pages);
  const std::span<const std::byte> payload(stretch.broadcast->payload);
  if (payload.empty()) return;
  write_pages(from, stretch.staging, payload.subspan(stretch.offset, stretch.size_bytes),
              packet_bytes);
}

// A share knows of each increment that it waits for.
void FabricCluster::expect(Stretch& stretch, Delivery& share, int plane, int way) {
  const int from = share.from->place();
  DeliveryPart& part = new_part(*places_[index(from)]);
  part.delivery = &share;
  part.from_place = from;
  part.offset = stretch.offset;
  part.size_bytes = stretch.size_bytes;
  part.landing = stretch.landing;
  part.packet_bytes = multicast_packet_bytes(options_.payload_bytes_max);
  part.stream = &places_[index(share.to->place())]->streams[multicast_stream(from, plane, way)];
  stretch.broadcast->parts.push_back(&part);
  ++share.to_arrive;
  tell(
      *share.from, *share.to,
      [](void* context) {
        DeliveryPart& coming = *static_cast<DeliveryPart*>(context);
        coming.stream->under_way.push_back(&coming);
      },
      &part);
}

void FabricCluster::stretch_left(Broadcast& all) {
  if (--all.to_leave > 0) return;
  if (all.move != nullptr) all.from->left(all);
  if (all.to_deliver == 0) finish(all);
}

void FabricCluster::share_delivered(Broadcast& all) {
  if (--all.to_deliver == 0 && all.to_leave == 0) finish(all);
}

void FabricCluster::finish(Broadcast& all) {
  Place& place = *places_[index(all.from->place())];
  for (std::size_t plane = 0; plane < all.stretches.size(); ++plane) {
    const Stretch& stretch = all.stretches[plane];
    if (stretch.size_bytes == 0) continue;
    place.staging.release(stretch.staged_pages);
    place.multicast_landings[plane].release(stretch.landing_pages);
  }
  place.free_parts.insert(place.free_parts.end(), all.parts.begin(), all.parts.end());
  all.stretches.clear();
  all.greetings.clear();
  all.parts.clear();
  all.shares.clear();
  DirectMove* const move = std::exchange(all.move, nullptr);
  place.free_broadcasts.push_back(&all);
  if (move != nullptr && move->visible != nullptr) move->visible(*move);
}

// --- greetings -----------------------------------------------------------------------------------

namespace {

std::vector<int> others_than(int rank, int ranks) {
  std::vector<int> others;
  for (int other = 0; other < ranks; ++other) {
    if (other != rank) others.push_back(other);
  }
  return others;
}

}  // namespace

bool FabricCluster::can_greet_all(int rank) const {
  return multicast_refusal(options_.places[index(rank)], others_than(rank, ranks())).empty();
}

// Each chip of a ring by both ways, so that a packet goes as far as it can.
std::array<FabricCluster::Targets, 2> FabricCluster::all_round(int from,
                                                               std::span<const int> ranks) const {
  const int size = topology().shape().dimensions.front().size;
  std::array<Targets, kWays> found;
  for (std::size_t way = 0; way < kWays; ++way) {
    std::vector<Hops> hops;
    for (const int rank : ranks) {
      const int steps = options_.places[index(rank)] - from;
      hops.emplace_back((size + (way == 0 ? steps : -steps)) % size, rank);
    }
    std::ranges::sort(hops);
    for (const Hops& each : hops) found[way].ranks.push_back(each.second);
  }
  return found;
}

// The workers of the first plane greet for all.
void FabricCluster::greet_all(int rank, Signal signal, bool all_round_ring) {
  Endpoint& from = *endpoints_[index(rank)];
  const std::vector<int> others = others_than(rank, ranks());
  const auto ways =
      all_round_ring ? all_round(from.place(), others) : *targets(from.place(), others);
  Broadcast& all = new_broadcast(from, nullptr);
  all.to_deliver = static_cast<int>(others.size());
  for (const int other : others) {
    const Raise raise{other, signal, 1};
    all.shares.push_back(&from.new_share(all, other, &raise));
  }
  Stretch& stretch = all.stretches.emplace_back();
  stretch.broadcast = &all;
  for (int way = 0; way < kWays; ++way) {
    const Targets& there = ways[index(way)];
    if (there.ranks.empty()) continue;
    stretch.ways[index(way)] = way_of(from.place(), 0, way, there, false);
    for (Delivery* share : all.shares) {
      if (there.reaches(share->to->rank(), way, false)) expect(stretch, *share, 0, way);
    }
    ++all.to_leave;
  }
  for (int way = 0; way < kWays; ++way) {
    if (stretch.ways[index(way)]) add_greeting(all, *stretch.ways[index(way)], way);
  }
}

void FabricCluster::add_greeting(Broadcast& all, const MulticastWay& way, int number) {
  Place& place = *places_[index(all.from->place())];
  Greeting& greeting = all.greetings.emplace_back();
  greeting.broadcast = &all;
  greeting.header = way.header;
  greeting.lander = way.lander;
  greeting.arrival_word = way.arrival_word;
  greeting.arrivals = 1;
  greeting.pages = &place.pages;
  greeting.left = [](Part& left) {
    Broadcast& sent = *static_cast<Greeting&>(left).broadcast;
    sent.cluster->stretch_left(sent);
  };
  place.workers[direction_of(0, number == 1)].front()->add(greeting);
}

}  // namespace towpath::tenstorrent::ccl
