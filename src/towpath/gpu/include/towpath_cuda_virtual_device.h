// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions for kernels on virtual GPUs. Host and device code are compiled at once, as device code of
// compute capability 9.0.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>

#include "towpath_gpu_launch.h"

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define TOWPATH_GPU 1

static constexpr int warpSize = towpath_gpu::kWarpThreads;
#define threadIdx (towpath_gpu_current.thread)
#define blockIdx (towpath_gpu_current.block)
#define blockDim (towpath_gpu_current.block_dim)
#define gridDim (towpath_gpu_current.grid_dim)

#ifndef __clang__
#define __builtin_assume(condition)
#endif

#define TOWPATH_CALL(name, ...) \
  (towpath_gpu::table().name(towpath_gpu::table().self __VA_OPT__(, ) __VA_ARGS__))

#include "towpath_cuda_device.h"
#include "towpath_cuda_bits.h"
