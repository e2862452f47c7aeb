// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// A kernel loads what the host program has freed before the launch.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void add(const int* values, int* sum) {
  atomicAdd(sum, values[threadIdx.x]);
}

int main() {
  nvshmem_init();
  int *values, *sum;
  cudaMalloc(&values, 32 * sizeof(int));
  cudaMalloc(&sum, sizeof(int));
  cudaFree(values);
  add<<<1, 32>>>(values, sum);
  cudaDeviceSynchronize();
  nvshmem_finalize();
}
