// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

#include "towpath/os/file_descriptor.hpp"
#include "towpath/transport/shm/shm_transport.hpp"

// How the ranks of a group find each other: rank 0 listens on an abstract Unix socket named after
// the group, the others bring their file descriptors, and each rank gets those of all others. The
// name vanishes with the socket.

namespace towpath::transport::shm {

struct Member {
  os::FileDescriptor memory;
  os::FileDescriptor process;  // a pidfd: readable once the process is dead, reaped or not
  pid_t pid = 0;
};

// This process as a member. Throws where the system cannot watch processes (before Linux 5.3).
Member this_member(os::FileDescriptor memory);

// All members by rank. Blocks; throws as connect does.
std::vector<Member> rendezvous(const LiveOptions& options, Member self);

}  // namespace towpath::transport::shm
