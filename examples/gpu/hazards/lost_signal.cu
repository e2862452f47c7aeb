// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: everybody waits for a signal that nobody sends. Right: a put with the signal, or
// nvshmemx_signal_op, before the wait.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void wait(uint64_t* signal) {
  if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
  __syncthreads();
}

int main() {
  nvshmem_init();
  uint64_t* const signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  wait<<<1, 64>>>(signal);
  nvshmem_barrier_all();
  return 0;
}
