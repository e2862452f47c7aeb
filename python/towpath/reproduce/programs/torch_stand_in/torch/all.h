// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

// The members of tensors that the exchange of document 003 uses.
namespace torch {
struct Tensor {
  void* data = nullptr;
  std::size_t count = 0;
  std::size_t numel() const { return count; }
  void* data_ptr() const { return data; }
};
}  // namespace torch
namespace at::cuda {
inline cudaStream_t getCurrentCUDAStream() { return nullptr; }
}  // namespace at::cuda
