// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::tenstorrent::metalium {

using fabric::Direction;
using fabric::Header;

namespace {

// Direction numbers of tt-metal.
enum Compass : std::uint32_t { kEast, kWest, kNorth, kSouth };
constexpr std::array<std::string_view, 4> kNames{"east", "west", "north", "south"};

// Columns first, then rows, as in tt-metal's routes.
fabric::Shape shape_of(const machine::ChipCluster& cluster, const FabricMode& mode) {
  fabric::Shape shape = fabric::mesh_of(cluster);
  if (shape.dimensions.size() == 2) {
    const fabric::Shape rows_first = shape;
    const int columns = rows_first.dimensions[0].size;
    std::swap(shape.dimensions[0], shape.dimensions[1]);
    for (std::size_t place = 0; place < shape.chips.size(); ++place) {
      const std::size_t rows = shape.chips.size() / index(columns);
      shape.chips[place % index(columns) * rows + place / index(columns)] = rows_first.chips[place];
    }
  }
  for (fabric::Dimension& dimension : shape.dimensions) dimension.is_ring &= mode.has_rings;
  return shape;
}

noc::Address address_of(std::uint64_t bits) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << TOWPATH_COORDINATE_BITS) - 1;
  const std::uint64_t coordinates = bits >> TOWPATH_COORDINATE_SHIFT;
  return {{static_cast<int>(coordinates & kMask),
           static_cast<int>(coordinates >> TOWPATH_COORDINATE_BITS & kMask)},
          bits & ((std::uint64_t{1} << TOWPATH_COORDINATE_SHIFT) - 1)};
}

std::uint64_t packed(std::uint64_t bits) { return fabric::pack(address_of(bits)); }

fabric::Operation operation_of(const TowpathPacket& packet) {
  using fabric::Operation;
  if ((packet.action & kTowpathPacketSetsWord) != 0) return Operation::inline_write;
  const bool flushes = (packet.action & kTowpathPacketFlushes) != 0;
  std::uint8_t bits = 0;
  const auto add = [&](std::uint32_t action, Operation part) {
    if ((packet.action & action) != 0) bits |= static_cast<std::uint8_t>(part);
  };
  add(kTowpathPacketWrites, Operation::write);
  add(kTowpathPacketIncrements, flushes ? Operation::flush_increment : Operation::increment);
  add(kTowpathPacketScatters, Operation::scatter_write);
  return static_cast<Operation>(bits);
}

}  // namespace

KernelFabric::KernelFabric(Cluster& cluster, const FabricMode& mode)
    : fabric_(cluster, shape_of(cluster.description(), mode), {.turns = mode.is_mesh}) {
  if (mode.is_mesh) defines_.emplace("FABRIC_2D", "1");
}

int KernelFabric::place_of(int chip) const {
  const std::vector<int>& chips = fabric_.topology().shape().chips;
  const auto at = std::ranges::find(chips, chip);
  if (at == chips.end()) {
    throw std::invalid_argument(
        fmt::format("there is no chip {} in the fabric; it has {}", chip, chips.size()));
  }
  return static_cast<int>(at - chips.begin());
}

int KernelFabric::columns() const {
  const std::vector<fabric::Dimension>& dimensions = fabric_.topology().shape().dimensions;
  return dimensions.back().size;
}

// --- directions ---------------------------------------------------------------------------------

Direction KernelFabric::direction_at(std::uint32_t compass) const {
  const bool is_across = compass == kEast || compass == kWest;
  const int dimension = fabric_.topology().is_two_dimensional() && is_across ? 1 : 0;
  return fabric::direction_of(dimension, compass == kWest || compass == kNorth);
}

std::uint32_t KernelFabric::compass_of(Direction direction) const {
  for (const std::uint32_t compass : {kEast, kWest, kSouth, kNorth}) {
    if (direction_at(compass) == direction) return compass;
  }
  return kEast;
}

fabric::RouterPort KernelFabric::port(int chip, std::uint32_t channel) const {
  if (const auto port = fabric_.port_at(place_of(chip), static_cast<int>(channel))) return *port;
  throw std::invalid_argument(
      fmt::format("there is no router at Ethernet channel {} of chip {}", channel, chip));
}

