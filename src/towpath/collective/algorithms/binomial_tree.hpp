// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {

// A rank's place in the binomial tree below a root. Ranks are numbered from the root on, and the
// children of a number are those 1, 2, 4, ... further, below its reach. A number has the parts of
// those below it, which follow it.
struct BinomialTree {
  int number;
  int ranks;
  int root;

  int rank_of(int other) const { return (other + root) % ranks; }
  int rank() const { return rank_of(number); }
  int parent() const { return rank_of(number & (number - 1)); }
  // Children are nearer than this.
  int reach() const { return number == 0 ? ranks : std::min(number & -number, ranks - number); }
  // How many parts come from or go to the rank and those below it, and a child of it.
  int parts() const { return reach(); }
  int parts_of(int distance) const { return std::min(distance, ranks - number - distance); }
};

}  // namespace towpath::collective
