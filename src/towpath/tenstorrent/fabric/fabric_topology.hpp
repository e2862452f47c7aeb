// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/fabric/fabric_packet.hpp"

// Topology of a fabric: the chips that it joins, in lines or rings along one or two dimensions, its
// links, and the route of a packet: the first dimension first, round a ring the shorter way.

namespace towpath::tenstorrent::fabric {

struct Dimension {
  int size = 1;
  bool is_ring = false;
};

// The chips by place: those of the first dimension side by side, row after row.
struct Shape {
  std::vector<Dimension> dimensions;
  std::vector<int> chips;
};

// Shape with the chips along a line, or round a ring.
Shape line_of(std::vector<int> chips);
Shape ring_of(std::vector<int> chips);
// Shape with all chips of a cluster at their coordinates; a dimension is a ring when links close
// each of its lines. Throws std::invalid_argument when they do not fill a rectangle.
Shape mesh_of(const machine::ChipCluster& cluster);
// The ring round the edge of a mesh with two rows or two columns, which contains all its chips,
// starting at the chip at (0, 0); for any other cluster, mesh_of.
Shape default_shape(const machine::ChipCluster& cluster);

class Topology {
 public:
  // Takes the links that the dispatcher has left. Throws std::invalid_argument when neighbours are
  // not joined.
  Topology(const machine::ChipCluster& cluster, Shape shape);

  const Shape& shape() const { return shape_; }
  int places() const { return static_cast<int>(shape_.chips.size()); }
  int chip_at(int place) const { return shape_.chips[static_cast<std::size_t>(place)]; }
  bool is_two_dimensional() const { return shape_.dimensions.size() == 2; }
  // Number of parallel links; packets stay on theirs. The pair of neighbours with the fewest sets
  // it.
  int planes() const { return planes_; }

  std::optional<int> neighbour(int place, Direction direction) const;
  // The end, at a place, of the link towards a direction.
  std::optional<machine::EthernetEnd> end(int place, Direction direction, int plane) const;

  // Position along a dimension; 0 along one that the shape does not have.
  int coordinate(int place, int dimension) const;
  // Throws std::invalid_argument when there is no such place.
  void check_place(int place) const;

  // Directions of all hops; empty when both places are the same. Throws std::invalid_argument when
  // there is no such place.
  std::vector<Direction> route(int from, int to) const;

 private:
  void find_links(const machine::ChipCluster& cluster);

  Shape shape_;
  int planes_ = 0;
  // By place and direction, then by plane.
  std::vector<std::vector<machine::EthernetEnd>> ends_;
};

// Throws std::invalid_argument, naming a cycle, unless packets between all places cannot wait for
// each other: every cycle of buffers that their routes close must have a bubble, without which no
// packet enters it. `routes` are pairs of places; empty: all.
struct RoutePair {
  int from = 0;
  int to = 0;
};
void check_deadlock_free(const Topology& topology, bool has_bubbles,
                         const std::vector<RoutePair>& routes = {});

}  // namespace towpath::tenstorrent::fabric
