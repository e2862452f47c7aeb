// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/timestamp.hpp"

namespace towpath::tenstorrent::kernels {

Time timestamp(DataMovementCore& core) {
  const Time now = core.network().simulation().now();
  core.work(core.network().chip().ethernet_software.timestamp_cycles);
  return now;
}

}  // namespace towpath::tenstorrent::kernels
