// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// A kernel stores its result to a variable of the host program.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void count(int* result) {
  if (threadIdx.x == 0) *result = blockDim.x;
}

int main() {
  nvshmem_init();
  int result = 0;
  count<<<1, 32>>>(&result);
  cudaDeviceSynchronize();
  nvshmem_finalize();
  return result == 32 ? 0 : 1;
}
