// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace towpath::sim {

// Hardware events run before processes at the same time, so software that polls at t observes all
// hardware effects up to t.
inline constexpr int kHardwarePriority = -1;

// Events from other partitions (crossing.hpp) run before all others at the same time.
inline constexpr int kCrossingPriority = -2;

}  // namespace towpath::sim
