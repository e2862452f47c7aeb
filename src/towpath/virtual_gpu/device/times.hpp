// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/virtual_gpu/device/calls.hpp"

// Simulated times of the calls of a library. A server outside of the process computes them. All
// ranks of a collective start in it, and it ends for all of them at the same time. A message begins
// for its receiver when both ranks have begun. The sender has buffers, and does not wait for the
// receiver.

namespace towpath::virtual_gpu {

// A rank starts the calls of a kernel at this time. Without a server, and for calls without a time,
// this has no effect.
void begin_calls(const std::vector<Call>& calls, std::int64_t begin_ns);
// The time at which the last of them ends: each collective begins when the previous one has ended,
// and all messages together when the collectives have. It is `begin_ns` without a server, and for
// calls without a time.
std::int64_t end_calls(const std::vector<Call>& calls, std::int64_t begin_ns);

}  // namespace towpath::virtual_gpu
