// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "towpath/transport/live_transport.hpp"

// The live transport between processes of one Linux host: every rank maps every rank's memory, a
// put is a copy, a signal one atomic store. There is no daemon and no name in a file system, so
// nothing is left behind when a process is killed.
//
//   auto transport = shm::connect({.rendezvous = "job-17", .rank = rank, .ranks = 4});
//
// Wrong: connect, then fork. The child is not a rank; connect in each process.

namespace towpath::transport::shm {

// The heap of a rank where nothing else is asked for: 64 GiB, of which only touched pages take
// memory, or what RLIMIT_AS and RLIMIT_FSIZE leave for `ranks` heaps in one address space.
std::uint64_t default_heap_bytes(int ranks);

// Blocks until all ranks are there. Throws std::invalid_argument for options that are wrong in
// themselves, TransportError when the group does not come together (timeout: a rank is missing;
// disagreement: ranks gave different options, or two the same rank; peer_died), each in one
// sentence, the same on every rank that came; std::system_error when the system refuses.
std::unique_ptr<LiveTransport> connect(const LiveOptions& options);

}  // namespace towpath::transport::shm
