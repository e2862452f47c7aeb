// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "towpath/transport/live_transport.hpp"

// The live transport between hosts, over UCX: TCP, or RDMA if available. A put is a message that
// its receiver stores in its progress, so a rank moves its peers' data while it waits or calls
// progress().
//
//   auto transport = ucx::connect({.rendezvous = "10.0.0.1:29500", .token = token, .rank = rank,
//                                  .ranks = 16});
//
// Only processes with the token can join, and only members' messages are accepted. Network traffic
// is not encrypted.

namespace towpath::transport::ucx {

// See shm::connect; also throws std::runtime_error if UCX is not installed or the token cannot be
// verified. A rendezvous without a port joins ranks of this host.
std::unique_ptr<LiveTransport> connect(const LiveOptions& options);

}  // namespace towpath::transport::ucx
