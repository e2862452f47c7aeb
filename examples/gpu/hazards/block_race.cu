// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: every block adds to one word, and a block may overwrite the sum of another. Right: atomicAdd.
// Found with --race-check.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void count(int* sum) {
  if (threadIdx.x == 0) *sum += blockDim.x;
}

int main() {
  nvshmem_init();
  int* sum;
  cudaMalloc(&sum, sizeof(int));
  cudaMemset(sum, 0, sizeof(int));
  count<<<4, 32>>>(sum);
  cudaDeviceSynchronize();
  nvshmem_finalize();
}
