// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/timestamp.hpp"

namespace towpath::tenstorrent::kernels {

// After the clock was read. Fitted to the parts of ubench5 (tt-metal, Basic Ethernet Multichip):
// sending and receiving in full takes 290 ns more than waiting alone, the time of four timestamps
// and a send.
static constexpr noc::Cycle kTimestampCycles = 67;

Time timestamp(DataMovementCore& core) {
  const Time now = core.network().simulation().now();
  core.work(kTimestampCycles);
  return now;
}

}  // namespace towpath::tenstorrent::kernels
