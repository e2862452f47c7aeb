// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime: devices, versions, errors and the properties of functions.

#include <cstdio>
#include <cstring>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/streams.hpp"
#include "towpath/virtual_gpu/system.hpp"

using namespace towpath::virtual_gpu;

namespace {

constexpr int kRegistersPerThread = 96;  // the limit that NCCL compiles its kernels with

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorPeerAccessAlreadyEnabled: return "cudaErrorPeerAccessAlreadyEnabled";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    default: return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error();
  last_error() = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error(); }

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = towpath::virtual_gpu::system().machine().driver_version();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(towpath::virtual_gpu::system().machine().devices().size());
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (!has_device(device)) return keep(cudaErrorInvalidDevice);
  current_device() = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!has_device(device)) return keep(cudaErrorInvalidDevice);
  *value = device_attribute(attribute, device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int length, int device) {
  if (!has_device(device)) return keep(cudaErrorInvalidDevice);
  const std::string& own =
      towpath::virtual_gpu::system().machine().devices()[static_cast<std::size_t>(device)].bus_id;
  if (length <= static_cast<int>(own.size())) return keep(cudaErrorInvalidValue);
  std::memcpy(bus_id, own.c_str(), own.size() + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* bus_id) {
  const auto found = towpath::virtual_gpu::system().machine().device_at(bus_id);
  if (!found) return keep(cudaErrorInvalidDevice);
  *device = *found;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  if (!has_device(number)) return keep(cudaErrorInvalidDevice);
  const Device& device =
      towpath::virtual_gpu::system().machine().devices()[static_cast<std::size_t>(number)];
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "%s", device.name.c_str());
  properties->totalGlobalMem = device.memory_bytes;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = device.shared_bytes;
  properties->sharedMemPerMultiprocessor = device.shared_bytes + 1024;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->major = device.major;
  properties->minor = device.minor;
  properties->multiProcessorCount = device.multiprocessors;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->cooperativeLaunch = properties->unifiedAddressing = properties->managedMemory = 1;
  const auto bus = bus_number(device.bus_id).value();
  properties->pciDomainID = static_cast<int>(bus >> 20);
  properties->pciBusID = static_cast<int>(bus >> 12 & 0xff);
  properties->pciDeviceID = static_cast<int>(bus >> 4 & 0xff);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!has_device(device) || !has_device(peer)) return keep(cudaErrorInvalidDevice);
  *can = towpath::virtual_gpu::system().machine().can_access(device, peer);
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (!has_device(peer) ||
      !towpath::virtual_gpu::system().machine().can_access(current_device(), peer)) {
    return keep(cudaErrorInvalidDevice);
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  streams().synchronize_device(current_device());
  return cudaSuccess;
}
cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }
cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) { return cudaSuccess; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (function == nullptr) return keep(cudaErrorInvalidValue);
  const Device& device = towpath::virtual_gpu::system()
                             .machine()
                             .devices()[static_cast<std::size_t>(current_device())];
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = kRegistersPerThread;
  attributes->ptxVersion = attributes->binaryVersion = 10 * device.major + device.minor;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int) {
  return function == nullptr ? keep(cudaErrorInvalidValue) : cudaSuccess;
}
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  if (symbol == nullptr) return keep(cudaErrorInvalidSymbol);
  *function = static_cast<cudaFunction_t>(const_cast<void*>(symbol));
  return cudaSuccess;
}

}  // extern "C"
