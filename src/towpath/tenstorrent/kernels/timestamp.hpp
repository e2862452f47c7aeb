// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/tenstorrent/device/data_movement_core.hpp"

namespace towpath::tenstorrent::kernels {

// What one timestamp of tt-metal's profiler costs a core, after the clock was read: it is put into
// a buffer in L1. Fitted to the parts of ubench5 (tt-metal, Basic Ethernet Multichip): sending and
// receiving in full takes 290 ns more than waiting alone, which are four timestamps and a send.
inline constexpr noc::Cycle kTimestampCycles = 67;

Time timestamp(DataMovementCore& core);

}  // namespace towpath::tenstorrent::kernels
