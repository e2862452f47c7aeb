// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/fabric/fabric_packet.hpp"

// Which chips a fabric joins, in lines or rings along one or two dimensions, over which links, and
// the way of a packet: the first dimension first, round a ring the shorter way.

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

// Chips along a line, or round a ring.
Shape line_of(std::vector<int> chips);
Shape ring_of(std::vector<int> chips);
// All chips of a cluster by where they sit; a dimension is a ring when links close each of its
// lines. Throws std::invalid_argument when they do not fill a rectangle.
Shape mesh_of(const machine::ChipCluster& cluster);
// The ring round the edge of a mesh with two rows or two columns, which has all its chips, from the
// chip at (0, 0) on; of another cluster, mesh_of.
Shape usual_shape_of(const machine::ChipCluster& cluster);

class Topology {
 public:
  // Takes the links that the dispatcher has left. Throws std::invalid_argument when neighbours are
  // not joined.
  Topology(const machine::ChipCluster& cluster, Shape shape);

  const Shape& shape() const { return shape_; }
  int places() const { return static_cast<int>(shape_.chips.size()); }
  int chip_at(int place) const { return shape_.chips[static_cast<std::size_t>(place)]; }
  bool is_two_dimensional() const { return shape_.dimensions.size() == 2; }
  // Parallel links; packets stay on theirs. The pair of neighbours with the fewest sets the number.
  int planes() const { return planes_; }

  std::optional<int> neighbour(int place, Direction direction) const;
  // The end, at a place, of the link towards a direction.
  std::optional<machine::EthernetEnd> end(int place, Direction direction, int plane) const;

  // The directions of all hops; empty when both are the same. Throws std::invalid_argument when
  // there is no such place.
  std::vector<Direction> route(int from, int to) const;

 private:
  int coordinate(int place, int dimension) const;
  void find_links(const machine::ChipCluster& cluster);

  Shape shape_;
  int planes_ = 0;
  // By place and direction, then by plane.
  std::vector<std::vector<machine::EthernetEnd>> ends_;
};

// Packets between all places cannot wait for each other in a cycle: every cycle of buffers that
// their routes close has a bubble, without which nobody enters it. Throws std::invalid_argument
// that names the cycle where one has none. `routes` are pairs of places; empty: all.
struct RoutePair {
  int from = 0;
  int to = 0;
};
void check_deadlock_free(const Topology& topology, bool has_bubbles,
                         const std::vector<RoutePair>& routes = {});

}  // namespace towpath::tenstorrent::fabric
