// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// NCCL's calls on their way to its queue: noted, so that ranks which do not fit are named, and with
// the names and sizes that a simulation has. The linker puts this between ncclAllReduce and the
// others and ncclEnqueueCheck, and between that function and its check of the arguments.

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "towpath/virtual_gpu/device/calls.hpp"
#include "towpath/virtual_gpu/device/library.hpp"
#include "towpath/virtual_gpu/nccl/timed/call_record.hpp"
#include "towpath/virtual_gpu/nccl/timed/host_watch.hpp"
#include "towpath/virtual_gpu/nccl/timed/members.hpp"

// The headers of the release.
#include "collectives.h"
#include "comm.h"
#include "enqueue.h"

using namespace towpath::virtual_gpu;

extern "C" bool towpath_nccl_waiting(const void* address, char* text, unsigned long size);

ncclResult_t enqueue(ncclInfo* info) asm("__real__Z16ncclEnqueueCheckP8ncclInfo");
ncclResult_t enqueue_watched(ncclInfo* info) asm("__wrap__Z16ncclEnqueueCheckP8ncclInfo");
ncclResult_t check(ncclInfo* info) asm("__real__Z9ArgsCheckP8ncclInfo");
ncclResult_t check_and_note(ncclInfo* info) asm("__wrap__Z9ArgsCheckP8ncclInfo");

namespace {

// The call as a schedule has it, with the bytes of the whole array. A call without a name takes no
// time.
Call timed(const ncclInfo& info) {
  const auto bytes = info.count * static_cast<std::size_t>(ncclTypeSize(info.datatype));
  const auto ranks = static_cast<std::size_t>(info.comm->nRanks);
  Call call{.size_bytes = bytes, .ranks = info.comm->nRanks, .nodes = info.comm->nNodes};
  switch (info.coll) {
    case ncclFuncAllReduce: call.name = "all_reduce"; break;
    case ncclFuncBroadcast: call.name = "broadcast"; break;
    case ncclFuncReduce: call.name = "reduce"; break;
    case ncclFuncAllGather:
      call.name = "all_gather";
      call.size_bytes *= ranks;
      break;
    case ncclFuncReduceScatter:
      call.name = "reduce_scatter";
      call.size_bytes *= ranks;
      break;
    case ncclFuncSend: call.kind = CallKind::send; break;
    case ncclFuncRecv: call.kind = CallKind::receive; break;
    default: break;
  }
  if (call.kind == CallKind::collective || info.root == info.comm->rank) return call;
  call.name = "send_recv";
  if (info.comm->rankToNode[info.root] != info.comm->node) return call;
  call.ranks = info.comm->localRanks;
  call.nodes = 1;
  return call;
}

constexpr const char* kTypes[] = {"int8",    "uint8",    "int32",      "uint32",
                                  "int64",   "uint64",   "float16",    "float32",
                                  "float64", "bfloat16", "float8e4m3", "float8e5m2"};
constexpr const char* kOperations[] = {"sum", "prod", "max", "min", "avg"};

const bool kIsInstalled = [] {
  library() = {[](const char* kernel) { return std::string_view(kernel).starts_with("nccl"); },
               towpath_nccl_waiting,
               [] { return explain_calls(CallState::running) + absent_members(); }};
  return true;
}();

// Calls that all ranks make alike. Signals of newer releases, for example, are not. Names, because
// older releases have fewer constants.
bool is_collective(const ncclInfo& info) {
  constexpr std::string_view kCollectives[] = {"AllReduce",     "Broadcast", "Reduce", "AllGather",
                                               "ReduceScatter", "AlltoAll",  "Gather", "Scatter"};
  return std::find(std::begin(kCollectives), std::end(kCollectives), info.opName) !=
         std::end(kCollectives);
}

bool is_message(const ncclInfo& info) {
  return info.coll == ncclFuncSend || info.coll == ncclFuncRecv;
}

RankCall described(const ncclInfo& info) {
  const auto type = static_cast<std::size_t>(info.datatype);
  const std::string name = info.opName;
  std::string text = name + " of " + std::to_string(info.count) + " " +
                     (type < std::size(kTypes) ? kTypes[type] : "elements");
  switch (info.coll) {
    case ncclFuncSend: text += " to rank " + std::to_string(info.root); break;
    case ncclFuncRecv: text += " from rank " + std::to_string(info.root); break;
    case ncclFuncBroadcast: text += " from rank " + std::to_string(info.root); break;
    case ncclFuncReduce: text += " to rank " + std::to_string(info.root); [[fallthrough]];
    case ncclFuncAllReduce:
    case ncclFuncReduceScatter: {
      const auto operation = static_cast<std::size_t>(info.op);
      text += operation < std::size(kOperations) ? std::string(" (") + kOperations[operation] + ")"
                                                 : " (an operation of the program)";
    }
    default: break;
  }
  // Older releases have no constants for these.
  if (name == "Gather") text += " to rank " + std::to_string(info.root);
  if (name == "Scatter") text += " from rank " + std::to_string(info.root);
  return {info.comm->commHash,
          info.comm->rank,
          info.comm->nRanks,
          text,
          is_message(info) ? info.root : -1,
          info.coll == ncclFuncSend,
          info.comm->cudaDev,
          info.stream};
}

void note(const ncclInfo& info) {
  const RankCall made = described(info);
  const auto [number, state] = note_call(made);
  count_call(made.communicator, made.rank);
  if (info.count == 0) {  // without a kernel
    *state = CallState::ended;
    return;
  }
  Call call = timed(info);
  call.id = std::to_string(made.communicator) + ":" + std::to_string(number);
  if (call.kind != CallKind::collective) {
    const bool is_send = call.kind == CallKind::send;
    call.id += ":" + std::to_string(is_send ? made.rank : made.peer) + ">" +
               std::to_string(is_send ? made.peer : made.rank);
  }
  call.state = state;
  add_call(made.device, made.stream, std::move(call));
}

// A rank enters a communicator by a call, unless NCCL refuses it.
template <typename Call>
ncclResult_t enter(const ncclUniqueId& id, int rank, int ranks, Call call) {
  const InCall in_call;
  if (rank < 0 || rank >= ranks) return call();
  const std::uint64_t communicator = getHash(id.internal, sizeof id.internal);
  join(communicator, rank, ranks);
  const ncclResult_t result = call();
  if (result != ncclSuccess && result != ncclInProgress) withdraw(communicator, rank);
  return result;
}

void end_rank(const ncclComm& communicator) {
  forget_rank(communicator.commHash, communicator.rank);
  leave(communicator.commHash, communicator.rank);
}

}  // namespace

