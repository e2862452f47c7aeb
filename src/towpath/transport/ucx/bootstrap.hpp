// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "towpath/os/file_descriptor.hpp"
#include "towpath/os/keyed_digest.hpp"
#include "towpath/transport/live_transport.hpp"

// How ranks of different hosts find each other: rank 0 listens at the rendezvous, the others come,
// prove that they know the job's token, and each gets what all others have said of themselves.
//
//   rank 0                           any other
//     number of its own     ->
//                           <-       number of its own, digest of both with the token
//     digest of both        ->
//                           <-       what it wants and how it is reached
//     all members, or why not ->

namespace towpath::transport::ucx {

struct Member {
  std::int32_t pid = 0;
  std::string host;
  std::vector<std::byte> address;  // of its UCX worker
  std::string place;               // the same as of those with whom it can share memory
};

struct Job {
  std::vector<Member> members;  // by rank
  os::KeyedDigest key{};        // the same on all ranks, and unknown to others
};

// Blocks until all ranks are there. Throws as connect does.
// `listener`: of rank 0, where it listens already; else not open.
Job bootstrap(const LiveOptions& options, Member self, os::FileDescriptor listener);

}  // namespace towpath::transport::ucx
