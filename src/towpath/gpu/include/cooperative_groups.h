// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda_runtime.h"

// The part of cooperative groups that kernels of communication use: the grid, the block, tiles of a
// warp of a size that the compiler knows.

namespace cooperative_groups {

class thread_block {
 public:
  void sync(TOWPATH_SITE) const { __syncthreads(TOWPATH_SITE_ARGUMENTS); }
  unsigned thread_rank() const { return towpath_gpu::current().linear; }
  unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  unsigned num_threads() const { return size(); }
  dim3 group_index() const { return blockIdx; }
  dim3 thread_index() const { return threadIdx; }
  dim3 group_dim() const { return blockDim; }
};
static inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  void sync(TOWPATH_SITE) const {
    TOWPATH_SITE_OF("grid.sync");
    TOWPATH_CALL(sync_grid, &towpath_site);
  }
  bool is_valid() const { return true; }
  unsigned block_rank() const {
    return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  }
  unsigned num_blocks() const { return gridDim.x * gridDim.y * gridDim.z; }
  unsigned long long thread_rank() const {
    const thread_block block;
    return static_cast<unsigned long long>(block_rank()) * block.size() + block.thread_rank();
  }
  unsigned long long size() const {
    return static_cast<unsigned long long>(num_blocks()) * thread_block().size();
  }
  unsigned long long num_threads() const { return size(); }
};
static inline grid_group this_grid() { return {}; }

template <unsigned Size, typename Parent = thread_block>
class thread_block_tile {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

 public:
  unsigned thread_rank() const { return towpath_gpu::current().linear % Size; }
  unsigned meta_group_rank() const { return towpath_gpu::current().linear / Size; }
  unsigned meta_group_size() const { return (thread_block().size() + Size - 1) / Size; }
  constexpr unsigned size() const { return Size; }
  constexpr unsigned num_threads() const { return Size; }
  void sync(TOWPATH_SITE) const { __syncwarp(mask(), TOWPATH_SITE_ARGUMENTS); }
  template <typename T>
  T shfl(T value, int rank, TOWPATH_SITE) const {
    return __shfl_sync(mask(), value, rank, Size, TOWPATH_SITE_ARGUMENTS);
  }
  template <typename T>
  T shfl_up(T value, unsigned delta, TOWPATH_SITE) const {
    return __shfl_up_sync(mask(), value, delta, Size, TOWPATH_SITE_ARGUMENTS);
  }
  template <typename T>
  T shfl_down(T value, unsigned delta, TOWPATH_SITE) const {
    return __shfl_down_sync(mask(), value, delta, Size, TOWPATH_SITE_ARGUMENTS);
  }
  template <typename T>
  T shfl_xor(T value, unsigned lanes, TOWPATH_SITE) const {
    return __shfl_xor_sync(mask(), value, static_cast<int>(lanes), Size, TOWPATH_SITE_ARGUMENTS);
  }
  int any(int predicate, TOWPATH_SITE) const {
    return __any_sync(mask(), predicate, TOWPATH_SITE_ARGUMENTS);
  }
  int all(int predicate, TOWPATH_SITE) const {
    return __all_sync(mask(), predicate, TOWPATH_SITE_ARGUMENTS);
  }
  unsigned ballot(int predicate, TOWPATH_SITE) const {
    return __ballot_sync(mask(), predicate, TOWPATH_SITE_ARGUMENTS) >> shift();
  }

 private:
  static unsigned shift() { return towpath_gpu::current().linear % 32 / Size * Size; }
  static unsigned mask() { return (Size == 32 ? ~0u : (1u << Size % 32) - 1) << shift(); }
};
template <unsigned Size, typename Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

template <typename Group>
void sync(const Group& group, TOWPATH_SITE) {
  group.sync(TOWPATH_SITE_ARGUMENTS);
}

template <typename T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <typename T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <unsigned Size, typename Parent, typename T, typename Operation>
T reduce(const thread_block_tile<Size, Parent>& tile, T value, Operation operation, TOWPATH_SITE) {
  for (unsigned lanes = Size / 2; lanes > 0; lanes /= 2) {
    value = operation(value, tile.shfl_xor(value, lanes, TOWPATH_SITE_ARGUMENTS));
  }
  return value;
}

}  // namespace cooperative_groups
