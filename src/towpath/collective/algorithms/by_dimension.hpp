// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "towpath/collective/algorithms/building.hpp"

// Schedules over one dimension of a grid of ranks after the other, each as rings or lines. A single
// row is a ring or line of all ranks. If rows are lines, every second channel starts with the
// columns.

namespace towpath::collective {

// Default: a line of all ranks.
struct Grid {
  int columns = 0;
  bool row_rings = false;
  bool column_rings = false;
};

Grid grid_of(const AlgorithmOptions& options);

// Along the rows, then along the columns.
Schedule all_gather_by_dimension(std::string_view name, const AlgorithmOptions& options,
                                 const Grid& grid);

// Along the rows, then the remaining parts along the columns.
Schedule reduce_scatter_by_dimension(std::string_view name, const AlgorithmOptions& options,
                                     const Grid& grid);

// Reduce-scatter, then all-gather in reverse order.
Schedule all_reduce_by_dimension(std::string_view name, const AlgorithmOptions& options,
                                 const Grid& grid);

}  // namespace towpath::collective
