// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a host program calls: memory, streams, events, properties, launches.

#include "towpath_cuda_types.h"

#define cudaStreamLegacy (static_cast<cudaStream_t>(nullptr))
#define cudaStreamPerThread (static_cast<cudaStream_t>(nullptr))

namespace towpath_gpu {
inline int device = 0;
inline cudaError_t keep(int status) {
  const auto error = static_cast<cudaError_t>(status);
  if (error != cudaSuccess) last_error = status;
  return error;
}
}  // namespace towpath_gpu

#define TOWPATH_CALL(name, ...) \
  (towpath_gpu::table().name(towpath_gpu::table().self __VA_OPT__(, ) __VA_ARGS__))

static inline const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorCooperativeLaunchTooLarge: return "cudaErrorCooperativeLaunchTooLarge";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    default: return "cudaErrorUnknown";
  }
}
static inline const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
static inline cudaError_t cudaPeekAtLastError() {
  return static_cast<cudaError_t>(towpath_gpu::last_error);
}
static inline cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  towpath_gpu::last_error = cudaSuccess;
  return error;
}

// Each PE has one device; its number is taken as it is given.
static inline cudaError_t cudaSetDevice(int device) {
  if (device < 0) return towpath_gpu::keep(cudaErrorInvalidDevice);
  towpath_gpu::device = device;
  return cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int* device) {
  *device = towpath_gpu::device;
  return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = towpath_gpu::table().pes_per_node;
  return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  int integers[4];
  std::uint64_t sizes[3];
  *properties = {};
  TOWPATH_CALL(properties, integers, sizes, properties->name);
  properties->multiProcessorCount = integers[0];
  properties->maxThreadsPerMultiProcessor = integers[1];
  properties->maxBlocksPerMultiProcessor = integers[2];
  properties->maxThreadsPerBlock = integers[3];
  properties->totalGlobalMem = sizes[0];
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = sizes[1];
  properties->sharedMemPerMultiprocessor = sizes[2];
  properties->warpSize = warpSize;
  properties->major = 9;
  properties->cooperativeLaunch = properties->unifiedAddressing = properties->managedMemory = 1;
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] = i < 2 ? towpath_gpu::kThreadsPerBlockMax : 64;
    properties->maxGridSize[i] = i == 0 ? 2147483647 : 65535;
  }
  return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = properties.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(properties.sharedMemPerBlock);
      break;
    case cudaDevAttrWarpSize: *value = warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = properties.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *value = properties.maxBlocksPerMultiProcessor;
      break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    default: return towpath_gpu::keep(cudaErrorNotSupported);
  }
  return cudaSuccess;
}
static inline cudaError_t cudaDeviceSynchronize() {
  return towpath_gpu::keep(TOWPATH_CALL(synchronize, nullptr, true));
}
static inline cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }
static inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
static inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
static inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
static inline cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
}

