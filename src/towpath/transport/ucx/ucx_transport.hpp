// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "towpath/transport/live_transport.hpp"

// The live transport between hosts, over UCX: TCP everywhere, RDMA where there is some. A put is a
// message that its receiver stores when it looks, so that a rank moves its peers' data while it
// waits or calls progress().
//
//   auto transport = ucx::connect({.rendezvous = "10.0.0.1:29500", .token = token, .rank = rank,
//                                  .ranks = 16});
//
// Only who knows the token can join, and only messages of those who joined are heard. What goes
// over the network is not encrypted.

namespace towpath::transport::ucx {

// As shm::connect, and std::runtime_error where UCX is not installed or the token cannot be
// checked. A rendezvous without a port joins ranks of this host.
std::unique_ptr<LiveTransport> connect(const LiveOptions& options);

}  // namespace towpath::transport::ucx
