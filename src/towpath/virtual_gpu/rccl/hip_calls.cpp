// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// HIP's calls that CUDA does not have.

#include <cstdio>
#include <cstring>

#include "hip/hip_bfloat16.h"
#include "hip/hip_runtime_api.h"
#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/system.hpp"

#undef cudaDeviceProp
#undef cudaGetDeviceProperties

using namespace towpath::virtual_gpu;

hip_bfloat16::hip_bfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  data = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

extern "C" {

// An AMD GPU is described with its architecture as its name.
hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  cudaDeviceProp own;
  if (const cudaError_t error = cudaGetDeviceProperties(&own, device)) return error;
  *properties = {};
  static_cast<cudaDeviceProp&>(*properties) = own;
  properties->warpSize = warpSize;
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "%s", own.name);
  return cudaSuccess;
}
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  if (!has_device(device)) return keep(cudaErrorInvalidDevice);
  switch (attribute) {
    case hipDeviceAttributeWarpSize: *value = warpSize; return cudaSuccess;
    case hipDeviceAttributeDirectManagedMemAccessFromHost: *value = 0; return cudaSuccess;
    // The value is the address of a register, which no program on this host stores to.
    case hipDeviceAttributeHdpMemFlushCntl:
      std::memset(value, 0, sizeof(void*));
      return cudaSuccess;
  }
  stop_at_unknown("hipDeviceGetAttribute");
}
hipError_t hipPointerGetAttribute(void* value, hipPointer_attribute attribute, void*) {
  if (attribute != HIP_POINTER_ATTRIBUTE_IS_MANAGED) stop_at_unknown("hipPointerGetAttribute");
  *static_cast<bool*>(value) = false;
  return cudaSuccess;
}
hipError_t hipExtMallocWithFlags(void** address, std::size_t size, unsigned) {
  return cudaMalloc(address, size);
}
hipError_t hipExtLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                              std::size_t shared_bytes, hipStream_t stream, hipEvent_t begin,
                              hipEvent_t end, int) {
  if (begin != nullptr) cudaEventRecord(begin, stream);
  const cudaError_t error =
      cudaLaunchKernel(function, grid, block, arguments, shared_bytes, stream);
  if (error == cudaSuccess && end != nullptr) cudaEventRecord(end, stream);
  return error;
}

}  // extern "C"
