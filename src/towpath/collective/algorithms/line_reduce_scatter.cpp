// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Line reduce-scatter: R-1 steps one after the other, at most S (R-1)/R bytes each way on the wire
// per rank. S is the array before it is scattered. Sums of each part come to the rank that keeps it
// from both ends of the line, for machines on which the ends are not joined. The order of a
// channel's ranks is that of its ring.
#include "towpath/collective/algorithms/by_dimension.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  return reduce_scatter_by_dimension("line_reduce_scatter", options, Grid{});
}

}  // namespace

constinit const Algorithm line_reduce_scatter{
    .name = "line_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .make = make,
    .description = "sums of every part from both ends of a line to where it is kept",
    .cost = "R-1 steps, at most S(R-1)/R bytes each way",
};

}  // namespace towpath::collective
