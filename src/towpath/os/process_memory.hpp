// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace towpath::os {

// Copies from the private memory of another process of this user, in one copy of the kernel. False
// where the system refuses, the process has ended, or the memory is not there.
bool read_process_memory(pid_t process, const std::byte* there, std::byte* here,
                         std::uint64_t size_bytes);

}  // namespace towpath::os
