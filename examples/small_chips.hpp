// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "towpath/machine/chip_cluster.hpp"

// Chips that are small enough for an example, with much of Wormhole's figures.

namespace towpath::examples {

std::shared_ptr<const machine::Chip> square_of_workers(int side);

// Each with two Ethernet cores, (0, 0) and (1, 0), and a worker below each of them; so many links
// join the first core of the one to the first of the other, then the second to the second.
std::shared_ptr<const machine::ChipCluster> two_chips(int links);

}  // namespace towpath::examples
