// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Line all-reduce: 2(R-1) steps one after the other, at most S bytes each way on the wire per rank.
// A reduce-scatter and then an all-gather, either of them both ways along the line.
#include "towpath/collective/algorithms/by_dimension.hpp"

namespace towpath::collective {

Schedule line_all_reduce(const AlgorithmOptions& options) {
  return all_reduce_by_dimension("line_all_reduce", options, Grid{});
}

}  // namespace towpath::collective
