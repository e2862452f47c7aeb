// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Line all-reduce: 2(R-1) steps one after the other, at most S bytes each way on the wire per rank.
// A reduce-scatter and then an all-gather, either of them both ways along the line.
#include "towpath/collective/algorithms/by_dimension.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  return all_reduce_by_dimension("line_all_reduce", options, Grid{});
}

}  // namespace

constinit const Algorithm line_all_reduce{
    .name = "line_all_reduce",
    .collective = Collective::all_reduce,
    .make = make,
    .description = "sums of every part from both ends of a line to one rank, and back to both ends",
    .cost = "2(R-1) steps, at most S bytes each way",
};

}  // namespace towpath::collective
