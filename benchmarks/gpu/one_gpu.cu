// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// What the parts of a communication kernel take on one GPU, measured or simulated by the same source.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 -o one_gpu benchmarks/gpu/one_gpu.cu && ./one_gpu > h200.csv
//   towpath kernel run benchmarks/gpu/one_gpu.cu --machine hgx-h200 --pes 1
//
// Each row is the time of one round: that of a launch of many rounds less that of a launch of one,
// over the rounds between. The launch itself is a row of its own. Times are medians. Before each
// launch of what is read from memory, other bytes fill the L2 cache; names that end in _l2 have all
// in it.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kRepeats = 5;
constexpr size_t kBufferBytes = size_t{256} << 20;  // well above what an L2 cache keeps

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "one_gpu: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

// --- kernels: each does its work `rounds` times ---------------------------------------------------

__global__ void nothing(int) {}

// Every round is over other bytes: `stride` elements further, so that what was read lies in memory.
template <typename T>
__global__ void copy(T* destination, const T* source, size_t count, size_t stride, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    T* const to = destination + round * stride;
    const T* const from = source + round * stride;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
      to[i] = from[i];
    }
  }
}

// Eight halves at once are added into the destination.
__global__ void add(float4* destination, const float4* source, size_t count, size_t stride, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    float4* const to = destination + round * stride;
    const float4* const from = source + round * stride;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
      float4 sum = to[i];
      const float4 more = from[i];
      __half2* const sums = reinterpret_cast<__half2*>(&sum);
      const __half2* const addends = reinterpret_cast<const __half2*>(&more);
      for (int k = 0; k < 4; ++k) sums[k] = __hadd2(sums[k], addends[k]);
      to[i] = sum;
    }
  }
}

// Each thread copies 64 bytes between two fences.
__global__ void copy_fence(float4* destination, const float4* source, int rounds) {
  const int threads = gridDim.x * blockDim.x;
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 4; ++i) destination[i * threads + thread] = source[i * threads + thread];
    __threadfence_system();
  }
}

__global__ void barriers(int rounds) {
  for (int round = 0; round < rounds; ++round) __syncthreads();
}

// The first thread of each warp stores, and fences where it is told to.
__global__ void fences(volatile int* words, int fence, int rounds) {
  if (threadIdx.x % 32 != 0) return;
  volatile int* const word = words + (blockIdx.x * blockDim.x + threadIdx.x);
  for (int round = 0; round < rounds; ++round) {
    *word = round;
    if (fence == 1) __threadfence();
    if (fence == 2) __threadfence_system();
  }
}

// Each block hands the turn to the other.
__global__ void ping(volatile int* turns, int rounds) {
  if (threadIdx.x != 0) return;
  volatile int* const own = turns + 64 * blockIdx.x;
  volatile int* const other = turns + 64 * (1 - blockIdx.x);
  for (int round = 1; round <= rounds; ++round) {
    if (blockIdx.x == 0) *other = round;
    while (*own < round) {
    }
    if (blockIdx.x == 1) *other = round;
  }
}

__global__ void chase(const int* next, int* last, int rounds) {
  int place = 0;
  for (int round = 0; round < rounds; ++round) place = next[place];
  *last = place;
}

__global__ void add_to_one(int* word, int rounds) {
  for (int round = 0; round < rounds; ++round) atomicAdd(word, 1);
}

// A thread waits for what its atomic operation returns.
__global__ void fetch_one(int* word, int rounds) {
  int sum = 0;
  for (int round = 0; round < rounds; ++round) sum += atomicAdd(word + (sum & 1), 1);
  if (sum == -1) *word = 0;
}

// --- measuring ------------------------------------------------------------------------------------

class Clock {
 public:
  Clock() {
    check(cudaStreamCreate(&stream_));
    check(cudaEventCreate(&begin_));
    check(cudaEventCreate(&end_));
  }

