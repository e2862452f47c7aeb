// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Line all-gather: R-1 steps one after the other, at most S (R-1)/R bytes each way on the wire per
// rank. S is the gathered array. Every part goes both ways from its rank to the ends of the line,
// for machines on which the ends are not joined. The order of a channel's ranks is that of its
// ring.
#include "towpath/collective/algorithms/by_dimension.hpp"

namespace towpath::collective {
namespace {

Schedule make(const AlgorithmOptions& options) {
  return all_gather_by_dimension("line_all_gather", options, Grid{});
}

}  // namespace

constinit const Algorithm line_all_gather{
    .name = "line_all_gather",
    .collective = Collective::all_gather,
    .make = make,
    .description = "every part to both ends of a line",
    .cost = "R-1 steps, at most S(R-1)/R bytes each way",
};

}  // namespace towpath::collective
