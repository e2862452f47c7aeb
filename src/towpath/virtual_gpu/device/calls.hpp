// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda_runtime.h"

// Calls of a library on their way to the kernels that do them.

namespace towpath::virtual_gpu {

// A call is given to the library, its kernel is put in a stream, begins and ends.
enum class CallState { given, queued, running, ended };

// All ranks take part in a collective, and two ranks in a message.
enum class CallKind { collective, send, receive };

// A call of one rank.
struct Call {
  std::string id;    // the same on all ranks of the call
  std::string name;  // "all_reduce". Empty if it takes no time.
  CallKind kind = CallKind::collective;
  std::uint64_t size_bytes = 0;
  int ranks = 0, nodes = 0;  // of the communicator. A message inside a node: of that node.
  std::shared_ptr<std::atomic<CallState>> state;
};

// The library's kernel that is launched next on this stream does the call.
void add_call(int device, cudaStream_t stream, Call call);
// The calls of a launch.
std::vector<Call> take_calls(int device, cudaStream_t stream);

void set_state(const std::vector<Call>& calls, CallState state);

}  // namespace towpath::virtual_gpu