  // The time of what `launch(stream)` starts, in microseconds: the median of a few.
  template <typename Launch>
  double time_us(Launch launch) {
    std::vector<float> times;
    for (int repeat = 0; repeat < kRepeats + 1; ++repeat) {
      check(cudaEventRecord(begin_, stream_));
      launch(stream_);
      check(cudaEventRecord(end_, stream_));
      check(cudaEventSynchronize(end_));
      check(cudaGetLastError());
      float time_ms = 0;
      check(cudaEventElapsedTime(&time_ms, begin_, end_));
      if (repeat > 0) times.push_back(time_ms * 1000);  // the first one loads the kernel
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  // One round of many, in microseconds.
  template <typename Launch>
  double round_us(int rounds, Launch launch) {
    const double one = time_us([&](cudaStream_t stream) { launch(stream, 1); });
    const double all = time_us([&](cudaStream_t stream) { launch(stream, rounds); });
    return (all - one) / (rounds - 1);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_, end_;
};

void row(const char* what, int blocks, int threads, size_t size_bytes, double time_us) {
  std::printf("%s,%d,%d,%zu,%.4f\n", what, blocks, threads, size_bytes, time_us);
}

struct Buffers {
  char* destination;
  char* source;
  char* other;

  // Leaves none of the other two in the L2 cache.
  void leave_cache(cudaStream_t stream) const { check(cudaMemsetAsync(other, 0, kBufferBytes, stream)); }
};

// `bytes` for each block and round; streamed: each round over other bytes, else over the same ones.
template <typename T>
void copies(Clock& clock, const char* what, Buffers at, int blocks, int threads, size_t bytes, bool streamed) {
  const size_t size = bytes * blocks, count = size / sizeof(T);
  const int rounds = streamed ? static_cast<int>(std::min<size_t>(16, kBufferBytes / size)) : 16;
  const double time = clock.round_us(rounds, [&](cudaStream_t stream, int n) {
    if (streamed) at.leave_cache(stream);
    copy<T><<<blocks, threads, 0, stream>>>(reinterpret_cast<T*>(at.destination), reinterpret_cast<const T*>(at.source),
                                            count, streamed ? count : 0, n);
  });
  row(what, blocks, threads, size, time);
}

void additions(Clock& clock, Buffers at, int blocks, int threads, size_t bytes) {
  const size_t size = bytes * blocks, count = size / sizeof(float4);
  const int rounds = static_cast<int>(std::min<size_t>(16, kBufferBytes / size));
  const double time = clock.round_us(rounds, [&](cudaStream_t stream, int n) {
    at.leave_cache(stream);
    add<<<blocks, threads, 0, stream>>>(reinterpret_cast<float4*>(at.destination),
                                        reinterpret_cast<const float4*>(at.source), count, count, n);
  });
  row("add_half8", blocks, threads, size, time);
}

// A chain of indices that visits `count` ints, each `step` further, round and round.
void write_chain(int* device, int count, int step) {
  std::vector<int> next(static_cast<size_t>(count) * step);
  for (int i = 0; i < count; ++i) next[static_cast<size_t>(i) * step] = (i + 1) % count * step;
  check(cudaMemcpy(device, next.data(), next.size() * sizeof(int), cudaMemcpyHostToDevice));
}

}  // namespace

int main() {
  Clock clock;
  Buffers at;
  check(cudaMalloc(reinterpret_cast<void**>(&at.destination), kBufferBytes));
  check(cudaMalloc(reinterpret_cast<void**>(&at.source), kBufferBytes));
  check(cudaMalloc(reinterpret_cast<void**>(&at.other), kBufferBytes));
  check(cudaMemset(at.destination, 0, kBufferBytes));
  check(cudaMemset(at.source, 0, kBufferBytes));
  int* const words = reinterpret_cast<int*>(at.destination);
  std::printf("what,blocks,threads,size_bytes,time_us\n");

  row("launch", 1, 32, 0, clock.time_us([&](cudaStream_t s) { nothing<<<1, 32, 0, s>>>(0); }));
  row("launch", 132, 512, 0, clock.time_us([&](cudaStream_t s) { nothing<<<132, 512, 0, s>>>(0); }));

  write_chain(words, 1 << 13, 128);  // 4 MiB, more than a multiprocessor's own cache keeps
  row("load_from_l2", 1, 1, 4, clock.round_us(8192, [&](cudaStream_t s, int n) {
        chase<<<1, 1, 0, s>>>(words, reinterpret_cast<int*>(at.source), n);
      }));
  write_chain(words, 1 << 14, 4096);  // 256 MiB
  row("load_from_memory", 1, 1, 4, clock.round_us(16384, [&](cudaStream_t s, int n) {
        at.leave_cache(s);
        chase<<<1, 1, 0, s>>>(words, reinterpret_cast<int*>(at.source), n);
      }));
  check(cudaMemset(at.destination, 0, kBufferBytes));

  for (const int threads : {32, 64, 128, 256, 512, 1024}) {
    row("barrier", 1, threads, 0, clock.round_us(1000, [&](cudaStream_t s, int n) { barriers<<<1, threads, 0, s>>>(n); }));
  }
  for (const int threads : {32, 128, 512, 1024}) {
    const char* const names[] = {"store", "store_fence", "store_fence_system"};
    for (const int fence : {0, 1, 2}) {
      row(names[fence], 1, threads, 4, clock.round_us(200, [&](cudaStream_t s, int n) {
            fences<<<1, threads, 0, s>>>(words, fence, n);
          }));
    }
  }
  for (const int blocks : {2, 132}) {
    row("store_fence_system", blocks, 512, 4, clock.round_us(200, [&](cudaStream_t s, int n) {
          fences<<<blocks, 512, 0, s>>>(words, 2, n);
        }));
  }
  for (const int blocks : {1, 132}) {
    for (const int threads : {32, 512}) {
      row("copy_fence", blocks, threads, 64, clock.round_us(200, [&](cudaStream_t s, int n) {
            copy_fence<<<blocks, threads, 0, s>>>(reinterpret_cast<float4*>(at.destination),
                                                  reinterpret_cast<const float4*>(at.source), n);
          }));
    }
  }
  row("ping", 2, 32, 4, clock.round_us(200, [&](cudaStream_t s, int n) {
        check(cudaMemsetAsync(words, 0, 1024, s));
        ping<<<2, 32, 0, s>>>(words, n);
      }));
  row("atomic", 1, 1, 4, clock.round_us(200, [&](cudaStream_t s, int n) { add_to_one<<<1, 1, 0, s>>>(words, n); }));
  row("atomic", 132, 512, 4, clock.round_us(20, [&](cudaStream_t s, int n) { add_to_one<<<132, 512, 0, s>>>(words, n); }));
  row("atomic_fetch", 1, 1, 4, clock.round_us(200, [&](cudaStream_t s, int n) { fetch_one<<<1, 1, 0, s>>>(words, n); }));

  for (const int threads : {32, 128, 256, 512, 1024}) {
    copies<float4>(clock, "copy_16", at, 1, threads, 256 << 10, true);
    copies<float4>(clock, "copy_16_l2", at, 1, threads, 256 << 10, false);
    copies<float>(clock, "copy_4", at, 1, threads, 256 << 10, true);
    copies<__half>(clock, "copy_2", at, 1, threads, 64 << 10, true);
    additions(clock, at, 1, threads, 256 << 10);
  }
  for (const int blocks : {8, 32, 66, 132, 264}) {
    copies<float4>(clock, "copy_16", at, blocks, 512, 64 << 10, true);
    additions(clock, at, blocks, 512, 64 << 10);
  }
  copies<float4>(clock, "copy_16", at, 132, 1024, 64 << 10, true);
  copies<float4>(clock, "copy_16", at, 528, 512, 64 << 10, true);
  check(cudaDeviceSynchronize());
  return 0;
}
