// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/tenstorrent/device/data_movement_core.hpp"

namespace towpath::tenstorrent::kernels {

// Reads the clock as tt-metal's profiler does, which then puts the time into a buffer in L1.
Time timestamp(tenstorrent::DataMovementCore& core);

}  // namespace towpath::tenstorrent::kernels
