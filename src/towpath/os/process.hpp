// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

// What the system knows of processes.

namespace towpath::os {

// Number of different cores that any of these processes may run on; at least 1. A process that has
// ended counts for nothing.
int count_cores(std::span<const pid_t> processes);

// Bytes of the largest cache that the core shares which this thread runs on; nothing where the
// system does not tell.
std::optional<std::uint64_t> last_level_cache_bytes();

// Whether the process is stopped, as by SIGSTOP or a debugger. False where /proc is absent.
bool is_stopped(pid_t process);

}  // namespace towpath::os
