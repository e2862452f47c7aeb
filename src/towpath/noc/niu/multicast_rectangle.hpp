// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "towpath/machine/chip.hpp"

namespace towpath::noc {

// The tiles between the corners of a multicast, in the direction of its NoC: from the first corner
// to the right and down on NoC 0, to the left and up on NoC 1, and around the torus if the last
// corner is behind the first. Both NoCs use the coordinates of NoC 0. Source: tt-metal, issues
// 37983 and 2977.
struct MulticastRectangle {
  machine::Coordinate first;
  machine::Coordinate last;
  int noc = 0;

  bool holds(machine::Coordinate at) const { return columns().hold(at.x) && rows().hold(at.y); }
  bool operator==(const MulticastRectangle&) const = default;
  bool goes_round() const { return columns().go_round() || rows().go_round(); }
  // The rectangle of the same columns and rows that does not wrap around.
  MulticastRectangle within_edges() const;

 private:
  friend std::string describe(const MulticastRectangle& rectangle, const machine::Chip& chip);
  // Positions along an axis, in ascending order.
  struct Interval {
    int from = 0;
    int to = 0;
    bool go_round() const { return from > to; }
    bool hold(int at) const { return go_round() ? at >= from || at <= to : at >= from && at <= to; }
  };
  Interval columns() const { return ascending(first.x, last.x); }
  Interval rows() const { return ascending(first.y, last.y); }
  Interval ascending(int begin, int end) const {
    return noc == 1 ? Interval{end, begin} : Interval{begin, end};
  }
};

// "the rectangle (1, 1) to (2, 2)", and the columns and rows that it covers if it wraps around.
std::string describe(const MulticastRectangle& rectangle, const machine::Chip& chip);

}  // namespace towpath::noc
