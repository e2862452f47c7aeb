// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// A kernel that runs programs given as data: each block has a list of instructions. So thousands of
// different kernels need one compilation. The instructions are those of gpu/random_programs.py.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdint>

constexpr int kFields = 6;
constexpr int kSlotWords = 32;

enum Operation : int64_t {
  kEnd, kPut, kPutSignal, kSignal, kFence, kQuiet, kWait, kRead, kWrite, kSleep, kReset, kBarrier,
  kPutUnregistered, kDiverge,
};

struct Instruction {
  int64_t operation, fields[kFields];
};

__device__ int64_t not_symmetric[kSlotWords];

__global__ void interpret(Instruction* programs, int length, int64_t* slots, uint64_t* words,
                          int64_t* wrong) {
  const Instruction* program = programs + blockIdx.x * length;
  const bool is_first = threadIdx.x == 0;
  for (; program->operation != kEnd; ++program) {
    const int64_t* const field = program->fields;
    const int peer = static_cast<int>(field[0]);
    int64_t* const target = slots + field[1] * kSlotWords;
    int64_t* const source = slots + field[2] * kSlotWords;
    uint64_t* const word = words + field[3];
    const uint64_t value = static_cast<uint64_t>(field[4]);
    const int option = static_cast<int>(field[5]);
    switch (program->operation) {
      case kPut:
        nvshmemx_putmem_nbi_block(target, source, kSlotWords * sizeof(int64_t), peer);
        break;
      case kPutUnregistered:
        nvshmemx_putmem_block(target, not_symmetric, kSlotWords * sizeof(int64_t), peer);
        break;
      case kPutSignal:
        nvshmemx_putmem_signal_nbi_block(target, source, kSlotWords * sizeof(int64_t), word, value,
                                         option, peer);
        break;
      case kSignal:
        if (is_first) nvshmemx_signal_op(word, value, option, peer);
        break;
      case kFence:
        if (is_first) nvshmem_fence();
        break;
      case kQuiet:
        if (is_first) nvshmem_quiet();
        break;
      case kWait:
        if (is_first) nvshmem_signal_wait_until(word, option, value);
        break;
      case kRead:
        if (target[threadIdx.x] != static_cast<int64_t>(value + threadIdx.x)) ++*wrong;
        break;
      case kWrite:
        target[threadIdx.x] = static_cast<int64_t>(value + threadIdx.x);
        break;
      case kSleep: __nanosleep(static_cast<unsigned>(value)); break;
      case kReset:
        if (is_first) *word = 0;
        break;
      case kBarrier:
        if (is_first) nvshmem_barrier_all();
        break;
      case kDiverge:
        if (threadIdx.x < 16) {
          __syncthreads();
        } else {
          __syncthreads();
        }
        break;
      default: ++*wrong;
    }
    __syncthreads();
  }
}
