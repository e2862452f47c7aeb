// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

// Process information from the system.

namespace towpath::os {

// Number of distinct cores on which any of these processes may run; at least 1. Ignores processes
// that have ended.
int count_cores(std::span<const pid_t> processes);

// Size of the largest cache that is shared by this thread's core. Empty if the system does not
// report it.
std::optional<std::uint64_t> last_level_cache_bytes();

// Whether the process is stopped, e.g. by SIGSTOP or a debugger. False if /proc is absent.
bool is_stopped(pid_t process);

}  // namespace towpath::os
