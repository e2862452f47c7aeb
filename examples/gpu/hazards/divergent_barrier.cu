// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: the threads of a block wait at two barriers. Right: one barrier that all threads reach.
#include <nvshmem.h>

__global__ void diverge(int* values) {
  if (threadIdx.x < 32) {
    values[threadIdx.x] = 1;
    __syncthreads();
  } else {
    values[threadIdx.x] = 2;
    __syncthreads();
  }
}

int main() {
  nvshmem_init();
  int* const values = static_cast<int*>(nvshmem_malloc(64 * sizeof(int)));
  diverge<<<1, 64>>>(values);
  nvshmem_barrier_all();
  return 0;
}
