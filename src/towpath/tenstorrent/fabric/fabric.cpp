// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/fabric/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/fabric/router_costs.hpp"

namespace towpath::tenstorrent::fabric {

namespace {

constexpr std::uint64_t kHeaderBytes = 48;
constexpr std::uint64_t kHeaderBytesOfMesh = 96;

// Slots of a channel and of the receiver, for lines and meshes. Source: tt-metal,
// fabric_static_sized_channels_allocator.cpp, with {7, 11} for Wormhole. {2, 4} is an assumption.
using Slots = std::array<int, 2>;
constexpr Slots kLineSlots[] = {{32, 32}, {16, 32}, {16, 16}, {8, 16}, {8, 8}, {4, 8}, {2, 4}};
constexpr Slots kMeshSlots[] = {{8, 16}, {8, 8}, {7, 11}, {4, 8}, {2, 4}};

// As many slots as fit into L1.
Layout layout_of(const Topology& topology, const machine::Chip& chip, std::uint64_t room_bytes,
                 const FabricOptions& fabric) {
  const bool is_mesh = topology.is_two_dimensional() && fabric.turns;
  const std::uint64_t payload_bytes_max = fabric.payload_bytes_max;
  Layout layout{.channels = is_mesh ? 4 : (fabric.forwards ? 2 : 1),
                .header_bytes = is_mesh ? kHeaderBytesOfMesh : kHeaderBytes,
                .payload_bytes_max = round_up(payload_bytes_max, Layout::kCellBytes)};
  const RouterCosts& costs = kRouterCosts.of(chip);
  const int most = is_mesh ? costs.mesh_slots_max : costs.channel_slots_max;
  const std::span<const Slots> options =
      is_mesh ? std::span<const Slots>(kMeshSlots) : std::span<const Slots>(kLineSlots);
  for (const auto& [channel, receiver] : options) {
    if (channel > most) continue;
    layout.channel_slots = channel;
    layout.receiver_slots = receiver;
    if (layout.size_bytes() <= room_bytes) return layout;
  }
  throw std::invalid_argument(
      fmt::format("packets of {} bytes leave no room for two slots per channel in the {} bytes of "
                  "an Ethernet core of {}",
                  payload_bytes_max, room_bytes, chip.name));
}

void check(const Cluster& cluster) {
  if (cluster.options().carries_data) return;
  throw std::invalid_argument(fmt::format(
      "a fabric on cluster '{}', which simulates only time; use a cluster that carries data",
      cluster.description().name));
}

// The second RISC-V runs in parallel with the kernel, which runs on the first.
tenstorrent::EthernetKernel router(const RouterConfig& config, EthernetTile& tile) {
  return [config, &tile](EthernetCore& core) {
    if (kRouterCosts.of(core.network().chip()).cores == 1) return route(core, config);
    core.network().simulation().spawn(core.config().name + ", receiving", [&] {
      EthernetCore second(core.network(), core.config(), tile);
      route_receiving(second, config);
    });
    route_sending(core, config);
  };
}

}  // namespace

Fabric::Fabric(Cluster& cluster, Shape shape, const FabricOptions& options)
    : cluster_(cluster), topology_(cluster.description(), std::move(shape)), options_(options) {
  check(cluster);
  check_deadlock_free(topology_, options.has_bubbles);
  if (HazardMonitor* const monitor = device(0).monitor(); monitor != nullptr) {
    watch_ = std::make_unique<FabricWatch>(*monitor, topology_);
  }
  for (int place = 0; place < topology_.places(); ++place) {
    programs_.push_back(&cluster.create_program(topology_.chip_at(place)));
  }
  layout_ = layout_of(topology_, device(0).chip(),
                      programs_.front()->free_bytes(machine::TileKind::ethernet), options);
  for (Program* program : programs_) {
    layout_.base = program->allocate(layout_.size_bytes(), machine::TileKind::ethernet);
  }
  for (int place = 0; place < topology_.places(); ++place) create_routers(place);
}

void Fabric::create_routers(int place) {
  for (Direction direction = 0; direction < kDirections; ++direction) {
    for (int plane = 0; plane < topology_.planes(); ++plane) {
      const auto end = topology_.end(place, direction, plane);
      if (!end) continue;
      program(place).create_kernel(
          {0, end->channel},
          {.name = fmt::format("router to chip {}",
                               topology_.chip_at(*topology_.neighbour(place, direction))),
           .is_watched = false,
           .is_resident = true},
          router(config(place, direction, plane), device(place).ethernet_tile({0, end->channel})));
    }
  }
}

RouterConfig Fabric::config(int place, Direction direction, int plane) const {
  const int dimension = dimension_of(direction);
  RouterConfig config{
      .layout = layout_,
      .is_ring = topology_.shape().dimensions[index(dimension)].is_ring,
      .clients = std::vector<std::optional<RouterConfig::Client>>(index(layout_.channels)),
      .next = {},
      .polls_per_context_switch = options_.polls_per_context_switch,
      .watch = watch_.get(),
      .end = *topology_.end(place, direction, plane)};
  config.far_end = *cluster_.description().connected(config.end);
  const auto tile = [&](Direction other) { return port(place, other, plane).tile; };
  const auto end = [&](Direction other) { return *topology_.end(place, other, plane); };
  const auto exists = [&](Direction other) {
    return topology_.end(place, other, plane).has_value();
  };
  // Packets that continue straight come from the link behind.
  if (options_.forwards && exists(opposite(direction))) {
    config.clients[kStraightChannel] = {tile(opposite(direction)), direction};
    config.next[opposite(direction)] = {tile(opposite(direction)), kStraightChannel,
                                        end(opposite(direction))};
  }
  for (const Direction turning : {direction_of(0, false), direction_of(0, true)}) {
    if (!layout_.has_turns() || dimension != 1 || !exists(opposite(turning))) continue;
    config.clients[index(turn_channel(turning))] = {tile(opposite(turning)), direction};
  }
  if (dimension == 0 && layout_.has_turns()) {
    for (const Direction into : {direction_of(1, false), direction_of(1, true)}) {
      if (exists(into))
        config.next[into] = {tile(into), turn_channel(opposite(direction)), end(into)};
    }
  }
  return config;
}

RouterPort Fabric::port(int place, Direction direction, int plane) const {
  const machine::EthernetEnd end = *topology_.end(place, direction, plane);
  return {cluster_.description().core_of(end), layout_, end, direction, place, watch_.get()};
}

std::optional<RouterPort> Fabric::port_at(int place, int channel) const {
  for (Direction direction = 0; direction < kDirections; ++direction) {
    for (int plane = 0; plane < topology_.planes(); ++plane) {
      const auto end = topology_.end(place, direction, plane);
      if (end && end->channel == channel) return port(place, direction, plane);
    }
  }
  return std::nullopt;
}

std::vector<Direction> Fabric::route(int from, int to) const {
  std::vector<Direction> route = topology_.route(from, to);
  if (route.empty()) {
    throw std::invalid_argument(
        fmt::format("a packet goes from place {} to itself; the places must be different", from));
  }
  return route;
}

Header Fabric::header(int from, int to) const { return header_of(route(from, to)); }

Header Fabric::header_along(int from, Direction direction, int hops) const {
  int place = from;
  for (int hop = 0; hop < hops; ++hop) {
    const auto next = topology_.neighbour(place, direction);
    if (!next) {
      throw std::invalid_argument(fmt::format(
          "a packet makes {} hops from place {}, but the line ends after {}", hops, from, hop));
    }
    place = *next;
  }
  if (hops < 1) throw std::invalid_argument("a packet makes no hop; it must make at least 1");
  return header_of(std::vector<Direction>(index(hops), direction));
}

Header Fabric::multicast_along(int from, Direction direction, int chips, int skipped) const {
  Header header = header_along(from, direction, skipped + chips);
  header.set_range({direction,
                    true,
                    {static_cast<std::uint8_t>(skipped), static_cast<std::uint8_t>(chips)},
                    {},
                    {}});
  return header;
}

namespace {

struct Interval {
  int first = 0;
  int last = -1;
};

// The part of an interval beyond a position, upwards or downwards, as hops from there.
Stretch stretch_beyond(int position, Interval interval, bool is_downwards) {
  const int nearest = is_downwards ? std::min(position - 1, interval.last) - position
                                   : std::max(position + 1, interval.first) - position;
  const int farthest = is_downwards ? interval.first - position : interval.last - position;
  const int skipped = std::abs(nearest) - 1;
  const int count = is_downwards ? nearest - farthest + 1 : farthest - nearest + 1;
  if (count < 1) return {};
  return {static_cast<std::uint8_t>(skipped), static_cast<std::uint8_t>(count)};
}

}  // namespace

std::vector<Fabric::Multicast> Fabric::multicast(int from, int first, int last) const {
  for (const int place : {from, first, last}) topology_.check_place(place);
  const auto interval = [&](int dimension) {
    return Interval{topology_.coordinate(first, dimension), topology_.coordinate(last, dimension)};
  };
  const Interval columns = interval(0), rows = interval(1);
  const int column = topology_.coordinate(from, 0), row = topology_.coordinate(from, 1);
  const Stretch up = stretch_beyond(row, rows, true), down = stretch_beyond(row, rows, false);
  const bool has_row = rows.first <= row && row <= rows.last;
  std::vector<Multicast> parts;
  const auto add = [&](const MulticastRange& range) {
    if (range.along.count == 0) return;
    Header header;
    header.set_range(range);
    parts.push_back({range.direction, header});
  };
  for (const bool is_downwards : {false, true}) {
    add({direction_of(0, is_downwards), has_row, stretch_beyond(column, columns, is_downwards), up,
         down});
  }
  if (columns.first <= column && column <= columns.last) {
    add({direction_of(1, true), true, up, {}, {}});
    add({direction_of(1, false), true, down, {}, {}});
  }
  const auto leaves_its_line = [](const Multicast& part) {
    return part.header.range().up.count > 0 || part.header.range().down.count > 0;
  };
  if (!options_.turns && std::ranges::any_of(parts, leaves_its_line)) {
    throw std::invalid_argument(
        "a multicast branches into rows, which routers of this fabric do not support; keep it in a "
        "line");
  }
  if (!parts.empty()) return parts;
  throw std::invalid_argument(
      fmt::format("a multicast from place {} to places {} to {} reaches no other chip; the last "
                  "must be to the right of and below the first",
                  from, first, last));
}

Header Fabric::header_of(const std::vector<Direction>& route) const {
  const int hops_max = options_.forwards ? kHopsMax : 1;
  if (route.size() > index(hops_max)) {
    throw std::invalid_argument(
        fmt::format("a route has {} hops; it must have 1 to {}", route.size(), hops_max));
  }
  const auto turn = std::ranges::find_if(route, [&](Direction direction) {
    return dimension_of(direction) != dimension_of(route.front());
  });
  if (turn != route.end() && !options_.turns) {
    throw std::invalid_argument(
        fmt::format("a route turns after {} hops, which routers of this fabric do not support; "
                    "keep the packet in its line",
                    turn - route.begin()));
  }
  Header header;
  const int hops = static_cast<int>(route.size());
  for (int hop = 1; hop < hops; ++hop) header.set_command(hop - 1, route[index(hop)]);
  header.set_command(hops - 1, kDeliver);
  return header;
}

Time Fabric::run() {
  sim::SimulationGroup& simulation = cluster_.simulations();
  const noc::Cycle limit = cluster_.options().cycles_max;
  cluster_.start();
  if (limit > 0) {
    simulation.run_until(device(0).network().clock().edge(Cycles(limit)));
    if (is_running() && simulation.pending_events() > 0) cluster_.fail_at_limit();
  }
  simulation.run();
  if (is_running()) cluster_.fail_waiting();
  return simulation.now();
}

// True if a program is still running. Programs end without the routers.
bool Fabric::is_running() const {
  for (int place = 0; place < topology_.places(); ++place) {
    if (!device(place).is_over()) return true;
  }
  return false;
}

}  // namespace towpath::tenstorrent::fabric
