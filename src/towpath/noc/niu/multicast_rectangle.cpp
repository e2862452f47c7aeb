// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/multicast_rectangle.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace towpath::noc {

namespace {

// "columns 9 and 0 to 2" of an axis with ten positions that is covered from 9 to 2.
std::string positions(std::string_view name, int from, int to, int extent) {
  const auto span = [](int first, int last) {
    return first == last ? fmt::to_string(first) : fmt::format("{} to {}", first, last);
  };
  const std::string all =
      from > to ? span(from, extent - 1) + " and " + span(0, to) : span(from, to);
  return fmt::format("{}{} {}", name, from == to ? "" : "s", all);
}

}  // namespace

MulticastRectangle MulticastRectangle::within_edges() const {
  const auto [left, right] = std::minmax(first.x, last.x);
  const auto [top, bottom] = std::minmax(first.y, last.y);
  if (noc == 1) return {{right, bottom}, {left, top}, noc};
  return {{left, top}, {right, bottom}, noc};
}

std::string describe(const MulticastRectangle& rectangle, const machine::Chip& chip) {
  const std::string corners = fmt::format("the rectangle ({}, {}) to ({}, {})", rectangle.first.x,
                                          rectangle.first.y, rectangle.last.x, rectangle.last.y);
  if (!rectangle.goes_round()) return corners;
  const MulticastRectangle::Interval columns = rectangle.columns();
  const MulticastRectangle::Interval rows = rectangle.rows();
  return fmt::format("{}, which goes round the torus on NoC {} over {} and {},", corners,
                     rectangle.noc, positions("column", columns.from, columns.to, chip.width),
                     positions("row", rows.from, rows.to, chip.height));
}

}  // namespace towpath::noc
