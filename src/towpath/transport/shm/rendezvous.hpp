// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

#include "towpath/os/file_descriptor.hpp"
#include "towpath/transport/shm/shm_transport.hpp"

// Rendezvous of a group's ranks: rank 0 listens on an abstract Unix socket named after the group,
// the others send their file descriptors, and each rank receives all others'. The name vanishes
// with the socket.

namespace towpath::transport::shm {

struct Member {
  os::FileDescriptor memory;
  os::FileDescriptor process;  // a pidfd: readable once the process is dead, reaped or not
  pid_t pid = 0;
};

// This process as a member. Throws if the system cannot watch processes (before Linux 5.3).
Member this_member(os::FileDescriptor memory);

// All members by rank. Blocks. Throws the same errors as connect.
std::vector<Member> rendezvous(const LiveOptions& options, Member self);

}  // namespace towpath::transport::shm
