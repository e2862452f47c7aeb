// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "towpath/os/admission.hpp"
#include "towpath/os/file_descriptor.hpp"
#include "towpath/os/keyed_digest.hpp"
#include "towpath/transport/live_transport.hpp"

// Rendezvous of ranks on different hosts: rank 0 listens at the rendezvous. The others connect and
// prove the job's token, and each receives the introductions of all others.
//
//   rank 0                           any other
//     nonce                 ->
//                           <-       nonce, digest of both with the token
//     digest of both        ->
//                           <-       parameters and address
//     all members, or a refusal ->
//                           <-       prepared
//     all are prepared      ->

namespace towpath::transport::ucx {

struct Member {
  std::int32_t pid = 0;
  std::string host;
  std::vector<std::byte> address;  // of its UCX worker
  std::string place;               // equal for members that can share memory
  // Of its host. Empty if it has none, or too many.
  std::vector<os::Ipv4Address> hosts = {};
};

struct Job {
  std::vector<Member> members;  // by rank
  os::KeyedDigest key{};        // equal on all ranks, and secret
};

// A rank's preparation, before another rank may connect to it.
using Prepare = std::function<void(const Job& job)>;

// Blocks until all ranks have joined and are prepared. Throws the same errors as connect.
// `listener`: rank 0's listening socket, if any; otherwise not open.
Job bootstrap(const LiveOptions& options, Member self, os::FileDescriptor listener,
              const Prepare& prepare);

}  // namespace towpath::transport::ucx
