// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "towpath/machine/chip.hpp"

// Chips for tests.

namespace towpath::machine {

// The shipped Wormhole without its tiles, and with some parameters set to the values that expected
// times in tests were computed with.
Chip chip_without_tiles();

// The same with tiles drawn row by row: w worker, e ethernet, p pcie, h harvested, a digit DRAM of
// that group, anything else only a router.
Chip drawn_chip(const std::vector<std::string>& rows);

// 4 x 4 tiles: two DRAM groups, an Ethernet tile, a harvested one and 3 x 3 workers from (1, 1) on.
std::shared_ptr<const Chip> tiny_chip();

// 10 x 12 tiles with 8 x 8 workers where Wormhole has them.
std::shared_ptr<const Chip> wormhole_like_chip();

}  // namespace towpath::machine
