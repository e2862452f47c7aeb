// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// Processes of this system: their state, their memory, and their forks.

namespace towpath::os {

// Number of distinct cores on which any of these processes may run; at least 1. Ignores processes
// that have ended.
int count_cores(std::span<const pid_t> processes);

// Size of the largest cache that is shared by this thread's core. Empty if the system does not
// report it.
std::optional<std::uint64_t> last_level_cache_bytes();

// True if the process is stopped, e.g. by SIGSTOP or a debugger. False if /proc is absent.
bool is_stopped(pid_t process);

// Copies from the private memory of another process of this user under the same kernel. Returns
// false if the system denies access, the process has ended, or the memory is not mapped.
bool read_process_memory(pid_t process, const std::byte* there, std::byte* here,
                         std::uint64_t size_bytes);

// True if this process has memory at all these addresses. Access to it may still be denied.
bool is_mapped(const void* address, std::uint64_t size_bytes);

// Distinguishes a forked child from its parent: a page that the kernel wipes in the child. A check
// costs one load; getpid() is a system call.
class ForkMark {
 public:
  // Throws std::system_error if the kernel lacks MADV_WIPEONFORK (Linux before 4.14).
  ForkMark();
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  bool is_forked() const { return *static_cast<const volatile char*>(page_) == 0; }

 private:
  void* page_;
};

}  // namespace towpath::os
