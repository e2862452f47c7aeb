// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "towpath/transport/live_transport.hpp"

// The live transport between processes of one Linux host: every rank maps every rank's memory, a
// put is a copy, a signal one atomic store. It needs neither a daemon nor a name in a file system,
// so a killed process leaves no resources behind.
//
//   auto transport = shm::connect({.rendezvous = "job-17", .rank = rank, .ranks = 4});
//
// Wrong: connect, then fork. The child is not a rank; connect in each process.

namespace towpath::transport::shm {

// Default heap size: 64 GiB, of which only touched pages take memory, or the remainder of RLIMIT_AS
// and RLIMIT_FSIZE for `ranks` heaps in one address space.
std::uint64_t default_heap_bytes(int ranks);

// Blocks until all ranks have joined. Throws std::invalid_argument for invalid options,
// TransportError if the group does not form (timeout: a rank is missing; disagreement: different
// options, or two equal ranks; peer_died), each with one sentence, equal on every connected rank;
// std::system_error on a system error.
std::unique_ptr<LiveTransport> connect(const LiveOptions& options);

}  // namespace towpath::transport::shm
