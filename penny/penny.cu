// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The library as other languages call it: one communicator for each process, functions without
// exceptions. nvcc makes a shared library of this file for GPUs, towpath one for processors.
#include <penny/communicator.cuh>

#include <cstdio>
#include <cstring>
#include <memory>

namespace {

std::unique_ptr<penny::Communicator> communicator;

// What fails becomes a sentence of at most 255 bytes in `error`, which is empty otherwise.
template <typename Function>
void guarded(char* error, Function function) {
  error[0] = 0;
  try {
    function();
  } catch (const penny::Error& failure) {
    snprintf(error, 256, "%s", failure.what());
  }
}

penny::Communicator& begun() {
  if (communicator == nullptr) throw penny::Error("penny has not begun, or has ended");
  return *communicator;
}

}  // namespace

extern "C" {

// Fills the 128 bytes with which rank 0 lets the others join.
void penny_unique_id(void* id) {
  nvshmemx_uniqueid_t unique = NVSHMEMX_UNIQUEID_INITIALIZER;
  nvshmemx_get_uniqueid(&unique);
  static_assert(sizeof(unique) == 128);
  memcpy(id, &unique, sizeof(unique));
}

// Every process calls it with the id of rank 0 and the size of the largest array.
void penny_begin(const void* id, int rank, int ranks, uint64_t capacity_bytes, int is_host,
                 char* error) {
  guarded(error, [&] {
    nvshmemx_uniqueid_t unique = NVSHMEMX_UNIQUEID_INITIALIZER;
    memcpy(&unique, id, sizeof(unique));
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_set_attr_uniqueid_args(rank, ranks, &unique, &attributes);
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0) {
      throw penny::Error("NVSHMEM cannot begin; NVSHMEM_DEBUG=INFO says why");
    }
    communicator = std::make_unique<penny::Communicator>(capacity_bytes, is_host != 0);
  });
}

void penny_end(char* error) {
  guarded(error, [&] {
    begun();
    communicator.reset();
    nvshmem_finalize();
  });
}

void penny_allocate(uint64_t size_bytes, void** address, char* error) {
  guarded(error, [&] { *address = begun().allocate(size_bytes); });
}

void penny_release(void* address, char* error) {
  guarded(error, [&] { begun().release(address); });
}

// `type` is 0 for float, 1 for half, 2 for bfloat16; `algorithm` as in penny::Algorithm. Threads,
// blocks and rings count where an algorithm is named.
void penny_all_reduce(void* data, uint64_t count, int type, int algorithm, int threads, int blocks,
                      int rings, void* stream, char* error) {
  guarded(error, [&] {
    const penny::Shape shape{static_cast<penny::Algorithm>(algorithm), threads, blocks, rings};
    const auto on = static_cast<cudaStream_t>(stream);
    switch (type) {
      case 0: return begun().all_reduce(static_cast<float*>(data), count, on, shape);
      case 1: return begun().all_reduce(static_cast<half*>(data), count, on, shape);
      case 2: return begun().all_reduce(static_cast<__nv_bfloat16*>(data), count, on, shape);
      default: throw penny::Error("types are float, half and bfloat16");
    }
  });
}

}  // extern "C"
