// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: the source of the put is neither symmetric nor registered. Between hosts an adapter cannot
// read it. Right: nvshmemx_buffer_register(buffer, size) before the launch.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void send(float* destination, float* buffer, int peer) {
  nvshmemx_putmem_block(destination, buffer, 256 * sizeof(float), peer);
}

int main() {
  nvshmem_init();
  float* const destination = static_cast<float*>(nvshmem_malloc(256 * sizeof(float)));
  float* buffer;
  cudaMalloc(&buffer, 256 * sizeof(float));
  send<<<1, 128>>>(destination, buffer, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
  nvshmem_barrier_all();
  return 0;
}
