// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: the peer adds to the signal twice, and a thread that comes late waits for it to be 1. Right:
// NVSHMEM_CMP_GE.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void count(uint64_t* signal, int peer) {
  if (threadIdx.x != 0) return;
  nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, peer);
  nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, peer);
  nvshmem_quiet();
  __nanosleep(100000);
  nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
}

int main() {
  nvshmem_init();
  uint64_t* const signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  count<<<1, 32>>>(signal, nvshmem_my_pe() ^ 1);
  nvshmem_barrier_all();
  return 0;
}
