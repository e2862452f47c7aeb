// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/fabric/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "towpath/noc/bits.hpp"

namespace towpath::tenstorrent::fabric {

using noc::index;

namespace {

constexpr std::uint64_t kHeaderBytes = 48;
constexpr std::uint64_t kHeaderBytesOfMesh = 96;

// Slots of a channel, and of the receiver, which has one transaction id per slot.
using Slots = std::array<int, 2>;
constexpr std::array<Slots, 4> kSlots{{{8, 16}, {4, 16}, {4, 8}, {2, 4}}};
static_assert(kSlots.front()[1] <= noc::kTransactionIdsMax);

// As many slots as fit into L1.
Layout layout_of(const Topology& topology, const machine::Chip& chip, std::uint64_t room_bytes,
                 std::uint64_t payload_bytes_max) {
  const bool is_mesh = topology.is_two_dimensional();
  Layout layout{.channels = is_mesh ? 4 : 2,
                .header_bytes = is_mesh ? kHeaderBytesOfMesh : kHeaderBytes,
                .payload_bytes_max = (payload_bytes_max + Layout::kCellBytes - 1) /
                                     Layout::kCellBytes * Layout::kCellBytes};
  for (const auto& [channel, receiver] : kSlots) {
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
  if (cluster.options().carries_data && !cluster.options().finds_hazards) return;
  throw std::invalid_argument(
      fmt::format("a fabric on cluster '{}', which {}; it needs one that carries data and does not "
                  "find hazards",
                  cluster.description().name,
                  cluster.options().carries_data ? "finds hazards" : "keeps times only"));
}

// The second RISC-V runs beside the kernel, which runs on the first.
tenstorrent::EthernetKernel router(const RouterConfig& config, EthernetTile& tile) {
  return [config, &tile](EthernetCore& core) {
    if (core.network().chip().ethernet_software.fabric_cores == 1) return route(core, config);
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
  for (int place = 0; place < topology_.places(); ++place) {
    programs_.push_back(&cluster.create_program(topology_.chip_at(place)));
  }
  layout_ = layout_of(topology_, device(0).chip(),
                      programs_.front()->free_bytes(machine::TileKind::ethernet),
                      options.payload_bytes_max);
  for (Program* program : programs_) {
    layout_.base = program->allocate(layout_.size_bytes(), machine::TileKind::ethernet);
  }
  for (int place = 0; place < topology_.places(); ++place) create_routers(place);
}

void Fabric::create_routers(int place) {
  routers_.push_back(0);
  for (Direction direction = 0; direction < kDirections; ++direction) {
    for (int plane = 0; plane < topology_.planes(); ++plane) {
      const auto end = topology_.end(place, direction, plane);
      if (!end) continue;
      program(place).create_kernel(
          {0, end->channel},
          {.name = fmt::format("router to chip {}",
                               topology_.chip_at(*topology_.neighbour(place, direction)))},
          router(config(place, direction, plane), device(place).ethernet_tile({0, end->channel})));
      ++routers_.back();
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
      .polls_per_context_switch = options_.polls_per_context_switch};
  const auto tile = [&](Direction other) { return port(place, other, plane).tile; };
  const auto exists = [&](Direction other) {
    return topology_.end(place, other, plane).has_value();
  };
  // Packets that go straight on come from the link behind.
  if (exists(opposite(direction))) {
    config.clients[kStraightChannel] = {tile(opposite(direction)), direction};
    config.next[opposite(direction)] = {tile(opposite(direction)), kStraightChannel};
  }
  for (const Direction turning : {direction_of(0, false), direction_of(0, true)}) {
    if (dimension != 1 || !exists(opposite(turning))) continue;
    config.clients[index(turn_channel(turning))] = {tile(opposite(turning)), direction};
  }
  if (dimension == 0 && topology_.is_two_dimensional()) {
    for (const Direction into : {direction_of(1, false), direction_of(1, true)}) {
      if (exists(into)) config.next[into] = {tile(into), turn_channel(opposite(direction))};
    }
  }
  return config;
}

RouterPort Fabric::port(int place, Direction direction, int plane) const {
  const machine::EthernetEnd end = *topology_.end(place, direction, plane);
  return {cluster_.description().core_of(end), layout_};
}

std::vector<Direction> Fabric::route(int from, int to) const {
  std::vector<Direction> route = topology_.route(from, to);
  if (route.empty()) {
    throw std::invalid_argument(fmt::format(
        "a packet goes from place {} to itself; a fabric joins different places", from));
  }
  return route;
}

Header Fabric::header(int from, int to) const {
  const std::vector<Direction> route = this->route(from, to);
  if (route.size() > index(kHopsMax)) {
    throw std::invalid_argument(
        fmt::format("a route has {} hops; a header holds 1 to {}", route.size(), kHopsMax));
  }
  Header header;
  const int hops = static_cast<int>(route.size());
  for (int hop = 1; hop < hops; ++hop) header.set_command(hop - 1, route[index(hop)]);
  header.set_command(hops - 1, kDeliver);
  return header;
}

Time Fabric::run() {
  cluster_.start();
  cluster_.simulation().run();
  for (int place = 0; place < topology_.places(); ++place) {
    if (program(place).running() > routers_[index(place)]) cluster_.fail_waiting();
  }
  return cluster_.simulation().now();
}

}  // namespace towpath::tenstorrent::fabric
