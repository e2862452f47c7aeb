// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Measures messages between all GPUs of a process. A line per size: bytes of a message,
// microseconds in which each rank sends to the next one, microseconds in which each rank sends to
// all ranks, and right or wrong. usage: messages BYTES...

#include <cuda_runtime.h>

#include <chrono>
#include <vector>

#include "check.hpp"

namespace {

constexpr int kIterations = 4;

struct Rank {
  ncclComm_t communicator;
  cudaStream_t stream;
  float *from, *to;
};

void send_to_next(const std::vector<Rank>& ranks, std::size_t floats) {
  const int n = static_cast<int>(ranks.size());
  for (int i = 0; i < n; ++i) {
    const auto& [communicator, stream, from, to] = ranks[i];
    check(ncclSend(from, floats, ncclFloat, (i + 1) % n, communicator, stream));
    check(ncclRecv(to, floats, ncclFloat, (i + n - 1) % n, communicator, stream));
  }
}

void send_to_all(const std::vector<Rank>& ranks, std::size_t floats) {
  for (const auto& [communicator, stream, from, to] : ranks) {
    for (std::size_t peer = 0; peer < ranks.size(); ++peer) {
      const int number = static_cast<int>(peer);
      check(ncclSend(from + peer * floats, floats, ncclFloat, number, communicator, stream));
      check(ncclRecv(to + peer * floats, floats, ncclFloat, number, communicator, stream));
    }
  }
}

template <typename Messages>
double measured_us(const std::vector<Rank>& ranks, std::size_t floats, Messages messages) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kIterations; ++i) {
    check(ncclGroupStart());
    messages(ranks, floats);
    check(ncclGroupEnd());
  }
  for (const Rank& each : ranks) cudaStreamSynchronize(each.stream);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count() / kIterations;
}

}  // namespace

int main(int count, char** words) {
  int gpus = 0;
  cudaGetDeviceCount(&gpus);
  std::vector<ncclComm_t> communicators(gpus);
  check(ncclCommInitAll(communicators.data(), gpus, nullptr));
  for (int word = 1; word < count; ++word) {
    const std::size_t bytes = std::strtoull(words[word], nullptr, 10);
    const std::size_t floats = bytes / sizeof(float);
    std::vector<Rank> ranks;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      Rank rank{communicators[gpu], nullptr, nullptr, nullptr};
      cudaSetDevice(gpu);
      cudaStreamCreate(&rank.stream);
      cudaMalloc(reinterpret_cast<void**>(&rank.from), gpus * bytes);
      cudaMalloc(reinterpret_cast<void**>(&rank.to), gpus * bytes);
      for (std::size_t i = 0; i < gpus * floats; ++i) rank.from[i] = static_cast<float>(gpu);
      ranks.push_back(rank);
    }
    const double next_us = measured_us(ranks, floats, send_to_next);
    bool is_right = true;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      is_right = is_right && ranks[gpu].to[0] == static_cast<float>((gpu + gpus - 1) % gpus);
    }
    const double all_us = measured_us(ranks, floats, send_to_all);
    for (const Rank& rank : ranks) {
      for (std::size_t i = 0; i < gpus * floats; ++i) {
        is_right = is_right && rank.to[i] == static_cast<float>(i / floats);
      }
      cudaFree(rank.from);
      cudaFree(rank.to);
    }
    std::printf("%zu %.3f %.3f %s\n", bytes, next_us, all_us, is_right ? "right" : "wrong");
  }
  return 0;
}
