// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: a fence orders puts and does not wait for them, so the source of the put may still be read
// when it is changed. Right: nvshmem_quiet().
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void send(float* destination, float* source, int peer) {
  nvshmemx_putmem_nbi_block(destination, source, 4096, peer);
  nvshmem_fence();
  source[threadIdx.x] = 0;
}

int main() {
  nvshmem_init();
  float* const destination = static_cast<float*>(nvshmem_malloc(4096));
  float* const source = static_cast<float*>(nvshmem_malloc(4096));
  send<<<1, 128>>>(destination, source, nvshmem_my_pe() ^ 1);
  nvshmem_barrier_all();
  return 0;
}
