// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace towpath::sim {

// Of events of hardware, before processes: software that looks at a time sees what the hardware has
// done by then.
inline constexpr int kHardwarePriority = -1;

}  // namespace towpath::sim
