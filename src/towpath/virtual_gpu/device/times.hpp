// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda_runtime.h"

// Simulated times of the calls of a library. A server outside of the process computes them: all
// ranks of a call start in it, and it ends for all of them at the same time.

namespace towpath::virtual_gpu {

// A call of one rank.
struct Call {
  std::string id;    // the same on all ranks of the call
  std::string text;  // "all_reduce 1048576 8 1": name, bytes, ranks, nodes
};

// The kernel that is launched next on this stream does the call.
void add_call(int device, cudaStream_t stream, Call call);
// The call was refused.
void drop_call(int device, cudaStream_t stream);
// The calls of a launch.
std::vector<Call> take_calls(int device, cudaStream_t stream);

// A rank starts calls at this time.
void begin_calls(const std::vector<Call>& calls, std::int64_t begin_ns);
// The time at which they end, one after the other.
std::int64_t end_calls(const std::vector<Call>& calls, std::int64_t begin_ns);

}  // namespace towpath::virtual_gpu
