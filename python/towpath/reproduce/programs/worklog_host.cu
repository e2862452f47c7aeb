// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Calls the host functions of document 003, which a header cut from its text holds. Tensors and
// byte arrays have the members that those functions use.
//
//   worklog_host first|second|identifier
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace torch {
struct Tensor {
  void* data;
  size_t count;
  size_t numel() const { return count; }
  void* data_ptr() const { return data; }
};
}  // namespace torch
namespace at::cuda {
inline cudaStream_t getCurrentCUDAStream() { return nullptr; }
}  // namespace at::cuda
namespace pybind11 {
struct bytearray {
  std::string text;
  bytearray(const char* bytes, size_t size) : text(bytes, size) {}
  template <typename T>
  T cast() const {
    return text;
  }
};
}  // namespace pybind11

#include "document_host.h"

int main(int, char** arguments) {
  const std::string name = arguments[1];
  if (name == "identifier") {
    host::init_with_uid(host::get_nvshmem_unique_id(), 0, 1);
    const bool joined = nvshmem_n_pes() == 1;
    nvshmem_finalize();
    return joined ? 0 : 1;
  }
  nvshmem_init();
  const int me = nvshmem_my_pe(), peer = me ^ 1;
  constexpr size_t kCount = 8192;
  std::vector<half> values(kCount, __float2half(static_cast<float>(me + 1)));
  void* data = nullptr;
  cudaMalloc(&data, kCount * sizeof(half));
  cudaMemcpy(data, values.data(), kCount * sizeof(half), cudaMemcpyHostToDevice);
  torch::Tensor tensor{data, kCount};
  if (name == "first") {
    first::exchange(tensor, 16, 64, peer);
  } else {
    second::exchange(tensor, 16, 64, peer);
  }
  cudaDeviceSynchronize();
  cudaMemcpy(values.data(), data, kCount * sizeof(half), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (const half value : values) wrong += __half2float(value) != static_cast<float>(peer + 1);
  nvshmem_finalize();
  return wrong == 0 ? 0 : 1;
}
