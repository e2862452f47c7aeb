// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace towpath::sim {

// Priority of hardware events: they run before processes at the same time, so software that polls
// at t sees all effects of the hardware up to t.
inline constexpr int kHardwarePriority = -1;

// Priority of what comes from another partition (crossing.hpp), before all else at its time.
inline constexpr int kCrossingPriority = -2;

}  // namespace towpath::sim
