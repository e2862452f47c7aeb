// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/kernels/timestamp.hpp"

namespace towpath::kernels {

Time timestamp(device::tenstorrent::DataMovementCore& core) {
  const Time now = core.network().simulation().now();
  core.work(kTimestampCycles);
  return now;
}

}  // namespace towpath::kernels
