// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: the kernel reads what its peer puts without waiting for the signal. Right: one thread calls
// nvshmem_signal_wait_until, and __syncthreads lets the others know.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void exchange(float* destination, float* source, uint64_t* signal, int peer) {
  nvshmemx_putmem_signal_block(destination, source, 4096, signal, 1, NVSHMEM_SIGNAL_SET, peer);
  source[threadIdx.x] += destination[threadIdx.x];
}

int main() {
  nvshmem_init();
  float* const destination = static_cast<float*>(nvshmem_malloc(4096));
  float* const source = static_cast<float*>(nvshmem_calloc(1, 4096));
  uint64_t* const signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  exchange<<<1, 128>>>(destination, source, signal, nvshmem_my_pe() ^ 1);
  nvshmem_barrier_all();
  return 0;
}