ncclResult_t enqueue_watched(ncclInfo* info) {
  const InCall in_call;
  return enqueue(info);
}

// A call that NCCL refuses is not one.
ncclResult_t check_and_note(ncclInfo* info) {
  const ncclInfo given = *info;  // older releases convert it to bytes
  const ncclResult_t result = check(info);
  if (result == ncclSuccess && given.comm->nRanks > 1 &&
      (is_collective(given) || is_message(given))) {
    note(given);
  }
  return result;
}

// The interface for profilers: NCCL's own functions have these names with a p before them.
extern "C" {
ncclResult_t pncclCommDestroy(ncclComm_t communicator);
ncclResult_t pncclCommAbort(ncclComm_t communicator);
ncclResult_t pncclGroupEnd();
ncclResult_t pncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank);
ncclResult_t pncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                     ncclConfig_t* config);
ncclResult_t pncclCommSplit(ncclComm_t communicator, int color, int key, ncclComm_t* made,
                            ncclConfig_t* config);

ncclResult_t ncclGroupEnd() {
  const InCall in_call;
  return pncclGroupEnd();
}
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
  return enter(id, rank, ranks, [&] { return pncclCommInitRank(communicator, ranks, id, rank); });
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return enter(id, rank, ranks,
               [&] { return pncclCommInitRankConfig(communicator, ranks, id, rank, config); });
}
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
ncclResult_t pncclCommInitRankScalable(ncclComm_t* communicator, int ranks, int rank, int ids,
                                       ncclUniqueId* id, ncclConfig_t* config);
ncclResult_t ncclCommInitRankScalable(ncclComm_t* communicator, int ranks, int rank, int ids,
                                      ncclUniqueId* id, ncclConfig_t* config) {
  const auto call = [&] {
    return pncclCommInitRankScalable(communicator, ranks, rank, ids, id, config);
  };
  // The first id gives the communicator its number.
  return ids > 0 && id != nullptr ? enter(*id, rank, ranks, call) : call();
}
#endif
ncclResult_t ncclCommSplit(ncclComm_t communicator, int color, int key, ncclComm_t* made,
                           ncclConfig_t* config) {
  const InCall in_call;
  return pncclCommSplit(communicator, color, key, made, config);
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (communicator != nullptr) end_rank(*communicator);
  return pncclCommDestroy(communicator);
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  if (communicator != nullptr) end_rank(*communicator);
  return pncclCommAbort(communicator);
}
}
