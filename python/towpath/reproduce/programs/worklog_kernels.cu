// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Runs one of the document's kernels on data of which the result is known, and says how many
// elements are wrong. The same program serves simulated machines, processes of a host, and GPUs.
//
//   worklog_kernels KERNEL TYPE THREADS PACKET_BYTES BLOCKS CALLS [RINGS]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "document_kernels.h"

struct Shape {
  std::string kernel;
  int threads, packet_bytes, blocks, calls, rings;
  bool has_chunks() const { return kernel != "simple_ring" && !is_exchange(); }
  bool is_exchange() const { return kernel.find("exchange") != std::string::npos; }
};

template <typename T>
void start(const Shape& shape, T* destination, T* buffer, uint64_t* signal, int stage,
           cudaStream_t stream) {
  const int peer = nvshmem_my_pe() ^ 1;
  const int n = nvshmem_n_pes();
  const int packet = shape.packet_bytes;
  const int node = nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE);
  const dim3 grid(shape.blocks, shape.rings), block(shape.threads);
  if (shape.kernel == "plain_exchange") {
    plain_exchange::exchange<<<grid, block, 0, stream>>>(destination, buffer, peer, packet);
  } else if (shape.kernel == "signal_exchange") {
    signal_exchange::exchange<<<grid, block, 0, stream>>>(destination, buffer, signal, peer, packet);
  } else if (shape.kernel == "fused_exchange") {
    fused_exchange::exchange<<<grid, block, 0, stream>>>(destination, buffer, signal, peer, packet);
  } else if (shape.kernel == "ring") {
    ring::all_reduce_ring_kernel<T>
        <<<grid, block, 0, stream>>>(destination, buffer, signal, packet, n, stage);
  } else if (shape.kernel == "vectorised_ring") {
    vectorised_ring::all_reduce_ring_kernel<T>
        <<<grid, block, 0, stream>>>(destination, buffer, signal, packet, n, stage);
  } else if (shape.kernel == "alternating_rings") {
    alternating_rings::all_reduce_ring_kernel<T>
        <<<grid, block, 0, stream>>>(destination, buffer, signal, packet, node, stage);
  } else {
    simple_ring::all_reduce_simple_ring_kernel<T>
        <<<grid, block, 0, stream>>>(destination, buffer, signal, packet, n, stage);
  }
}

// Small whole numbers, whose sums every type holds exactly.
constexpr size_t kPeriod = 7;
constexpr size_t kPatternElements = 4096 * kPeriod;
float element(int pe, size_t i) { return static_cast<float>((i + 3 * pe) % kPeriod); }

// The beginning of an array, which goes on like it: the sum of what PEs begin with.
template <typename T>
std::vector<T> pattern_of(int first_pe, int pes) {
  std::vector<T> pattern(kPatternElements);
  for (size_t i = 0; i < kPatternElements; ++i) {
    float sum = 0;
    for (int pe = first_pe; pe < first_pe + pes; ++pe) sum += element(pe, i);
    pattern[i] = static_cast<T>(sum);
  }
  return pattern;
}

template <typename T>
void fill(std::vector<T>& array, const std::vector<T>& pattern) {
  for (size_t i = 0; i < array.size(); i += pattern.size()) {
    memcpy(&array[i], pattern.data(), std::min(pattern.size(), array.size() - i) * sizeof(T));
  }
}

// How many elements are others. Whole numbers have one representation each.
template <typename T>
size_t wrong_elements(const std::vector<T>& array, const std::vector<T>& pattern) {
  size_t wrong = 0;
  for (size_t i = 0; i < array.size(); i += pattern.size()) {
    const size_t count = std::min(pattern.size(), array.size() - i);
    if (memcmp(&array[i], pattern.data(), count * sizeof(T)) == 0) continue;
    for (size_t j = 0; j < count; ++j) wrong += array[i + j] != pattern[j];
  }
  return wrong;
}

template <typename T>
size_t run(const Shape& shape) {
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  const size_t blocks = size_t(shape.blocks) * shape.rings;
  const size_t share = blocks * shape.threads * shape.packet_bytes / sizeof(T);
  const std::vector<T> own = pattern_of<T>(pe, 1);
  const std::vector<T> expected =
      shape.is_exchange() ? pattern_of<T>(pe ^ 1, 1) : pattern_of<T>(0, n);
  const size_t count = share * (shape.has_chunks() ? n : 1);
  T* const destination = static_cast<T*>(nvshmem_malloc(count * sizeof(T)));
  uint64_t* const signal =
      static_cast<uint64_t*>(nvshmem_calloc(blocks, sizeof(uint64_t)));
  T* buffer;
  cudaMalloc(&buffer, count * sizeof(T));
  nvshmemx_buffer_register(buffer, count * sizeof(T));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaEvent_t before, after;
  cudaEventCreate(&before);
  cudaEventCreate(&after);
  std::vector<T> host(count);
  size_t wrong = 0;
  float milliseconds = 0;
  int stage = 1;
  for (int call = 0; call < shape.calls; ++call) {
    fill(host, own);
    cudaMemcpyAsync(buffer, host.data(), count * sizeof(T), cudaMemcpyHostToDevice, stream);
    // An exchange sets its signal to 1 in each call; the ring's and simple ring's values grow.
    if (shape.is_exchange()) {
      cudaMemsetAsync(signal, 0, blocks * sizeof(uint64_t), stream);
    }
    nvshmemx_barrier_all_on_stream(stream);
    cudaEventRecord(before, stream);
    start(shape, destination, buffer, signal, stage, stream);
    cudaEventRecord(after, stream);
    stage += shape.has_chunks() ? 2 * (n - 1) : 2;
    nvshmemx_barrier_all_on_stream(stream);
    const T* const result = shape.kernel == "plain_exchange" ? destination : buffer;
    cudaMemcpyAsync(host.data(), result, count * sizeof(T), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    cudaEventElapsedTime(&milliseconds, before, after);
    wrong += wrong_elements(host, expected);
  }
  if (pe == 0) {
    printf("%s of %zu bytes: %.3f us\n", shape.kernel.c_str(), count * sizeof(T),
           milliseconds * 1e3f);
  }
  nvshmemx_buffer_unregister(buffer);
  cudaFree(buffer);
  nvshmem_free(signal);
  nvshmem_free(destination);
  return wrong;
}

int main(int argc, char** argv) {
  if (argc < 7 || argc > 8) {
    fprintf(stderr, "usage: KERNEL TYPE THREADS PACKET_BYTES BLOCKS CALLS [RINGS]\n");
    return 2;
  }
  const Shape shape = {argv[1], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), atoi(argv[6]),
                       argc > 7 ? atoi(argv[7]) : 1};
  nvshmem_init();
  const std::string type = argv[2];
  const size_t wrong = type == "half"       ? run<half>(shape)
                       : type == "bfloat16" ? run<__nv_bfloat16>(shape)
                                            : run<float>(shape);
  if (wrong > 0) printf("PE %d: %zu elements are wrong\n", nvshmem_my_pe(), wrong);
  nvshmem_finalize();
  return wrong > 0 ? 1 : 0;
}