std::uint32_t KernelFabric::channel_to(int chip, int to, int plane) const {
  const int place = place_of(chip);
  const Direction direction = fabric_.first_hop(place, place_of(to));
  const auto end = plane < 0 || plane >= fabric_.topology().planes()
                       ? std::nullopt
                       : fabric_.topology().end(place, direction, plane);
  if (end) return static_cast<std::uint32_t>(end->channel);
  throw std::invalid_argument(
      fmt::format("chip {} has no link {} toward chip {}; it must be 0 to {}", chip, plane, to,
                  fabric_.topology().planes() - 1));
}

// --- headers ------------------------------------------------------------------------------------

Header KernelFabric::rectangle_of(const fabric::RouterPort& port, const std::uint32_t* hops) const {
  const std::uint32_t along = compass_of(port.direction);
  const bool is_first =
      fabric_.topology().is_two_dimensional() && fabric::dimension_of(port.direction) == 0;
  for (const std::uint32_t compass : {kEast, kWest, kNorth, kSouth}) {
    const bool is_branch = is_first && fabric::dimension_of(direction_at(compass)) !=
                                           fabric::dimension_of(port.direction);
    if (hops[compass] == 0 || compass == along || is_branch) continue;
    throw std::invalid_argument(
        fmt::format("a multicast that leaves to the {} goes {} hops to the {}; it must branch from "
                    "columns into rows",
                    kNames[along], hops[compass], kNames[compass]));
  }
  const auto stretch = [&](std::uint32_t compass) {
    return fabric::Stretch{0, static_cast<std::uint8_t>(hops[compass])};
  };
  Header header =
      fabric_.multicast_along(port.place, port.direction, static_cast<int>(hops[along]));
  fabric::MulticastRange range = header.range();
  if (is_first) {
    for (const std::uint32_t compass : {kWest, kEast}) {
      if (hops[compass] == 0) continue;  // otherwise the row must have the same length
      fabric_.header_along(port.place, direction_at(compass), static_cast<int>(hops[compass]));
    }
    range.up = stretch(kWest);
    range.down = stretch(kEast);
    header.set_range(range);
  }
  return header;
}

Header KernelFabric::route_of(const fabric::RouterPort& port, const TowpathPacket& packet) const {
  switch (packet.route) {
    case kTowpathToChip: {
      const int to = place_of(static_cast<int>(packet.hops[0]));
      const Direction first = fabric_.first_hop(port.place, to);
      if (first == port.direction) return fabric_.header(port.place, to);
      throw std::invalid_argument(fmt::format(
          "its connection leads to the {}, but the path to chip {} starts to the {}",
          kNames[compass_of(port.direction)], packet.hops[0], kNames[compass_of(first)]));
    }
    case kTowpathToRectangle: return rectangle_of(port, packet.hops);
    default: break;
  }
  const auto first = static_cast<int>(packet.hops[0]), chips = static_cast<int>(packet.hops[1]);
  if (first < 1 || chips < 1) {
    throw std::invalid_argument(fmt::format(
        "a packet is for {} chips from hop {} on; both must be at least 1", chips, first));
  }
  if (chips == 1) return fabric_.header_along(port.place, port.direction, first);
  return fabric_.multicast_along(port.place, port.direction, chips, first - 1);
}

Header KernelFabric::header_of(const fabric::RouterPort& port, const TowpathPacket& packet) const {
  Header header = route_of(port, packet);
  header.operation = operation_of(packet);
  header.payload_to = packed(packet.to[0]);
  header.payload_bytes = static_cast<std::uint16_t>(packet.payload_bytes);
  header.word_at = packed(packet.word);
  header.increment = packet.value;
  if (fabric::scatters(header.operation)) return scattered(header, segments_of(packet));
  return header;
}

fabric::SegmentList segments_of(const TowpathPacket& packet) {
  fabric::SegmentList list;
  for (std::size_t i = 0; i < list.bytes.size(); ++i) {
    list.bytes[i] = static_cast<std::uint16_t>(packet.bytes[i]);
    if (i > 0) list.to[i - 1] = packed(packet.to[i]);
  }
  return list;
}

}  // namespace towpath::tenstorrent::metalium
