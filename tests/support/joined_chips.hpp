// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "towpath/base/units.hpp"
#include "towpath/machine/chip_cluster.hpp"

// Small chips in a row, for tests of programs that span several. Each has four Ethernet cores, (0,
// 0) to (3, 0), and eight workers below, (0, 1) to (3, 2). Channels 0 and 1 lead to the next chip,
// 2 and 3 to the one before.

namespace towpath::machine {

struct JoinedChips {
  int chips = 2;
  int links = 1;         // between neighbours: 1 or 2
  bool is_ring = false;  // the last chip is joined to the first; of three chips and more
  Time training_time = Time::from_us(5);
};
std::shared_ptr<const ChipCluster> joined_chips(const JoinedChips& shape);

}  // namespace towpath::machine
