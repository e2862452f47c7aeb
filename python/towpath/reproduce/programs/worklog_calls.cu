// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Calls of NVSHMEM that document 003 names, one case per run. Returns the number of wrong elements.
//
//   worklog_calls CASE BYTES
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

__global__ void move(const int how, int* to, int* from, size_t bytes, int peer) {
  if (how == 0 && threadIdx.x == 0) nvshmem_int_put(to, from, bytes / sizeof(int), peer);
  if (how == 1 && threadIdx.x == 0) nvshmem_putmem(to, from, bytes, peer);
  if (how == 2 && threadIdx.x < 32) nvshmemx_putmem_warp(to, from, bytes, peer);
  if (how == 3) nvshmemx_putmem_block(to, from, bytes, peer);
  if (how == 4) nvshmemx_getmem_block(to, from, bytes, peer);
}

// Gets the data, then tells its owner, which waits for that before it changes the data.
__global__ void get_and_tell(int* to, int* from, uint64_t* signal, size_t bytes, int peer) {
  nvshmemx_getmem_block(to, from, bytes, peer);
  __syncthreads();
  if (threadIdx.x == 0) {
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, peer);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
  }
  __syncthreads();
  for (size_t i = threadIdx.x; i < bytes / sizeof(int); i += blockDim.x) from[i] = -1;
}

__global__ void announce(const int how, int* to, int* from, uint64_t* signal, size_t bytes,
                         int peer) {
  if (how == 0) {
    nvshmemx_putmem_block(to, from, bytes, peer);
    nvshmem_fence();
    __syncthreads();
    if (threadIdx.x == 0) nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, peer);
  } else if (how == 1) {
    nvshmemx_putmem_signal_block(to, from, bytes, signal, 1, NVSHMEM_SIGNAL_SET, peer);
  } else {
    nvshmemx_putmem_signal_block(to, from, bytes, signal, 1, NVSHMEM_SIGNAL_ADD, peer);
  }
  if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
  __syncthreads();
}

// Data first, then a signal, with nothing between them.
__global__ void unordered(int* to, int* from, uint64_t* signal, size_t bytes, int peer) {
  if (threadIdx.x == 0) {
    nvshmem_putmem_nbi(to, from, bytes, peer);
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, peer);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    from[0] = to[0];
  }
}

static void initialize(bool by_unique_id) {
  if (!by_unique_id) {
    nvshmem_init();
    return;
  }
  nvshmemx_uniqueid_t id;
  nvshmemx_get_uniqueid(&id);
  nvshmemx_init_attr_t attributes;
  const char* const rank = std::getenv("TOWPATH_PE");
  nvshmemx_set_attr_uniqueid_args(rank == nullptr ? 0 : std::atoi(rank), 1, &id, &attributes);
  nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
}

int main(int, char** arguments) {
  const std::string name = arguments[1];
  const size_t bytes = std::strtoul(arguments[2], nullptr, 0);
  const size_t count = bytes / sizeof(int);
  initialize(name == "unique_id");
  const int me = nvshmem_my_pe(), peers = nvshmem_n_pes(), peer = (me + 1) % peers;
  const int before = (me + peers - 1) % peers;
  const size_t own = name == "other_size" && me == 0 ? 2 * bytes : bytes;
  int* to = static_cast<int*>(nvshmem_malloc(own));
  int* from = static_cast<int*>(nvshmem_malloc(bytes));
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  int* plain = nullptr;
  if (name == "unregistered" || name == "registered") {
    cudaMalloc(&plain, bytes);
    if (name == "registered") nvshmemx_buffer_register(plain, bytes);
  }
  if (name == "plain_target") cudaMalloc(&to, bytes);
  int* source = plain == nullptr ? from : plain;
  int* host = static_cast<int*>(std::malloc(bytes));
  for (size_t i = 0; i < count; ++i) host[i] = 1000 * me + static_cast<int>(i % 97);
  cudaMemcpy(source, host, bytes, cudaMemcpyHostToDevice);
  nvshmem_barrier_all();
  const char* const moves[] = {"int_put", "thread", "warp", "block", "get"};
  int how = 3;
  for (int i = 0; i < 5; ++i) how = name == moves[i] ? i : how;
  if (name == "get_signal") {
    get_and_tell<<<1, 256>>>(to, source, signal, bytes, peer);
  } else if (name == "fence" || name == "fused" || name == "add") {
    announce<<<1, 256>>>(name == "fence" ? 0 : name == "fused" ? 1 : 2, to, source, signal, bytes,
                         peer);
  } else if (name == "unordered") {
    unordered<<<1, 32>>>(to, source, signal, bytes, peer);
  } else {
    move<<<1, 256>>>(how, to, source, bytes, peer);
  }
  nvshmemx_barrier_all_on_stream(nullptr);
  cudaDeviceSynchronize();
  cudaMemcpy(host, to, bytes, cudaMemcpyDeviceToHost);
  const int partner = how >= 4 || name == "get_signal" ? peer : before;
  int wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += host[i] != 1000 * partner + static_cast<int>(i % 97);
  nvshmem_barrier_all();
  if (name == "registered") nvshmemx_buffer_unregister(plain);
  nvshmem_free(signal);
  nvshmem_free(from);
  if (name != "plain_target") nvshmem_free(to);
  nvshmem_finalize();
  return wrong == 0 ? 0 : 1;
}
