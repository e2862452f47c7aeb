// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <span>

// What the system knows of processes.

namespace towpath::os {

// Number of different cores that any of these processes may run on; at least 1. A process that has
// ended counts for nothing.
int count_cores(std::span<const pid_t> processes);

// Whether the process is stopped, as by SIGSTOP or a debugger. False where /proc is absent.
bool is_stopped(pid_t process);

}  // namespace towpath::os
