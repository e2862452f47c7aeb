// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// CUDA's driver: devices, contexts, pointers and launches.

#include <cstring>
#include <string>

#include "cuda.h"
#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/system.hpp"

using namespace towpath::virtual_gpu;

namespace {

// A context is its device: the number, and one more so that it is never null.
CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1);
}

// The arguments as pointers to them, or all of them in a buffer.
CUresult launch(CUfunction function, const cudaLaunchConfig_t& configuration, void** arguments,
                void** extra) {
  Launch made{current_device(),
              function,
              configuration.gridDim,
              configuration.blockDim,
              configuration.dynamicSmemBytes,
              arguments,
              nullptr,
              configuration.stream};
  for (; arguments == nullptr && extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) made.argument_buffer = extra[1];
  }
  return towpath::virtual_gpu::system().launch(made);
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return cudaDriverGetVersion(version); }
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorName(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) { return cuGetErrorString(error, name); }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!has_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = device_attribute(attribute, device);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const auto bus = bus_number(towpath::virtual_gpu::system()
                                  .machine()
                                  .devices()[static_cast<std::size_t>(device)]
                                  .bus_id)
                       .value();
  *uuid = {};
  std::memcpy(uuid->bytes, &bus, sizeof bus);
  return CUDA_SUCCESS;
}
CUresult cuCtxCreate(CUcontext*, unsigned, CUdevice) { stop_at_unknown("cuCtxCreate"); }
CUresult cuCtxDestroy(CUcontext) { stop_at_unknown("cuCtxDestroy"); }
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = context_of(current_device());
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  const auto device = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1;
  if (!has_device(device)) return CUDA_ERROR_INVALID_VALUE;
  current_device() = device;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = current_device();
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto found = towpath::virtual_gpu::system().memory().find(address);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<CUmemorytype*>(value) =
          found->kind == MemoryKind::pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = found->device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<int*>(value) = found->kind == MemoryKind::device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(value) = found->address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(value) = found->size_bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: {
      const auto block = towpath::virtual_gpu::system().memory().block(found->handle);
      *static_cast<unsigned long long*>(value) = block ? block->handle_types : 0;
      return CUDA_SUCCESS;
    }
    default:
      stop_at_unknown(
          ("cuPointerGetAttribute with attribute " + std::to_string(attribute)).c_str());
  }
}
CUresult cuPointerSetAttribute(const void*, CUpointer_attribute attribute, CUdeviceptr) {
  // Copies are done at once, so that they are in order as it is.
  if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_SUCCESS;
  stop_at_unknown(("cuPointerSetAttribute with attribute " + std::to_string(attribute)).c_str());
}
CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* size, CUdeviceptr address) {
  const auto found = towpath::virtual_gpu::system().memory().find(address);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  if (base != nullptr) *base = found->address;
  if (size != nullptr) *size = found->size_bytes;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** arguments, void** extra) {
  return launch(function,
                {.gridDim = {grid_x, grid_y, grid_z},
                 .blockDim = {block_x, block_y, block_z},
                 .dynamicSmemBytes = shared_bytes,
                 .stream = stream,
                 .attrs = nullptr,
                 .numAttrs = 0},
                arguments, extra);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  return launch(function,
                {.gridDim = {config->gridDimX, config->gridDimY, config->gridDimZ},
                 .blockDim = {config->blockDimX, config->blockDimY, config->blockDimZ},
                 .dynamicSmemBytes = config->sharedMemBytes,
                 .stream = config->hStream,
                 .attrs = nullptr,
                 .numAttrs = 0},
                arguments, extra);
}

CUresult cuStreamBatchMemOp(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned) {
  stop_at_unknown("cuStreamBatchMemOp");
}
CUresult cuStreamWaitValue32(CUstream, CUdeviceptr, std::uint32_t, unsigned) {
  stop_at_unknown("cuStreamWaitValue32");
}
CUresult cuStreamWaitValue64(CUstream, CUdeviceptr, std::uint64_t, unsigned) {
  stop_at_unknown("cuStreamWaitValue64");
}
CUresult cuStreamWriteValue32(CUstream, CUdeviceptr address, std::uint32_t value, unsigned) {
  *reinterpret_cast<volatile std::uint32_t*>(address) = value;
  return CUDA_SUCCESS;
}
CUresult cuStreamWriteValue64(CUstream, CUdeviceptr address, std::uint64_t value, unsigned) {
  *reinterpret_cast<volatile std::uint64_t*>(address) = value;
  return CUDA_SUCCESS;
}

}  // extern "C"
