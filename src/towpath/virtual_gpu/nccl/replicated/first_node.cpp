// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL that talk to other ranks, for a program that has only the ranks of the
// first of many equal nodes. The linker takes them instead of NCCL's functions. Ranks meet in
// memory, no transport is connected and no proxy starts: a decision needs none of these.

#include <barrier>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda.h"
#include "gather.hpp"
#include "towpath/virtual_gpu/device/stop.hpp"

// The headers of the release.
#include "bootstrap.h"
#include "comm.h"
#include "graph/topo.h"
#include "proxy.h"
#include "transport.h"

using namespace towpath::virtual_gpu;

namespace {

// The meeting point of the node's ranks: each shows an address and reads the addresses of all.
class Board {
 public:
  explicit Board(int ranks) : shown_(static_cast<std::size_t>(ranks)), barrier_(ranks) {}

  void show(int rank, void* data) {
    shown_[static_cast<std::size_t>(rank)] = data;
    barrier_.arrive_and_wait();
  }
  const char* shown(int rank) const {
    return static_cast<const char*>(shown_[static_cast<std::size_t>(rank)]);
  }
  void wait() { barrier_.arrive_and_wait(); }
  int ranks() const { return static_cast<int>(shown_.size()); }

 private:
  std::vector<void*> shown_;
  std::barrier<> barrier_;
};

struct State {
  Board* board;
  ncclComm* communicator;
  int rank;
  int nodes;
};

State& state_of(void* state) { return *static_cast<State*>(state); }

// $TOWPATH_RANKS_PER_NODE is set by the program before ranks start.
Board& board_of_process() {
  static Board* const only = new Board(std::atoi(std::getenv("TOWPATH_RANKS_PER_NODE")));
  return *only;
}

ncclResult_t join(ncclComm* communicator) {
  Board& board = board_of_process();
  communicator->bootstrap =
      new State{&board, communicator, communicator->rank, communicator->nRanks / board.ranks()};
  communicator->magic = 1;
  // Other code reads addresses from it, and finds none.
  auto* const proxies = static_cast<ncclProxyState*>(std::calloc(1, sizeof(ncclProxyState)));
  communicator->proxyState = communicator->sharedRes->proxyState = proxies;
  return ncclSuccess;
}

ncclResult_t gather(void* state, void* data, int entry_bytes) {
  gather_in_node(state, data, static_cast<std::size_t>(entry_bytes));
  return ncclSuccess;
}

ncclResult_t meet(void* state) {
  state_of(state).board->wait();
  return ncclSuccess;
}

ncclResult_t broadcast(void* state, int root, void* data, int size_bytes) {
  State& own = state_of(state);
  own.board->show(own.rank, data);
  if (own.rank != root) {
    std::memcpy(data, own.board->shown(root), static_cast<std::size_t>(size_bytes));
  }
  own.board->wait();
  return ncclSuccess;
}

}  // namespace

namespace towpath::virtual_gpu {

void gather_in_node(void* state, void* data, std::size_t entry_bytes) {
  State& own = state_of(state);
  own.board->show(own.rank, data);
  for (int rank = 0; rank < own.board->ranks(); ++rank) {
    const std::size_t begin = static_cast<std::size_t>(rank) * entry_bytes;
    if (rank != own.rank) {
      std::memcpy(static_cast<char*>(data) + begin, own.board->shown(rank) + begin, entry_bytes);
    }
  }
  own.board->wait();
}

Shape shape_of(void* state) {
  const State& own = state_of(state);
#ifdef RCCL_TOPO_4P2H_ROME
  const auto* const topology = own.communicator->topo;
  const bool has_model = topology != nullptr && (topology->type & RCCL_TOPO_4P2H_ROME) != 0;
#else
  const bool has_model = false;
#endif
  return {own.nodes, own.board->ranks(), has_model};
}

}  // namespace towpath::virtual_gpu

