// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Measures all-reduces of floats with a GPU for each process that a launcher starts. Process 0
// prints a line per size: bytes and microseconds. usage: process_times BYTES...

#include <cuda_runtime.h>

#include <chrono>

#include "common_id.hpp"

int main(int count, char** words) {
  constexpr int kIterations = 4;
  const int rank = number_of("RANK", 0);
  cudaSetDevice(number_of("LOCAL_RANK", 0));
  ncclComm_t communicator = nullptr;
  check(ncclCommInitRank(&communicator, number_of("WORLD_SIZE", 1), common_id(), rank));
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  // The process that has waited for the id enters the first call later, by its simulated clock.
  void* first = nullptr;
  cudaMalloc(&first, sizeof(float));
  check(ncclAllReduce(first, first, 1, ncclFloat, ncclSum, communicator, stream));
  cudaStreamSynchronize(stream);
  for (int word = 1; word < count; ++word) {
    const std::size_t size_bytes = std::strtoull(words[word], nullptr, 10);
    void *from = nullptr, *to = nullptr;
    cudaMalloc(&from, size_bytes);
    cudaMalloc(&to, size_bytes);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kIterations; ++i) {
      check(ncclAllReduce(from, to, size_bytes / sizeof(float), ncclFloat, ncclSum, communicator,
                          stream));
    }
    cudaStreamSynchronize(stream);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (rank == 0) std::printf("%zu %.3f\n", size_bytes, took.count() / kIterations);
    cudaFree(from);
    cudaFree(to);
  }
  check(ncclCommDestroy(communicator));
  return 0;
}
