// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "towpath/transport/transport.hpp"

// The live transport between processes of one Linux host: every rank maps every rank's memory, a
// put is a copy, a signal one atomic store. There is no daemon and no name in a file system, so
// that nothing is left behind, whoever is killed.
//
//   auto transport = shm::connect({.rendezvous = "job-17", .rank = rank, .ranks = 4});
//
// Destroying the transport says that this rank has left in good order; a process that ends without
// it counts as dead.
//
// Wrong: connect, then fork. The child is not a rank; connect in each process.

namespace towpath::transport::shm {

struct Options {
  // Up to 64 bytes; every rank of a group gives the same, and no other group at the same time.
  std::string rendezvous;
  int rank = 0;
  int ranks = 1;
  std::uint64_t heap_bytes = std::uint64_t{64} << 30;  // pages take space once they are touched
  std::uint32_t signals = 1 << 16;
  Time timeout = Time::from_seconds(60);  // until all ranks are there
};

// Blocks until all ranks are there. Throws std::invalid_argument for options that are wrong in
// themselves, TransportError when the group does not come together (timeout: a rank is missing;
// disagreement: ranks gave different options, or two the same rank; peer_died), each in one
// sentence, the same on every rank that came; std::system_error when the system refuses.
std::unique_ptr<Transport> connect(const Options& options);

}  // namespace towpath::transport::shm
