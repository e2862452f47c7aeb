// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/fabric/fabric_packet.hpp"

// Topology of a fabric: its chips, in lines or rings along one or two dimensions, its links, and
// the route of a packet: the first dimension first, on a ring in the shorter direction.

namespace towpath::tenstorrent::fabric {

struct Dimension {
  int size = 1;
  bool is_ring = false;
};

// The chips by place, with the first dimension contiguous.
struct Shape {
  std::vector<Dimension> dimensions;
  std::vector<int> chips;
};

// Shape with the chips along a line, or around a ring.
Shape line_of(std::vector<int> chips);
Shape ring_of(std::vector<int> chips);
// Shape with all chips of a cluster at their coordinates. A dimension is a ring if links close each
// of its lines. Throws std::invalid_argument if they do not fill a rectangle.
Shape mesh_of(const machine::ChipCluster& cluster);
// The ring around the edge of a mesh with two rows or two columns, which contains all its chips,
// starting at the chip at (0, 0). For any other cluster, mesh_of.
Shape default_shape(const machine::ChipCluster& cluster);

class Topology {
 public:
  // Uses the links that are not reserved for the dispatcher. Throws std::invalid_argument if
  // neighbours are not connected.
  Topology(const machine::ChipCluster& cluster, Shape shape);

  const Shape& shape() const { return shape_; }
  int places() const { return static_cast<int>(shape_.chips.size()); }
  int chip_at(int place) const { return shape_.chips[static_cast<std::size_t>(place)]; }
  bool is_two_dimensional() const { return shape_.dimensions.size() == 2; }
  // Number of parallel links, the minimum over all pairs of neighbours. Packets stay on theirs.
  int planes() const { return planes_; }

  std::optional<int> neighbour(int place, Direction direction) const;
  // The end, at a place, of the link in a direction.
  std::optional<machine::EthernetEnd> end(int place, Direction direction, int plane) const;

  // Position along a dimension; 0 if the shape does not have it.
  int coordinate(int place, int dimension) const;
  // Throws std::invalid_argument if there is no such place.
  void check_place(int place) const;

  // Directions of all hops; empty if both places are equal. Throws std::invalid_argument if there
  // is no such place.
  std::vector<Direction> route(int from, int to) const;

 private:
  void find_links(const machine::ChipCluster& cluster);

  Shape shape_;
  int planes_ = 0;
  // By place and direction, then by plane.
  std::vector<std::vector<machine::EthernetEnd>> ends_;
};

// Throws std::invalid_argument with a cycle if packets can deadlock: every cycle of buffers in the
// routes must have a bubble, without which no packet enters it. `routes` are pairs of places;
// empty: all.
struct RoutePair {
  int from = 0;
  int to = 0;
};
void check_deadlock_free(const Topology& topology, bool has_bubbles,
                         const std::vector<RoutePair>& routes = {});

}  // namespace towpath::tenstorrent::fabric
