// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// NCCL's calls on their way to its queue, with the names and sizes that a simulation has. The
// linker puts this between ncclAllReduce and the others, and ncclEnqueueCheck.

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "towpath/virtual_gpu/device/clock.hpp"
#include "towpath/virtual_gpu/device/times.hpp"

// The headers of the release.
#include "collectives.h"
#include "comm.h"
#include "enqueue.h"

using namespace towpath::virtual_gpu;

ncclResult_t enqueue(ncclInfo* info) asm("__real__Z16ncclEnqueueCheckP8ncclInfo");
ncclResult_t enqueue_timed(ncclInfo* info) asm("__wrap__Z16ncclEnqueueCheckP8ncclInfo");

namespace {

// The number of the next call of a rank. Ranks of a communicator count alike.
std::uint64_t next_number(const ncclComm* communicator) {
  static std::mutex mutex;
  static std::map<std::pair<std::uint64_t, int>, std::uint64_t> next;
  const std::scoped_lock lock(mutex);
  return next[{communicator->commHash, communicator->rank}]++;
}

// Bytes of a call as a schedule counts them: of the whole array. Empty for a call without a time.
std::string text_of(const ncclInfo& info) {
  const auto bytes = info.count * static_cast<std::size_t>(ncclTypeSize(info.datatype));
  const auto ranks = static_cast<std::size_t>(info.comm->nRanks);
  const std::string where = " " + std::to_string(ranks) + " " + std::to_string(info.comm->nNodes);
  switch (info.coll) {
    case ncclFuncAllReduce: return "all_reduce " + std::to_string(bytes) + where;
    case ncclFuncBroadcast: return "broadcast " + std::to_string(bytes) + where;
    case ncclFuncReduce: return "reduce " + std::to_string(bytes) + where;
    case ncclFuncAllGather: return "all_gather " + std::to_string(bytes * ranks) + where;
    case ncclFuncReduceScatter: return "reduce_scatter " + std::to_string(bytes * ranks) + where;
    default: return "";
  }
}

}  // namespace

ncclResult_t enqueue_timed(ncclInfo* info) {
  const ncclComm* const communicator = info->comm;
  if (!is_time_simulated() || communicator == nullptr || communicator->nRanks < 2 ||
      info->count == 0) {
    return enqueue(info);
  }
  const std::string text = text_of(*info);
  if (text.empty()) return enqueue(info);
  const std::string id =
      std::to_string(communicator->commHash) + ":" + std::to_string(next_number(communicator));
  const int device = communicator->cudaDev;
  const cudaStream_t stream = info->stream;
  add_call(device, stream, {id, text});
  const ncclResult_t result = enqueue(info);
  if (result != ncclSuccess && result != ncclInProgress) drop_call(device, stream);
  return result;
}
