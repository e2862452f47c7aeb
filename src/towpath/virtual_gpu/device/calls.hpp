// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cuda_runtime.h"

// Calls of a library on their way to the kernels that do them.

namespace towpath::virtual_gpu {

// A call is given to the library, its kernel is put in a stream, begins and ends.
enum class CallState { given, queued, running, ended };

// A call of one rank.
struct Call {
  std::string id;  // the same on all ranks of the call
  std::string
      text;  // "all_reduce 1048576 8 1": name, bytes, ranks, nodes. Empty if it takes no time.
  std::shared_ptr<std::atomic<CallState>> state;
};

// The library's kernel that is launched next on this stream does the call.
void add_call(int device, cudaStream_t stream, Call call);
// The calls of a launch.
std::vector<Call> take_calls(int device, cudaStream_t stream);

void set_state(const std::vector<Call>& calls, CallState state);

}  // namespace towpath::virtual_gpu
