// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Lines of cells lead through all PEs and close behind the last. In each step a cell becomes the sum
// of itself and its neighbours; PEs put the cells at their ends to each other. A block has a line.
//
//   towpath kernel run halo_exchange.cu --machine dgx-h100 --pes 4 --profile -- 4096 8
//
// Arguments: cells of a line on each PE, steps, and a PE that works ten times as much as it must.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <cstdlib>

using Cell = unsigned long long;

__global__ void add_neighbours(Cell* lines, uint64_t* signals, int cells, int steps, int busy_pe) {
  const int pe = nvshmem_my_pe(), pes = nvshmem_n_pes();
  const int left = (pe + pes - 1) % pes, right = (pe + 1) % pes;
  const int times = pe == busy_pe ? 10 : 1;
  // One copy of the line is read while the other is written; both have a place at either end.
  Cell* const copies = lines + 2 * blockIdx.x * (cells + 2);
  uint64_t* const from_left = signals + 2 * blockIdx.x;
  uint64_t* const from_right = from_left + 1;
  for (int step = 1; step <= steps; ++step) {
    Cell* const now = copies + (step - 1) % 2 * (cells + 2);
    Cell* const next = copies + step % 2 * (cells + 2);
    if (threadIdx.x == 0) {
      nvshmem_putmem_signal_nbi(now + cells + 1, now + 1, sizeof(Cell), from_right, step,
                                NVSHMEM_SIGNAL_SET, left);
      nvshmem_putmem_signal_nbi(now, now + cells, sizeof(Cell), from_left, step,
                                NVSHMEM_SIGNAL_SET, right);
      nvshmem_signal_wait_until(from_left, NVSHMEM_CMP_GE, step);
      nvshmem_signal_wait_until(from_right, NVSHMEM_CMP_GE, step);
    }
    __syncthreads();
    for (int time = 0; time < times; ++time) {
      for (int i = threadIdx.x + 1; i <= cells; i += blockDim.x) {
        next[i] = now[i - 1] + now[i] + now[i + 1];
      }
    }
    if (threadIdx.x == 0) nvshmem_quiet();  // the next step but one writes to what was put from
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  const int cells = argc > 1 ? atoi(argv[1]) : 1024;
  const int steps = argc > 2 ? atoi(argv[2]) : 4;
  const int busy_pe = argc > 3 ? atoi(argv[3]) : -1;
  constexpr int kBlocks = 4;
  nvshmem_init();
  const int pe = nvshmem_my_pe(), pes = nvshmem_n_pes();
  const size_t all = 2 * kBlocks * (cells + 2);
  Cell* const lines = static_cast<Cell*>(nvshmem_malloc(all * sizeof(Cell)));
  uint64_t* const signals = static_cast<uint64_t*>(nvshmem_calloc(2 * kBlocks, sizeof(uint64_t)));
  Cell* const sums = static_cast<Cell*>(nvshmem_malloc(2 * sizeof(Cell)));
  Cell* const own = static_cast<Cell*>(malloc(all * sizeof(Cell)));
  for (size_t i = 0; i < all; ++i) own[i] = 1000 * pe + i % (cells + 2);
  cudaMemcpy(lines, own, all * sizeof(Cell), cudaMemcpyHostToDevice);
  nvshmem_barrier_all();

  add_neighbours<<<kBlocks, 128>>>(lines, signals, cells, steps, busy_pe);
  cudaDeviceSynchronize();

  // Each step makes the sum of all cells of a line three times what it was.
  Cell expected = 0, sum = 0;
  for (int other = 0; other < pes; ++other) {
    for (int i = 1; i <= cells; ++i) expected += 1000 * other + i;
  }
  for (int step = 0; step < steps; ++step) expected *= 3;
  cudaMemcpy(own, lines, all * sizeof(Cell), cudaMemcpyDeviceToHost);
  for (int i = 1; i <= cells; ++i) sum += own[steps % 2 * (cells + 2) + i];
  cudaMemcpy(sums, &sum, sizeof(Cell), cudaMemcpyHostToDevice);
  nvshmem_uint64_sum_reduce(NVSHMEM_TEAM_WORLD, reinterpret_cast<uint64_t*>(sums + 1),
                            reinterpret_cast<uint64_t*>(sums), 1);
  cudaMemcpy(&sum, sums + 1, sizeof(Cell), cudaMemcpyDeviceToHost);
  if (pe == 0) printf("%s\n", sum == expected ? "the sum is right" : "the sum is wrong");
  nvshmem_free(sums);
  nvshmem_free(signals);
  nvshmem_free(lines);
  free(own);
  nvshmem_finalize();
  return sum == expected ? 0 : 1;
}
