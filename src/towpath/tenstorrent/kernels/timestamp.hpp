// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/tenstorrent/device/data_movement_core.hpp"

namespace towpath::tenstorrent::kernels {

// Reads the clock like tt-metal's profiler, which stores the time in an L1 buffer.
Time timestamp(tenstorrent::DataMovementCore& core);

}  // namespace towpath::tenstorrent::kernels
