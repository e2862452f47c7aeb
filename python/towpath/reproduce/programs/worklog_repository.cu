// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// All-reduces of the repository behind document 003, through its own factory, and their data.
//
//   worklog_repository KIND NODES ROUTES CALLS THREADS
//
// KIND: 0 simple ring, 1 ring, 2 one-shot, 3 two-shot
#include "all_reduce_ring_simple.cu"
#include "all_reduce_ring_standard.cu"
#include "all_reduce_oneshot.cu"
#include "all_reduce_twoshot.cu"

#include <cstdlib>
#include <vector>

int main(int, char** arguments) {
  nvshmem_init();
  const auto kind = static_cast<AlgoType>(std::atoi(arguments[1]));
  const int nodes = std::atoi(arguments[2]), routes = std::atoi(arguments[3]);
  const int calls = std::atoi(arguments[4]), threads = std::atoi(arguments[5]);
  const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
  constexpr int kCount = 65536;
  std::vector<half> values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = __float2half(static_cast<float>(me % 4 + i % 3));
  half *buffer = nullptr, *output = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&buffer), kCount * sizeof(half));
  output = static_cast<half*>(nvshmem_malloc(kCount * sizeof(half)));
  cudaMemcpy(buffer, values.data(), kCount * sizeof(half), cudaMemcpyHostToDevice);
  void* const reduction = create_all_reduce(buffer, kCount, 16, threads, nodes, routes, kind, nullptr);
  for (int call = 0; call < calls; ++call) all_reduce(reduction, output, nullptr);
  nvshmemx_barrier_all_on_stream(nullptr);
  cudaDeviceSynchronize();
  cudaMemcpy(values.data(), output, kCount * sizeof(half), cudaMemcpyDeviceToHost);
  int sum = 0, wrong = 0;
  for (int pe = 0; pe < n; ++pe) sum += pe % 4;
  for (int i = 0; i < kCount; ++i) {
    wrong += __half2float(values[i]) != static_cast<float>(sum + n * (i % 3));
  }
  destroy_all_reduce(reduction);
  nvshmem_finalize();
  return wrong == 0 ? 0 : 1;
}
