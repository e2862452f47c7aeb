// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "towpath/machine/chip_cluster.hpp"

// Chips that are small enough for an example: the shipped Wormhole with fewer tiles.

namespace towpath::examples {

std::shared_ptr<const machine::Chip> square_of_workers(int side);

// Two chips, each with two Ethernet cores, (0, 0) and (1, 0), and a worker below each of them. One
// link joins their first cores; a second link joins their second cores.
std::shared_ptr<const machine::ChipCluster> two_chips(int links);

}  // namespace towpath::examples
