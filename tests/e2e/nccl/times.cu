// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Measures all-reduces of floats on all GPUs of a process, as nccl-tests does: with a clock and
// with events. A line per size: bytes, microseconds by the clock, microseconds by events, right or
// wrong. With "poll" it queries the streams and reads the clock until they are idle, instead of
// waiting. usage: times wait|poll BYTES...

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

constexpr int kIterations = 4;

void check(bool is_right, const char* action) {
  if (is_right) return;
  std::fprintf(stderr, "cannot %s\n", action);
  std::exit(1);
}

using Clock = std::chrono::steady_clock;

// Ends the program after an hour of its clock, as a program with a time limit does.
void poll(cudaStream_t stream) {
  const auto start = Clock::now();
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    check(Clock::now() - start < std::chrono::hours(1), "wait for so long");
  }
}

}  // namespace

int main(int count, char** words) {
  check(count > 2, "measure without sizes");
  const bool has_polls = std::string_view(words[1]) == "poll";
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus) == cudaSuccess, "count GPUs");
  std::vector<ncclComm_t> communicators(gpus);
  check(ncclCommInitAll(communicators.data(), gpus, nullptr) == ncclSuccess, "make communicators");
  std::vector<cudaStream_t> streams(gpus);
  std::vector<float*> from(gpus), to(gpus);
  for (int word = 2; word < count; ++word) {
    const std::size_t floats = std::strtoull(words[word], nullptr, 10) / sizeof(float);
    cudaEvent_t begin, end;
    const std::vector<float> ones(floats, 1.0F);
    for (int gpu = 0; gpu < gpus; ++gpu) {
      cudaSetDevice(gpu);
      if (word == 2) cudaStreamCreate(&streams[gpu]);
      cudaMalloc(reinterpret_cast<void**>(&from[gpu]), floats * sizeof(float));
      cudaMalloc(reinterpret_cast<void**>(&to[gpu]), floats * sizeof(float));
      cudaMemcpy(from[gpu], ones.data(), floats * sizeof(float), cudaMemcpyHostToDevice);
    }
    cudaSetDevice(0);
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    const auto start = Clock::now();
    cudaEventRecord(begin, streams[0]);
    for (int i = 0; i < kIterations; ++i) {
      ncclGroupStart();
      for (int gpu = 0; gpu < gpus; ++gpu) {
        check(ncclAllReduce(from[gpu], to[gpu], floats, ncclFloat, ncclSum, communicators[gpu],
                            streams[gpu]) == ncclSuccess,
              "start an all-reduce");
      }
      check(ncclGroupEnd() == ncclSuccess, "end a group");
    }
    cudaSetDevice(0);
    cudaEventRecord(end, streams[0]);
    for (int gpu = 0; gpu < gpus; ++gpu) {
      cudaSetDevice(gpu);
      if (has_polls) poll(streams[gpu]);
      cudaStreamSynchronize(streams[gpu]);
    }
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    float event_ms = 0;
    check(cudaEventElapsedTime(&event_ms, begin, end) == cudaSuccess, "read events");
    std::vector<float> result(floats);
    bool is_right = true;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      cudaMemcpy(result.data(), to[gpu], floats * sizeof(float), cudaMemcpyDeviceToHost);
      for (const float value : result) is_right = is_right && value == static_cast<float>(gpus);
      cudaFree(from[gpu]);
      cudaFree(to[gpu]);
    }
    std::printf("%zu %.3f %.3f %s\n", floats * sizeof(float), took.count() / kIterations,
                event_ms * 1e3 / kIterations, is_right ? "right" : "wrong");
  }
  return 0;
}
