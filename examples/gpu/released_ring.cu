// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Large messages around a ring. One warp of a block moves the data, another one polls the counter
// of the previous PE: they meet in named barriers. A counter is stored with .release and loaded
// with .acquire.
//
//   towpath kernel run released_ring.cu --machine dgx-h100 --pes 4 --race-check
//   towpath kernel run released_ring.cu --machine dgx-h100 --pes 4 --race-check -- relaxed
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <cstring>

constexpr int kWords = 4096;
constexpr int kMovers = 96, kThreads = 128;  // the last warp polls

__device__ void store_release(unsigned* counter, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}
__device__ void store_relaxed(unsigned* counter, unsigned value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}
__device__ unsigned load_acquire(const unsigned* counter) {
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}
__device__ void meet(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
__device__ void tell(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}

// The data of each PE comes to all PEs: slot p of `slots` has the data of PE p.
__global__ void gather(uint4* slots, unsigned* counter, bool is_released) {
  const int pe = nvshmem_my_pe(), pes = nvshmem_n_pes(), next = (pe + 1) % pes;
  uint4* const next_slots = static_cast<uint4*>(nvshmem_ptr(slots, next));
  unsigned* const next_counter = static_cast<unsigned*>(nvshmem_ptr(counter, next));
  constexpr int kVectors = kWords / 4;
  for (int step = 1; step < pes; ++step) {
    if (threadIdx.x < kMovers) {
      const int of = (pe - step + 1 + pes) % pes * kVectors;
      for (int i = threadIdx.x; i < kVectors; i += kMovers) next_slots[of + i] = slots[of + i];
      tell(1);
      meet(2);
    } else {
      meet(1);
      if (threadIdx.x == kMovers) {
        if (is_released) store_release(next_counter, step);
        if (!is_released) store_relaxed(next_counter, step);
        while (load_acquire(counter) < static_cast<unsigned>(step)) continue;
      }
      asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
      meet(2);
    }
  }
}

int main(int argc, char** argv) {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), pes = nvshmem_n_pes();
  unsigned* const slots = static_cast<unsigned*>(nvshmem_malloc(pes * kWords * sizeof(unsigned)));
  unsigned* const counter = static_cast<unsigned*>(nvshmem_calloc(1, sizeof(unsigned)));
  static unsigned words[kWords];
  for (int i = 0; i < kWords; ++i) words[i] = 1000 * pe + i;
  cudaMemcpy(slots + pe * kWords, words, sizeof words, cudaMemcpyHostToDevice);
  nvshmem_barrier_all();
  const bool is_released = argc < 2 || strcmp(argv[1], "relaxed") != 0;
  gather<<<1, kThreads>>>(reinterpret_cast<uint4*>(slots), counter, is_released);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int of = 0; of < pes; ++of) {
    cudaMemcpy(words, slots + of * kWords, sizeof words, cudaMemcpyDeviceToHost);
    for (int i = 0; i < kWords; ++i) wrong += words[i] != 1000u * of + i ? 1 : 0;
  }
  printf("PE %d: %d words are wrong\n", pe, wrong);
  nvshmem_finalize();
  return wrong != 0;
}
