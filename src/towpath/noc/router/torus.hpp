// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/machine/chip.hpp"

namespace towpath::noc {

// Nodes of one NoC in its coordinates, in which packets always go to the right first, then
// downward, and wrap around the edges. NoC 0 uses the chip's coordinates. NoC 1 goes upward first,
// then to the left: its coordinates are the chip's, mirrored, with the axes exchanged.
class Torus {
 public:
  Torus(int width, int height, int noc)
      : chip_width_(width), chip_height_(height), mirrors_(noc == 1) {}

  // True if its first axis is the chip's y axis.
  bool exchanges_axes() const { return mirrors_; }

  // Extent along the first and along the second travel axis.
  int width() const { return mirrors_ ? chip_height_ : chip_width_; }
  int height() const { return mirrors_ ? chip_width_ : chip_height_; }
  int nodes() const { return chip_width_ * chip_height_; }

  int node_of(machine::Coordinate at) const {
    if (!mirrors_) return at.y * chip_width_ + at.x;
    return (chip_width_ - 1 - at.x) * chip_height_ + (chip_height_ - 1 - at.y);
  }
  machine::Coordinate coordinate_of(int node) const {
    if (!mirrors_) return {node % chip_width_, node / chip_width_};
    return {chip_width_ - 1 - node / chip_height_, chip_height_ - 1 - node % chip_height_};
  }
  int x_of(int node) const { return node % width(); }
  int y_of(int node) const { return node / width(); }
  int node_at(int x, int y) const { return y * width() + x; }
  int right_of(int node) const { return x_of(node) + 1 == width() ? node - width() + 1 : node + 1; }
  int below(int node) const { return (node + width()) % nodes(); }

  // Hops from one node to another along the first and the second axis.
  int hops_x(int from, int to) const { return (x_of(to) - x_of(from) + width()) % width(); }
  int hops_y(int from, int to) const { return (y_of(to) - y_of(from) + height()) % height(); }
  int hops(int from, int to) const { return hops_x(from, to) + hops_y(from, to); }

 private:
  int chip_width_;
  int chip_height_;
  bool mirrors_;
};

// Hops from one tile of a chip to another over a NoC.
inline int hops(const machine::Chip& chip, machine::Coordinate from, machine::Coordinate to,
                int noc) {
  const Torus torus(chip.width, chip.height, noc);
  return torus.hops(torus.node_of(from), torus.node_of(to));
}

}  // namespace towpath::noc
