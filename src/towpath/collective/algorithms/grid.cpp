// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Grid collectives, on X columns and Y rows, each dimension a ring or a line: (X-1) + (Y-1) steps
// one after the other, twice as many for all-reduce, where rings and lines of all ranks take R-1.
// On rings, S (R-1)/R bytes on the wire per rank, twice as many for all-reduce; on lines, at most
// as many each way. S is the whole array.
#include "towpath/collective/algorithms/by_dimension.hpp"

namespace towpath::collective {
namespace {

Schedule all_gather(const AlgorithmOptions& options) {
  return all_gather_by_dimension("grid_all_gather", options, grid_of(options));
}

Schedule reduce_scatter(const AlgorithmOptions& options) {
  return reduce_scatter_by_dimension("grid_reduce_scatter", options, grid_of(options));
}

Schedule all_reduce(const AlgorithmOptions& options) {
  return all_reduce_by_dimension("grid_all_reduce", options, grid_of(options));
}

}  // namespace

constinit const Algorithm grid_all_gather{
    .name = "grid_all_gather",
    .collective = Collective::all_gather,
    .make = all_gather,
    .description = "every part along the rows, then along the columns, of a grid",
    .cost = "(X-1)+(Y-1) steps, S(R-1)/R bytes",
    .needs_grid = true,
};

constinit const Algorithm grid_reduce_scatter{
    .name = "grid_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .make = reduce_scatter,
    .description = "sums along the rows, then along the columns, of a grid",
    .cost = "(X-1)+(Y-1) steps, S(R-1)/R bytes",
    .needs_grid = true,
};

constinit const Algorithm grid_all_reduce{
    .name = "grid_all_reduce",
    .collective = Collective::all_reduce,
    .make = all_reduce,
    .description = "sums along the rows, then the columns, of a grid, and the same way back",
    .cost = "2(X-1)+2(Y-1) steps, 2S(R-1)/R bytes",
    .needs_grid = true,
};

}  // namespace towpath::collective
