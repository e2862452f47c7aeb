// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Grid collectives, on X columns and Y rows, each dimension a ring or a line: (X-1) + (Y-1) steps
// one after the other, twice as many for all-reduce, where rings and lines of all ranks take R-1.
// On rings, S (R-1)/R bytes on the wire per rank, twice as many for all-reduce; on lines, at most
// as many each way. S is the whole array.
#include "towpath/collective/algorithms/by_dimension.hpp"

namespace towpath::collective {

Schedule grid_all_gather(const AlgorithmOptions& options) {
  return all_gather_by_dimension("grid_all_gather", options, grid_of(options));
}

Schedule grid_reduce_scatter(const AlgorithmOptions& options) {
  return reduce_scatter_by_dimension("grid_reduce_scatter", options, grid_of(options));
}

Schedule grid_all_reduce(const AlgorithmOptions& options) {
  return all_reduce_by_dimension("grid_all_reduce", options, grid_of(options));
}

}  // namespace towpath::collective
