// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// The ranks of the communicators of a run, in memory that all its processes map: the file that
// $TOWPATH_MEMBERS names. A process that waits too long reads there which rank it waits for.

namespace towpath::virtual_gpu {

// A rank of this process enters the communicator. Without the file, these have no effect.
void join(std::uint64_t communicator, int rank, int ranks);
// The library has refused it.
void withdraw(std::uint64_t communicator, int rank);
// It calls the library, or leaves.
void count_call(std::uint64_t communicator, int rank);
void leave(std::uint64_t communicator, int rank);

// The ranks that the communicators of this process wait for: ranks that have not joined, that have
// left, whose process has ended, or that have entered fewer calls. A line for each, after a line
// break.
std::string absent_members();

}  // namespace towpath::virtual_gpu
