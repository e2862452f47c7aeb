// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "towpath/transport/live_transport.hpp"

// Live transports by name.
//
//   auto transport = live::connect("shm", {.rendezvous = "job-17", .rank = rank, .ranks = 4});

namespace towpath::live {

// All names, the default first.
std::vector<std::string_view> names();

// Blocks until all ranks have joined, or throws as described for shm::connect. An unknown name is a
// std::invalid_argument that lists all names.
std::unique_ptr<transport::LiveTransport> connect(std::string_view name,
                                                  const transport::LiveOptions& options);

}  // namespace towpath::live
