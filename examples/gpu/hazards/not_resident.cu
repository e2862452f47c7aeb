// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: each block waits for the one after it, and the last ones have no place on the GPU until
// the first ones end. Right: at most as many blocks as are resident at once.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void chain(uint64_t* signal) {
  if (threadIdx.x != 0) return;
  const int pe = nvshmem_my_pe();
  if (blockIdx.x + 1 < gridDim.x) {
    nvshmem_signal_wait_until(signal + blockIdx.x + 1, NVSHMEM_CMP_EQ, 1);
  }
  nvshmemx_signal_op(signal + blockIdx.x, 1, NVSHMEM_SIGNAL_SET, pe);
}

int main() {
  nvshmem_init();
  const int blocks = 600;
  uint64_t* const signal = static_cast<uint64_t*>(nvshmem_calloc(blocks, sizeof(uint64_t)));
  chain<<<blocks, 512>>>(signal);
  nvshmem_barrier_all();
  return 0;
}
