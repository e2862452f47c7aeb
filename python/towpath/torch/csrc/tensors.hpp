// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "group_api.h"

// What every method of the backend asks of its tensors.

namespace towpath_torch {

// Most calls have one span, or one per rank of a small group: those cost no allocation.
using Spans = c10::SmallVector<towpath_span, 4>;

inline towpath_span span_of(const at::Tensor& tensor) {
  return {tensor.data_ptr(), static_cast<uint64_t>(tensor.nbytes())};
}

inline void check_tensor(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.defined(), "towpath needs a tensor, but got an undefined one");
  TORCH_CHECK(tensor.device().is_cpu(), "towpath moves CPU tensors, but got one on ",
              tensor.device());
  TORCH_CHECK(tensor.layout() == at::kStrided,
              "towpath moves dense tensors, but got one of layout ", tensor.layout());
}

// Whether the tensor's elements are those of its memory, in their order: no view that is conjugated
// or negated when it is read.
inline bool is_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

inline const at::Tensor& only(const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == 1, "towpath takes one tensor per call, but got ", tensors.size());
  return tensors.front();
}

inline void check_like(const at::Tensor& tensor, const at::Tensor& other) {
  TORCH_CHECK(tensor.scalar_type() == other.scalar_type(), "tensors of a call have one type, but ",
              tensor.scalar_type(), " and ", other.scalar_type(), " were given");
}

inline uint64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), uint64_t{0},
                         [](uint64_t sum, const at::Tensor& each) { return sum + each.nbytes(); });
}

}  // namespace towpath_torch
