// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/multicast_rectangle.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace towpath::noc {
namespace {

using machine::Coordinate;

constexpr int kWidth = 5;
constexpr int kHeight = 4;

// The positions that a packet passes on its way from one to another.
std::set<int> on_the_way(int from, int to, int step, int extent) {
  std::set<int> positions{from};
  while (from != to) positions.insert(from = (from + step + extent) % extent);
  return positions;
}

TEST(MulticastRectangle, HoldsWhatAPacketPassesFromTheFirstCornerToTheLast) {
  const int tiles = kWidth * kHeight;
  for (int pair = 0; pair < 2 * tiles * tiles; ++pair) {
    const int noc = pair % 2;
    const Coordinate first{pair / 2 % kWidth, pair / 2 / kWidth % kHeight};
    const Coordinate last{pair / 2 / tiles % kWidth, pair / 2 / tiles / kWidth};
    const int step = noc == 0 ? 1 : -1;
    const std::set<int> columns = on_the_way(first.x, last.x, step, kWidth);
    const std::set<int> rows = on_the_way(first.y, last.y, step, kHeight);
    const MulticastRectangle rectangle{first, last, noc};
    for (int tile = 0; tile < tiles; ++tile) {
      const Coordinate at{tile % kWidth, tile / kWidth};
      EXPECT_EQ(rectangle.holds(at), columns.contains(at.x) && rows.contains(at.y))
          << "(" << at.x << ", " << at.y << ") from (" << first.x << ", " << first.y << ") to ("
          << last.x << ", " << last.y << ") on NoC " << noc;
    }
  }
}

TEST(MulticastRectangle, IsDescribedByWhatItCovers) {
  machine::Chip chip;
  chip.width = kWidth;
  chip.height = kHeight;
  EXPECT_EQ(describe({{1, 1}, {2, 3}, 0}, chip), "the rectangle (1, 1) to (2, 3)");
  EXPECT_EQ(describe({{2, 3}, {1, 1}, 1}, chip), "the rectangle (2, 3) to (1, 1)");
  EXPECT_EQ(describe({{3, 1}, {1, 1}, 0}, chip),
            "the rectangle (3, 1) to (1, 1), which goes round the torus on NoC 0 over columns 3 to "
            "4 and 0 to 1 and row 1,");
}

}  // namespace
}  // namespace towpath::noc
