// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/process_memory.hpp"

#include <sys/uio.h>

namespace towpath::os {

bool read_process_memory(pid_t process, const std::byte* there, std::byte* here,
                         std::uint64_t size_bytes) {
  std::uint64_t done = 0;
  while (done < size_bytes) {
    const iovec to{here + done, size_bytes - done};
    const iovec from{const_cast<std::byte*>(there) + done, size_bytes - done};
    const ssize_t read = ::process_vm_readv(process, &to, 1, &from, 1, 0);
    if (read <= 0) return false;
    done += static_cast<std::uint64_t>(read);
  }
  return true;
}

}  // namespace towpath::os
