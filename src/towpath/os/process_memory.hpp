// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace towpath::os {

// Copies from the private memory of another process of this user under the same kernel. Returns
// false if the system denies access, the process has ended, or the memory is not mapped.
bool read_process_memory(pid_t process, const std::byte* there, std::byte* here,
                         std::uint64_t size_bytes);

}  // namespace towpath::os
