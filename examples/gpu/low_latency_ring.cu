// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Small messages around a ring: each line of 16 bytes has two words of data and two flags. A line
// arrives at once, so the reader needs no fence and no signal.
//
//   towpath kernel run low_latency_ring.cu --machine dgx-h100 --pes 4 -- 1000
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <cstdlib>

struct alignas(16) Line {
  unsigned data_low, flag_low, data_high, flag_high;
};

__device__ void put_line(Line* line, unsigned long long data, unsigned flag) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(line),
               "r"(static_cast<unsigned>(data)), "r"(flag), "r"(static_cast<unsigned>(data >> 32))
               : "memory");
}

__device__ unsigned long long wait_line(const Line* line, unsigned flag) {
  unsigned low, flag_low, high, flag_high;
  do {
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(low), "=r"(flag_low), "=r"(high), "=r"(flag_high)
                 : "l"(line)
                 : "memory");
  } while (flag_low != flag || flag_high != flag);
  return static_cast<unsigned long long>(high) << 32 | low;
}

// All PEs have the sum of all values after a turn around the ring.
__global__ void sum(unsigned long long* values, Line* lines, int count) {
  const int pe = nvshmem_my_pe(), pes = nvshmem_n_pes();
  Line* const next = static_cast<Line*>(nvshmem_ptr(lines, (pe + 1) % pes));
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const unsigned long long own = values[i];
    unsigned long long passed = own, total = own;
    for (int step = 1; step < pes; ++step) {
      // A slot for each step: none is used twice.
      const int slot = (step - 1) * count + i;
      put_line(next + slot, passed, step);
      passed = wait_line(lines + slot, step);
      total += passed;
    }
    values[i] = total;
  }
}

int main(int argc, char** argv) {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), pes = nvshmem_n_pes();
  const int count = argc > 1 ? atoi(argv[1]) : 256;
  Line* const lines = static_cast<Line*>(nvshmem_calloc(count * pes, sizeof(Line)));
  unsigned long long* values;
  cudaMallocManaged(&values, count * sizeof(*values));
  for (int i = 0; i < count; ++i) values[i] = (1ull << 40) * (pe + 1) + i;
  nvshmem_barrier_all();
  sum<<<4, 64>>>(values, lines, count);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    const unsigned long long expected = (1ull << 40) * (pes * (pes + 1) / 2) + 1ull * pes * i;
    if (values[i] != expected) ++wrong;
  }
  printf("PE %d: %d of %d values are wrong\n", pe, wrong, count);
  nvshmem_finalize();
  return wrong != 0;
}