// --- ranks meet ---------------------------------------------------------------------------------
ncclResult_t bootstrapNetInit() { return ncclSuccess; }
ncclResult_t bootstrapCreateRoot(ncclBootstrapHandle*, bool) { return ncclSuccess; }
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 0)
ncclResult_t bootstrapGetUniqueId(ncclBootstrapHandle* handle, ncclComm*) {
  std::memset(handle, 0, sizeof *handle);
  return ncclSuccess;
}
ncclResult_t bootstrapInit(int, void*, ncclComm* communicator, ncclComm*) {
  return join(communicator);
}
#else
ncclResult_t bootstrapGetUniqueId(ncclBootstrapHandle* handle) {
  std::memset(handle, 0, sizeof *handle);
  return ncclSuccess;
}
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
ncclResult_t bootstrapInit(int, void*, ncclComm* communicator) { return join(communicator); }
#else
ncclResult_t bootstrapInit(ncclBootstrapHandle*, ncclComm* communicator) {
  return join(communicator);
}
#endif
#endif
ncclResult_t bootstrapAllGather(void* state, void* data, int entry_bytes) {
  gather_in_node(state, data, static_cast<std::size_t>(entry_bytes));
  const Shape shape = shape_of(state);
  const auto node_bytes = static_cast<std::size_t>(entry_bytes * shape.ranks_per_node);
  for (int node = 1; node < shape.nodes; ++node) {
    std::memcpy(static_cast<char*>(data) + static_cast<std::size_t>(node) * node_bytes, data,
                node_bytes);
  }
  return ncclSuccess;
}
ncclResult_t bootstrapSend(void*, int, int, void*, int) { stop_at_unknown("bootstrapSend"); }
ncclResult_t bootstrapRecv(void*, int, int, void*, int) { stop_at_unknown("bootstrapRecv"); }
ncclResult_t bootstrapBarrier(void* state, int*, int, int, int) { return meet(state); }
ncclResult_t bootstrapBarrier(void* state, int, int, int) { return meet(state); }
ncclResult_t bootstrapIntraNodeBarrier(void* state, int*, int, int, int) { return meet(state); }
ncclResult_t bootstrapIntraNodeAllGather(void* state, int*, int, int, void* data, int entry_bytes) {
  return gather(state, data, entry_bytes);
}
ncclResult_t bootstrapBroadcast(void* state, int, int, int root, void* data, int size_bytes) {
  return broadcast(state, root, data, size_bytes);
}
ncclResult_t bootstrapIntraNodeBroadcast(void* state, int*, int, int, int root, void* data,
                                         int size_bytes) {
  return broadcast(state, root, data, size_bytes);
}
ncclResult_t bootstrapClose(void*) { return ncclSuccess; }
ncclResult_t bootstrapAbort(void*) { return ncclSuccess; }

// --- transports and proxies ---------------------------------------------------------------------
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
ncclResult_t ncclTransportP2pSetup(ncclComm*, ncclTopoGraph*, int) { return ncclSuccess; }
#else
ncclResult_t ncclTransportP2pSetup(ncclComm*, ncclTopoGraph*, int, int* highest) {
  if (highest != nullptr) *highest = TRANSPORT_NET;
  return ncclSuccess;
}
// RCCL's.
ncclResult_t ncclTransportP2pSetup(ncclComm*, ncclTopoGraph*, int, int* highest,
                                   bool* needs_proxy) {
  if (highest != nullptr) *highest = TRANSPORT_NET;
  if (needs_proxy != nullptr) *needs_proxy = true;
  return ncclSuccess;
}
#endif
ncclResult_t ncclProxyCreate(ncclComm*) { return ncclSuccess; }
ncclResult_t ncclProxyStart(ncclComm*) { return ncclSuccess; }
ncclResult_t ncclProxySaveOp(ncclComm*, ncclProxyOp*, bool* is_needed) {
  if (is_needed != nullptr) *is_needed = false;
  return ncclSuccess;
}
ncclResult_t ncclProxyConnect(ncclComm*, int, int, int, ncclProxyConnector*) { return ncclSuccess; }
ncclResult_t ncclProxyCallBlocking(ncclComm*, ncclProxyConnector*, int, void*, int, void*, int) {
  return ncclSuccess;
}
// A handle of another rank is one of this process.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 20, 0)
ncclResult_t ncclProxyClientGetFdBlocking(ncclComm*, int, void* handle, int* file) {
#else
ncclResult_t ncclProxyClientGetFdBlocking(ncclComm*, ncclProxyConnector*, void* handle, int* file) {
#endif
  const auto own = *static_cast<CUmemGenericAllocationHandle*>(handle);
  const auto type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return cuMemExportToShareableHandle(file, own, type, 0) == CUDA_SUCCESS ? ncclSuccess
                                                                          : ncclSystemError;
}
