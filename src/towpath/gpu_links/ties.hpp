// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <unordered_map>

#include "towpath/base/units.hpp"

// Messages that reach a link at the same moment pass in the order of their ranks. On the links that
// a representative represents, ranks with the same rotation keep that order. Ranks with different
// rotations do not: some image of one wraps around the end of the circle and comes first.

namespace towpath::gpu_links {

// The link that represents another, and the number of rotations between them.
struct FoldedLink {
  int representative = 0;
  int moves = 0;
};

class Ties {
 public:
  // A message over a link with this number of rotations reaches its representative.
  void note(std::size_t representative, int moves, Time at) {
    const auto [known, is_first] = last_.try_emplace(representative, Visit{moves, at});
    if (is_first) return;
    Visit& last = known->second;
    is_found_ |= last.at == at && last.moves != moves;
    last = {moves, at};
  }
  // True if ranks with different rotations have met.
  bool is_found() const { return is_found_; }

 private:
  struct Visit {
    int moves = 0;
    Time at;
  };
  std::unordered_map<std::size_t, Visit> last_;
  bool is_found_ = false;
};

}  // namespace towpath::gpu_links
