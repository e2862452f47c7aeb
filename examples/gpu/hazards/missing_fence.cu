// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Wrong: the flag may arrive before the data. Right: __threadfence() between the two stores, or a
// flag that is stored with st.release.gpu. Found with --race-check.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void pass(int* data, int* flag, int* out) {
  int seen = 0;
  if (blockIdx.x == 0) {
    *data = 5;
    asm volatile("st.relaxed.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    while (seen == 0) {
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    }
    *out = *data;
  }
}

int main() {
  nvshmem_init();
  int* words;
  cudaMalloc(&words, 1024);
  cudaMemset(words, 0, 1024);
  pass<<<2, 1>>>(words, words + 64, words + 128);
  cudaDeviceSynchronize();
  nvshmem_finalize();
}
