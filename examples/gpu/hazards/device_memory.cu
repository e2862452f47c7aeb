// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The host program loads symmetric memory, which is the GPU's.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void count(int* result) {
  if (threadIdx.x == 0) *result = blockDim.x;
}

int main() {
  nvshmem_init();
  int* const result = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  count<<<1, 32>>>(result);
  cudaDeviceSynchronize();
  const bool is_right = *result == 32;
  nvshmem_finalize();
  return is_right ? 0 : 1;
}
