// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: the source of a put that returns at once is changed before the put has read it. Right:
// nvshmem_quiet() before the store. It shows between hosts, where adapters read the source.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void send(float* destination, float* source, int peer) {
  nvshmemx_putmem_nbi_block(destination, source, 1 << 20, peer);
  source[threadIdx.x] = 0;
  nvshmem_quiet();
}

int main() {
  nvshmem_init();
  float* const destination = static_cast<float*>(nvshmem_malloc(1 << 20));
  float* const source = static_cast<float*>(nvshmem_malloc(1 << 20));
  send<<<1, 128>>>(destination, source, (nvshmem_my_pe() + 8) % nvshmem_n_pes());
  nvshmem_barrier_all();
  return 0;
}
