// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// CUDA's runtime by its names, for kernels that run on this host. `__global__`, `__shared__` and
// `__noinline__` are left as they are: the source step reads them.

#ifdef TOWPATH_VIRTUAL_GPU
#include "towpath_cuda_virtual.h"
#ifdef TOWPATH_DEVICE_CODE
#include "towpath_cuda_virtual_device.h"
#endif
#else

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>

#include "towpath_gpu_launch.h"
#include "towpath_vector_types.h"

#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
#define TOWPATH_GPU 1

#define __device__
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __inline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(size) __attribute__((aligned(size)))

static constexpr int warpSize = towpath_gpu::kWarpThreads;
static constexpr const uint3& threadIdx = towpath_gpu_current.thread;
static constexpr const uint3& blockIdx = towpath_gpu_current.block;
static constexpr const uint3& blockDim = towpath_gpu_current.block_dim;
static constexpr const uint3& gridDim = towpath_gpu_current.grid_dim;

#include "towpath_cuda_host.h"
#include "towpath_cuda_device.h"
#include "towpath_cuda_bits.h"
#endif
