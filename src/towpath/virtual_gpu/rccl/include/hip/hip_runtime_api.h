// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// HIP for RCCL's host part on virtual GPUs. RCCL's source has CUDA's names, which its build replaces
// by HIP's. Here they stay, and the names of HIP that the source also has are CUDA's.

#include <array>
#include <string>

#include "cuda.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

static const int warpSize = 64;  // lanes of a wavefront

#define HIP_VERSION_MAJOR 6
#define HIP_VERSION_MINOR 2
#define HIP_VERSION_PATCH 0
#define HIP_VERSION_GITHASH "towpath"

typedef cudaError_t hipError_t;
typedef cudaStream_t hipStream_t;
typedef cudaEvent_t hipEvent_t;
typedef cudaGraph_t hipGraph_t;
typedef cudaGraphNode_t hipGraphNode_t;
typedef cudaHostNodeParams hipHostNodeParams;
typedef cudaFuncAttributes hipFuncAttributes;
typedef cudaStreamCaptureStatus hipStreamCaptureStatus;
typedef cudaIpcMemHandle_t hipIpcMemHandle_t;

#define hipSuccess cudaSuccess
#define hipEventDisableTiming cudaEventDisableTiming
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipStreamCaptureStatusActive cudaStreamCaptureStatusActive
#define hipStreamNonBlocking cudaStreamNonBlocking

#define hipDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define hipDeviceGetByPCIBusId cudaDeviceGetByPCIBusId
#define hipEventCreateWithFlags cudaEventCreateWithFlags
#define hipEventDestroy cudaEventDestroy
#define hipFree cudaFree
#define hipFuncGetAttributes cudaFuncGetAttributes
#define hipGetDevice cudaGetDevice
#define hipGraphAddHostNode cudaGraphAddHostNode
#define hipHostFree cudaFreeHost
#define hipHostMalloc cudaHostAlloc
#define hipMemcpy cudaMemcpy
#define hipMemsetAsync cudaMemsetAsync
#define hipSetDevice cudaSetDevice
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamGetCaptureInfo_v2 cudaStreamGetCaptureInfo_v2
#define hipStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies
#define hipStreamWaitEvent cudaStreamWaitEvent

enum { hipDeviceMallocDefault = 0, hipDeviceMallocFinegrained = 1, hipDeviceMallocUncached = 3 };
enum hipDeviceAttribute_t {
  hipDeviceAttributeDirectManagedMemAccessFromHost = 9,
  hipDeviceAttributeWarpSize = 87,
  hipDeviceAttributeHdpMemFlushCntl = 10004,
};
enum hipPointer_attribute { HIP_POINTER_ATTRIBUTE_IS_MANAGED = 8 };

struct hipDeviceArch_t {
  unsigned bits;
};
struct hipDeviceProp_t : cudaDeviceProp {
  char gcnArchName[256];  // "gfx942"
  hipDeviceArch_t arch;
};
#define cudaDeviceProp hipDeviceProp_t
#define cudaGetDeviceProperties hipGetDeviceProperties

extern "C" {
hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device);
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device);
hipError_t hipPointerGetAttribute(void* value, hipPointer_attribute attribute, void* address);
hipError_t hipExtMallocWithFlags(void** address, size_t size, unsigned flags);
hipError_t hipExtLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                              size_t shared_bytes, hipStream_t stream, hipEvent_t begin,
                              hipEvent_t end, int flags);
}

// Device code in RCCL's headers names these and does not run.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
int __all(int predicate);
int __any(int predicate);
int __popcll(unsigned long long bits);
unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift);
unsigned long long __ballot(int predicate);
void __syncthreads();
#define __builtin_nontemporal_load(address) (*(address))
#define __builtin_nontemporal_store(value, address) (*(address) = (value))

// RCCL takes the absence of a version as HIP, and then declares these itself.
#undef CUDART_VERSION
#undef CUDA_VERSION
#define cudaLaunchParams rcclLaunchParams
#define CUmemFabricHandle_st rcclMemFabricHandle_st
#define CUmemFabricHandle_v1 rcclMemFabricHandle_v1
#define CUmemFabricHandle rcclMemFabricHandle
