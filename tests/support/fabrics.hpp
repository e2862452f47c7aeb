// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "towpath/machine/chip_cluster.hpp"

// Clusters of chips for tests.

namespace towpath::machine {

// Chip y * columns + x at (x, y), joined to its neighbours by `links` links; with rings, those at
// opposite edges too.
std::shared_ptr<const ChipCluster> chips_on_grid(int columns, int rows, bool has_rings, int links);

}  // namespace towpath::machine
