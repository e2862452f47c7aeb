// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/calls.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace towpath::virtual_gpu {
namespace {

struct Pending {
  std::mutex mutex;
  std::map<std::pair<int, cudaStream_t>, std::vector<Call>> calls;
};

Pending& pending() {
  static Pending* const only = new Pending;
  return *only;
}

}  // namespace

void add_call(int device, cudaStream_t stream, Call call) {
  const std::scoped_lock lock(pending().mutex);
  pending().calls[{device, stream}].push_back(std::move(call));
}

std::vector<Call> take_calls(int device, cudaStream_t stream) {
  const std::scoped_lock lock(pending().mutex);
  const auto found = pending().calls.find({device, stream});
  if (found == pending().calls.end()) return {};
  std::vector<Call> calls = std::move(found->second);
  pending().calls.erase(found);
  return calls;
}

void set_state(const std::vector<Call>& calls, CallState state) {
  for (const Call& call : calls) *call.state = state;
}

}  // namespace towpath::virtual_gpu
