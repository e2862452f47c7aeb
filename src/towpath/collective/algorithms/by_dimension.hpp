// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "towpath/collective/algorithms/building.hpp"

// Schedules over the dimensions of a grid of ranks, one after the other, each as a ring or as a
// line. A single row is a ring or a line of all ranks. Where rows are lines, every other channel
// takes the columns before the rows.

namespace towpath::collective {

// The default is a line of all ranks.
struct Grid {
  int columns = 0;
  bool row_rings = false;
  bool column_rings = false;
};

Grid grid_of(const AlgorithmOptions& options);

// Along the rows, then along the columns.
Schedule all_gather_by_dimension(std::string_view name, const AlgorithmOptions& options,
                                 const Grid& grid);

// Along the rows, then along the columns, with what is left.
Schedule reduce_scatter_by_dimension(std::string_view name, const AlgorithmOptions& options,
                                     const Grid& grid);

// Sums as reduce-scatter does, and hands them out the way back.
Schedule all_reduce_by_dimension(std::string_view name, const AlgorithmOptions& options,
                                 const Grid& grid);

}  // namespace towpath::collective
