// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Its last thread stores beyond the array: the grid has one thread more than elements.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void fill(int* values, int threads) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < threads) values[i] = i;
}

int main() {
  nvshmem_init();
  int* values;
  cudaMalloc(&values, 1000 * sizeof(int));
  fill<<<8, 128>>>(values, 1001);
  cudaDeviceSynchronize();
  nvshmem_finalize();
}
