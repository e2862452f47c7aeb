// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "towpath/virtual_gpu/device/calls.hpp"

// The calls of NCCL that the ranks of this process have made. A rank that calls something else is
// named at once. A rank that does not call is named when the kernels of its peers do not end.

namespace towpath::virtual_gpu {

struct RankCall {
  std::uint64_t communicator;
  int rank, ranks;
  std::string text;  // "AllReduce of 1024 float32 (sum)": for a collective the same on all ranks
  int peer;          // of Send and Recv, -1 for a collective
  bool is_send;
  int device;
  cudaStream_t stream;
};

struct NotedCall {
  std::uint64_t number;  // among the collectives of the rank, or its calls to or from this peer
  std::shared_ptr<std::atomic<CallState>> state;
};
// Stops the run if another rank has called another collective in this place.
NotedCall note_call(const RankCall& call);
// A rank has left its communicator.
void forget_rank(std::uint64_t communicator, int rank);
// For Library::explain_calls: ranks whose calls are in this state and wait for others.
std::string explain_calls(CallState state);

}  // namespace towpath::virtual_gpu
