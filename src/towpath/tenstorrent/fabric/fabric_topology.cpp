// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/fabric/fabric_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/base/index.hpp"

namespace towpath::tenstorrent::fabric {

namespace {

bool are_joined(const machine::ChipCluster& cluster, int one, int other) {
  return !cluster.channels_to(one, other, false).empty();
}

Shape path_of(std::vector<int> chips, bool is_ring) {
  const int size = static_cast<int>(chips.size());
  return {{{size, is_ring && size > 2}}, std::move(chips)};
}

// True if the first and the last chip of every line are connected.
bool is_closed(const machine::ChipCluster& cluster, const Shape& shape, int dimension) {
  const int width = shape.dimensions[0].size;
  const int height = shape.dimensions[1].size;
  const int size = shape.dimensions[index(dimension)].size;
  if (size < 3) return false;
  for (int line = 0; line < (dimension == 0 ? height : width); ++line) {
    const int first = dimension == 0 ? line * width : line;
    const int last = first + (size - 1) * (dimension == 0 ? 1 : width);
    if (!are_joined(cluster, shape.chips[index(first)], shape.chips[index(last)])) return false;
  }
  return true;
}

}  // namespace

Shape line_of(std::vector<int> chips) { return path_of(std::move(chips), false); }
Shape ring_of(std::vector<int> chips) { return path_of(std::move(chips), true); }

Shape mesh_of(const machine::ChipCluster& cluster) {
  int width = 0, height = 0;
  std::map<std::pair<int, int>, int> places;
  for (std::size_t chip = 0; chip < cluster.chips.size(); ++chip) {
    const machine::ClusterChip& at = cluster.chips[chip];
    width = std::max(width, at.x + 1);
    height = std::max(height, at.y + 1);
    places[{at.y, at.x}] = static_cast<int>(chip);
  }
  if (places.size() != cluster.chips.size() || places.size() != index(width * height)) {
    throw std::invalid_argument(
        fmt::format("the {} chips of cluster '{}' do not fill a mesh of {} x {}; name the chips of "
                    "a line or ring",
                    cluster.chips.size(), cluster.name, width, height));
  }
  Shape shape{{{width, false}, {height, false}}, {}};
  for (const auto& [place, chip] : places) shape.chips.push_back(chip);
  for (const int dimension : {0, 1}) {
    shape.dimensions[index(dimension)].is_ring = is_closed(cluster, shape, dimension);
  }
  if (height == 1) shape.dimensions.pop_back();
  return shape;
}

Shape default_shape(const machine::ChipCluster& cluster) {
  const Shape mesh = mesh_of(cluster);
  if (mesh.dimensions.size() == 1) return mesh;
  const int width = mesh.dimensions[0].size;
  const int height = mesh.dimensions[1].size;
  if (std::min(width, height) != 2) return mesh;
  std::vector<int> chips;
  const bool is_wide = height == 2;
  const int length = is_wide ? width : height;
  const auto at = [&](int along, int across) {
    return mesh.chips[index(is_wide ? across * width + along : along * width + across)];
  };
  for (int along = 0; along < length; ++along) chips.push_back(at(along, 0));
  for (int along = length; along-- > 0;) chips.push_back(at(along, 1));
  return ring_of(std::move(chips));
}

// --- links --------------------------------------------------------------------------------------

Topology::Topology(const machine::ChipCluster& cluster, Shape shape) : shape_(std::move(shape)) {
  int places = 1;
  for (const Dimension& dimension : shape_.dimensions) places *= dimension.size;
  if (shape_.dimensions.empty() || shape_.dimensions.size() > 2 || places != this->places()) {
    throw std::invalid_argument(
        fmt::format("a fabric of {} dimensions for {} places has {} chips; it must have one or two "
                    "dimensions and a chip for each place",
                    shape_.dimensions.size(), places, this->places()));
  }
  const std::set<int> different(shape_.chips.begin(), shape_.chips.end());
  if (different.size() != shape_.chips.size() || *different.begin() < 0 ||
      index(*different.rbegin()) >= cluster.chips.size()) {
    throw std::invalid_argument(fmt::format(
        "a fabric names a chip twice, or a chip that cluster '{}' does not have; it has 0 to {}",
        cluster.name, cluster.chips.size() - 1));
  }
  find_links(cluster);
}

namespace {

// The ends at `chip` of its links to the other chip, by plane: from left to right on the chip with
// the higher number, as in tt-metal (control_plane.cpp, by chip id).
std::vector<machine::EthernetEnd> ends_between(const machine::ChipCluster& cluster, int chip,
                                               int other) {
  struct Joined {
    machine::EthernetEnd here, there;
  };
  std::vector<Joined> links;
  for (const machine::EthernetLink& link : cluster.links) {
    const auto& [one, two] = link.ends;
    if (link.is_reserved) continue;
    if (one.chip == chip && two.chip == other) links.push_back({one, two});
    if (two.chip == chip && one.chip == other) links.push_back({two, one});
  }
  std::ranges::stable_sort(links, {}, [&](const Joined& link) {
    const machine::EthernetEnd end = chip > other ? link.here : link.there;
    return cluster.chips[index(end.chip)].chip->ethernet_cores[index(end.channel)].x;
  });
  std::vector<machine::EthernetEnd> ends;
  for (const Joined& link : links) ends.push_back(link.here);
  return ends;
}

}  // namespace

void Topology::find_links(const machine::ChipCluster& cluster) {
  ends_.resize(shape_.chips.size() * kDirections);
  bool is_first = true;
  for (int place = 0; place < places(); ++place) {
    for (Direction direction = 0; direction < kDirections; ++direction) {
      const std::optional<int> next = neighbour(place, direction);
      if (!next) continue;
      const int chip = chip_at(place);
      const int other = chip_at(*next);
      std::vector<machine::EthernetEnd> ends = ends_between(cluster, chip, other);
      const int links = static_cast<int>(ends.size());
      if (links == 0) {
        throw std::invalid_argument(
            fmt::format("chips {} and {} of cluster '{}' are neighbors in the fabric, but no link "
                        "between them is available to the fabric",
                        chip, other, cluster.name));
      }
      planes_ = is_first ? links : std::min(planes_, links);
      is_first = false;
      ends_[index(place * kDirections + direction)] = std::move(ends);
    }
  }
}

int Topology::coordinate(int place, int dimension) const {
  const int first = shape_.dimensions[0].size;
  return dimension == 0 ? place % first : place / first;
}

std::optional<int> Topology::neighbour(int place, Direction direction) const {
  const int dimension = dimension_of(direction);
  if (index(dimension) >= shape_.dimensions.size()) return std::nullopt;
  const auto [size, is_ring] = shape_.dimensions[index(dimension)];
  const int at = coordinate(place, dimension);
  int next = at + (direction % 2 == 0 ? 1 : -1);
  if (next < 0 || next >= size) {
    if (!is_ring) return std::nullopt;
    next = (next + size) % size;
  }
  const int stride = dimension == 0 ? 1 : shape_.dimensions[0].size;
  return place + (next - at) * stride;
}

std::optional<machine::EthernetEnd> Topology::end(int place, Direction direction, int plane) const {
  const auto& ends = ends_[index(place * kDirections + direction)];
  if (index(plane) >= ends.size()) return std::nullopt;
  return ends[index(plane)];
}

void Topology::check_place(int place) const {
  if (place >= 0 && place < places()) return;
  throw std::invalid_argument(
      fmt::format("place {} is not one of the fabric; it has 0 to {}", place, places() - 1));
}

std::vector<Direction> Topology::route(int from, int to) const {
  for (const int place : {from, to}) check_place(place);
  std::vector<Direction> hops;
  for (int dimension = 0; dimension < static_cast<int>(shape_.dimensions.size()); ++dimension) {
    const auto [size, is_ring] = shape_.dimensions[index(dimension)];
    int distance = coordinate(to, dimension) - coordinate(from, dimension);
    if (is_ring && 2 * distance > size) distance -= size;
    if (is_ring && 2 * distance < -size) distance += size;
    // For exactly half the ring, packets of even places go up and of odd places down.
    if (is_ring && 2 * std::abs(distance) == size) {
      distance = coordinate(from, dimension) % 2 == 0 ? size / 2 : -(size / 2);
    }
    hops.insert(hops.end(), index(std::abs(distance)), direction_of(dimension, distance < 0));
  }
  return hops;
}

// --- deadlock -----------------------------------------------------------------------------------

namespace {

// Buffers of a link: its router's channels, then the receiver's, shared by all of them.
struct Buffer {
  int place = 0;
  Direction direction = 0;
  auto operator<=>(const Buffer&) const = default;
};
using Graph = std::map<Buffer, std::set<Buffer>>;

std::string describe(const Topology& topology, const Buffer& buffer) {
  const int chip = topology.chip_at(buffer.place);
  const machine::EthernetEnd end = *topology.end(buffer.place, buffer.direction, 0);
  return fmt::format("chip {} channel {}", chip, end.channel);
}

// True if the hop from here closes a ring. Its bubble keeps the ring moving.
bool closes_ring(const Topology& topology, int place, Direction direction) {
  const int next = *topology.neighbour(place, direction);
  return direction % 2 == 0 ? next < place : next > place;
}

void add_route(Graph& graph, const Topology& topology, RoutePair pair, bool has_bubbles) {
  int place = pair.from;
  std::optional<Buffer> before;
  std::optional<Direction> came;
  for (const Direction direction : topology.route(pair.from, pair.to)) {
    const Buffer buffer{place, direction};
    graph[buffer];
    const bool is_harmless =
        has_bubbles && came == direction &&
        closes_ring(topology, *topology.neighbour(place, opposite(direction)), direction);
    if (before && !is_harmless) graph[*before].insert(buffer);
    before = buffer;
    came = direction;
    place = *topology.neighbour(place, direction);
  }
}

// Depth-first search for a path from `buffer` back to itself; empty if there is none.
bool find_cycle(const Graph& graph, const Buffer& at, std::vector<Buffer>& path,
                std::set<Buffer>& done) {
  const auto begin = std::ranges::find(path, at);
  if (begin != path.end()) {
    path.erase(path.begin(), begin);
    return true;
  }
  if (!done.insert(at).second) return false;
  path.push_back(at);
  for (const Buffer& next : graph.at(at)) {
    if (find_cycle(graph, next, path, done)) return true;
  }
  path.pop_back();
  return false;
}

}  // namespace

void check_deadlock_free(const Topology& topology, bool has_bubbles,
                         const std::vector<RoutePair>& routes) {
  Graph graph;
  for (const RoutePair& pair : routes) add_route(graph, topology, pair, has_bubbles);
  for (int from = 0; routes.empty() && from < topology.places(); ++from) {
    for (int to = 0; to < topology.places(); ++to) {
      add_route(graph, topology, {from, to}, has_bubbles);
    }
  }
  std::set<Buffer> done;
  for (const auto& [buffer, next] : graph) {
    std::vector<Buffer> path;
    if (!find_cycle(graph, buffer, path, done)) continue;
    std::string cycle;
    for (const Buffer& at : path) cycle += describe(topology, at) + ", ";
    throw std::invalid_argument(
        fmt::format("packets may wait for each other forever: the buffers of {}and again "
                    "{} can all be full; a bubble is needed there",
                    cycle, describe(topology, path.front())));
  }
}

}  // namespace towpath::tenstorrent::fabric
