// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <utility>

#include "group_api.h"

// How elements of a torch type are combined by a reduction of torch: with the library's vectorised
// functions where it has the type, otherwise element by element.

namespace towpath_torch {

struct Combination {
  void (*combine)(void* context, void* result, const void* a, const void* b, uint64_t size_bytes);
  void (*finish)(void* context, void* data, uint64_t size_bytes) = nullptr;
  // What the functions need; they get a pointer to this.
  const towpath_group_api* api = nullptr;
  int type = 0;
  int operation = 0;
  int64_t ranks = 1;
};

// Those of a group, made once each: their addresses stay as long as this.
class Combinations {
 public:
  Combinations(const towpath_group_api& api, int64_t ranks) : api_(api), ranks_(ranks) {}
  // Throws c10::Error in one sentence where torch does not define the reduction for the type.
  Combination& of(at::ScalarType type, c10d::ReduceOp::RedOpType operation);

 private:
  const towpath_group_api& api_;
  int64_t ranks_;
  std::mutex mutex_;
  std::map<std::pair<at::ScalarType, c10d::ReduceOp::RedOpType>, Combination> made_;
};

}  // namespace towpath_torch