// --- memory -----------------------------------------------------------------------------------
template <typename T>
cudaError_t cudaMalloc(T** address, size_t size, TOWPATH_SITE) {
  TOWPATH_SITE_OF("cudaMalloc");
  *address = static_cast<T*>(
      TOWPATH_CALL(device_malloc, size, towpath_gpu::MemoryKind::device, &towpath_site));
  return towpath_gpu::keep(*address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
template <typename T>
cudaError_t cudaMallocAsync(T** address, size_t size, cudaStream_t, TOWPATH_SITE) {
  return cudaMalloc(address, size, TOWPATH_SITE_ARGUMENTS);
}
template <typename T>
cudaError_t cudaMallocManaged(T** address, size_t size, unsigned = cudaMemAttachGlobal,
                              TOWPATH_SITE) {
  TOWPATH_SITE_OF("cudaMallocManaged");
  *address = static_cast<T*>(
      TOWPATH_CALL(device_malloc, size, towpath_gpu::MemoryKind::managed, &towpath_site));
  return towpath_gpu::keep(*address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
template <typename T>
cudaError_t cudaMallocHost(T** address, size_t size, unsigned = 0, TOWPATH_SITE) {
  TOWPATH_SITE_OF("cudaMallocHost");
  *address = static_cast<T*>(malloc(size));
  if (*address != nullptr) {
    TOWPATH_CALL(lend, *address, size, towpath_gpu::MemoryKind::pinned, &towpath_site);
  }
  return towpath_gpu::keep(*address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
template <typename T>
cudaError_t cudaHostAlloc(T** address, size_t size, unsigned, TOWPATH_SITE) {
  return cudaMallocHost(address, size, 0, TOWPATH_SITE_ARGUMENTS);
}
static inline cudaError_t cudaFree(void* address, TOWPATH_SITE) {
  TOWPATH_SITE_OF("cudaFree");
  if (address == nullptr) return cudaSuccess;
  return towpath_gpu::keep(TOWPATH_CALL(device_free, address, &towpath_site));
}
static inline cudaError_t cudaFreeAsync(void* address, cudaStream_t stream, TOWPATH_SITE) {
  TOWPATH_CALL(synchronize, stream, false);
  return cudaFree(address, TOWPATH_SITE_ARGUMENTS);
}
static inline cudaError_t cudaFreeHost(void* address, TOWPATH_SITE) {
  TOWPATH_SITE_OF("cudaFreeHost");
  if (address != nullptr) TOWPATH_CALL(take_back, address, &towpath_site);
  free(address);
  return cudaSuccess;
}
static inline cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  *free_bytes = *total_bytes = properties.totalGlobalMem;
  return cudaSuccess;
}

namespace towpath_gpu {
inline cudaError_t copy(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                        cudaStream_t stream, bool is_asynchronous, const Site& site) {
  const CopyKind kinds[] = {CopyKind::on_host, CopyKind::to_device, CopyKind::to_host,
                            CopyKind::on_device, CopyKind::on_device};
  return keep(
      table().copy(table().self, to, from, size, kinds[kind], 0, stream, is_asynchronous, &site));
}
}  // namespace towpath_gpu

static inline cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                                     TOWPATH_SITE) {
  TOWPATH_SITE_OF("cudaMemcpy");
  return towpath_gpu::copy(to, from, size, kind, nullptr, false, towpath_site);
}
static inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size,
                                          cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                                          TOWPATH_SITE) {
  TOWPATH_SITE_OF("cudaMemcpyAsync");
  return towpath_gpu::copy(to, from, size, kind, stream, true, towpath_site);
}
static inline cudaError_t cudaMemset(void* address, int value, size_t size, TOWPATH_SITE) {
  TOWPATH_SITE_OF("cudaMemset");
  return towpath_gpu::keep(TOWPATH_CALL(copy, address, nullptr, size, towpath_gpu::CopyKind::fill,
                                        value, nullptr, false, &towpath_site));
}
static inline cudaError_t cudaMemsetAsync(void* address, int value, size_t size,
                                          cudaStream_t stream = nullptr, TOWPATH_SITE) {
  TOWPATH_SITE_OF("cudaMemsetAsync");
  return towpath_gpu::keep(TOWPATH_CALL(copy, address, nullptr, size, towpath_gpu::CopyKind::fill,
                                        value, stream, true, &towpath_site));
}
template <typename T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t size, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice, TOWPATH_SITE) {
  return cudaMemcpy(reinterpret_cast<char*>(&symbol) + offset, from, size, cudaMemcpyHostToHost,
                    TOWPATH_SITE_ARGUMENTS);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t size, size_t offset = 0,
                                 cudaMemcpyKind = cudaMemcpyDeviceToHost, TOWPATH_SITE) {
  return cudaMemcpy(to, reinterpret_cast<const char*>(&symbol) + offset, size, cudaMemcpyHostToHost,
                    TOWPATH_SITE_ARGUMENTS);
}
template <typename T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  *address = const_cast<void*>(static_cast<const void*>(&symbol));
  return cudaSuccess;
}

// --- streams and events -----------------------------------------------------------------------
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream =
      static_cast<cudaStream_t>(TOWPATH_CALL(new_stream, (flags & cudaStreamNonBlocking) == 0));
  return cudaSuccess;
}
static inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
static inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  TOWPATH_CALL(free_stream, stream);
  return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return towpath_gpu::keep(TOWPATH_CALL(synchronize, stream, false));
}
static inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return TOWPATH_CALL(is_idle, stream) ? cudaSuccess : cudaErrorNotReady;
}
static inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = static_cast<cudaEvent_t>(TOWPATH_CALL(new_event));
  return cudaSuccess;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  TOWPATH_CALL(free_event, event);
  return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  TOWPATH_CALL(record, event, stream);
  return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  TOWPATH_CALL(synchronize_event, event);
  return cudaSuccess;
}
static inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  return TOWPATH_CALL(has_happened, event) ? cudaSuccess : cudaErrorNotReady;
}
static inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from,
                                               cudaEvent_t to) {
  const double elapsed = TOWPATH_CALL(elapsed_ms, from, to);
  if (elapsed < 0) return towpath_gpu::keep(cudaErrorNotReady);
  *milliseconds = static_cast<float>(elapsed);
  return cudaSuccess;
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                              unsigned = 0) {
  TOWPATH_CALL(wait_event, stream, event);
  return cudaSuccess;
}
typedef void (*cudaHostFn_t)(void* argument);
static inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                             void* argument) {
  TOWPATH_CALL(call_on_stream, stream, function, argument);
  return cudaSuccess;
}

// --- launches ---------------------------------------------------------------------------------
template <typename Function>
cudaError_t cudaLaunchKernel(Function* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared = 0, cudaStream_t stream = nullptr) {
  const towpath_gpu::LaunchConfiguration configuration(grid, block, shared, stream);
  return towpath_gpu::keep(TOWPATH_CALL(launch_by_address, reinterpret_cast<const void*>(function),
                                        &configuration, arguments, false));
}
template <typename Function>
cudaError_t cudaLaunchCooperativeKernel(Function* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared = 0, cudaStream_t stream = nullptr) {
  const towpath_gpu::LaunchConfiguration configuration(grid, block, shared, stream);
  return towpath_gpu::keep(TOWPATH_CALL(launch_by_address, reinterpret_cast<const void*>(function),
                                        &configuration, arguments, true));
}
template <typename Function>
cudaError_t cudaFuncSetAttribute(Function*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
template <typename Function>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function*, int threads,
                                                          size_t shared) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  *blocks = TOWPATH_CALL(resident_blocks, static_cast<unsigned>(threads), shared) /
            properties.multiProcessorCount;
  return cudaSuccess;
}
