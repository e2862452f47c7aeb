// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 bytes begin behind a header of 4.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void clear(char* message) {
  float4* const vectors = reinterpret_cast<float4*>(message + 4);
  vectors[threadIdx.x] = make_float4(0, 0, 0, 0);
}

int main() {
  nvshmem_init();
  char* const message = static_cast<char*>(nvshmem_malloc(4096));
  clear<<<1, 32>>>(message);
  cudaDeviceSynchronize();
  nvshmem_finalize();
}
