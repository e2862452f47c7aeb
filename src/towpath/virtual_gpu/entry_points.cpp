// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The functions of CUDA's driver by their names.

#include <cstring>

#include "cuda.h"
#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/system.hpp"

namespace {

struct EntryPoint {
  const char* name;
  void* function;
};

#define TOWPATH_ENTRY(name) \
  EntryPoint { #name, reinterpret_cast<void*>(&(name)) }
const EntryPoint kEntryPoints[] = {
    TOWPATH_ENTRY(cuCtxDestroy),
    TOWPATH_ENTRY(cuCtxGetCurrent),
    TOWPATH_ENTRY(cuCtxGetDevice),
    TOWPATH_ENTRY(cuCtxSetCurrent),
    TOWPATH_ENTRY(cuDeviceGet),
    TOWPATH_ENTRY(cuDeviceGetAttribute),
    TOWPATH_ENTRY(cuDeviceGetUuid),
    TOWPATH_ENTRY(cuDriverGetVersion),
    TOWPATH_ENTRY(cuGetErrorName),
    TOWPATH_ENTRY(cuGetErrorString),
    TOWPATH_ENTRY(cuInit),
    TOWPATH_ENTRY(cuLaunchKernel),
    TOWPATH_ENTRY(cuLaunchKernelEx),
    TOWPATH_ENTRY(cuMemAddressFree),
    TOWPATH_ENTRY(cuMemAddressReserve),
    TOWPATH_ENTRY(cuMemCreate),
    TOWPATH_ENTRY(cuMemExportToShareableHandle),
    TOWPATH_ENTRY(cuMemGetAddressRange),
    TOWPATH_ENTRY(cuMemGetAllocationGranularity),
    TOWPATH_ENTRY(cuMemGetAllocationPropertiesFromHandle),
    TOWPATH_ENTRY(cuMemGetHandleForAddressRange),
    TOWPATH_ENTRY(cuMemImportFromShareableHandle),
    TOWPATH_ENTRY(cuMemMap),
    TOWPATH_ENTRY(cuMemRelease),
    TOWPATH_ENTRY(cuMemRetainAllocationHandle),
    TOWPATH_ENTRY(cuMemSetAccess),
    TOWPATH_ENTRY(cuMemUnmap),
    TOWPATH_ENTRY(cuMulticastAddDevice),
    TOWPATH_ENTRY(cuMulticastBindAddr),
    TOWPATH_ENTRY(cuMulticastBindMem),
    TOWPATH_ENTRY(cuMulticastCreate),
    TOWPATH_ENTRY(cuMulticastGetGranularity),
    TOWPATH_ENTRY(cuMulticastUnbind),
    TOWPATH_ENTRY(cuPointerGetAttribute),
    TOWPATH_ENTRY(cuStreamBatchMemOp),
    TOWPATH_ENTRY(cuStreamWaitValue32),
    TOWPATH_ENTRY(cuStreamWaitValue64),
    TOWPATH_ENTRY(cuStreamWriteValue32),
    TOWPATH_ENTRY(cuStreamWriteValue64),
};
#undef TOWPATH_ENTRY

// Two versions of this function have different arguments, and the caller's is not known.
CUresult refused_context() { towpath::virtual_gpu::stop_at_unknown("cuCtxCreate"); }

void* function_of(const char* name) {
  if (std::strcmp(name, "cuCtxCreate") == 0) return reinterpret_cast<void*>(&refused_context);
  if (std::strcmp(name, "cuGetProcAddress") == 0) {
    return reinterpret_cast<void*>(&cuGetProcAddress);
  }
  for (const EntryPoint& entry : kEntryPoints) {
    if (std::strcmp(name, entry.name) == 0) return entry.function;
  }
  // A driver without the function would change the decisions of the program.
  towpath::virtual_gpu::stop_at_unknown(name);
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  *function = function_of(symbol);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPoint(symbol, function, flags, result);
}
CUresult cuGetProcAddress(const char* symbol, void** function, int, unsigned long long) {
  *function = function_of(symbol);
  return CUDA_SUCCESS;
}

}  // extern "C"
