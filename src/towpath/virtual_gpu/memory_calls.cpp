// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime: memory.

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/streams.hpp"
#include "towpath/virtual_gpu/system.hpp"

using namespace towpath::virtual_gpu;

namespace {

Memory& memory() { return towpath::virtual_gpu::system().memory(); }

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

cudaError_t allocate(void** address, std::size_t size, MemoryKind kind) {
  if (address == nullptr) return keep(cudaErrorInvalidValue);
  const auto begin = memory().allocate(size, kind, current_device());
  if (!begin) return keep(cudaErrorMemoryAllocation);
  *address = reinterpret_cast<void*>(*begin);
  return cudaSuccess;
}

void set(void* address, int value, std::size_t size) {
  if (value == 0) {
    memory().clear(number(address), size);
  } else {
    std::memset(address, value, size);
  }
}

// Memory that the program may change or read as soon as the call has returned.
bool is_pageable(const void* address) { return !memory().find(number(address)); }

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t size) {
  return allocate(address, size, MemoryKind::device);
}
cudaError_t cudaMallocHost(void** address, std::size_t size) {
  return allocate(address, size, MemoryKind::pinned);
}
cudaError_t cudaMallocManaged(void** address, std::size_t size, unsigned) {
  return allocate(address, size, MemoryKind::device);
}
cudaError_t cudaMallocAsync(void** address, std::size_t size, cudaStream_t) {
  return allocate(address, size, MemoryKind::device);
}
cudaError_t cudaMallocFromPoolAsync(void** address, std::size_t size, cudaMemPool_t, cudaStream_t) {
  return allocate(address, size, MemoryKind::device);
}
cudaError_t cudaHostAlloc(void** address, std::size_t size, unsigned) {
  return allocate(address, size, MemoryKind::pinned);
}
cudaError_t cudaFree(void* address) {
  const auto found = memory().find(number(address));
  streams().synchronize_device(found ? found->device : current_device());
  if (address == nullptr || memory().free(number(address))) return cudaSuccess;
  return keep(cudaErrorInvalidValue);
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  streams().add(stream, current_device(), {.task = [=] { memory().free(number(address)); }});
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* address) { return cudaFree(address); }
cudaError_t cudaHostRegister(void* address, std::size_t size, unsigned) {
  return memory().lend(number(address), size) ? cudaSuccess : keep(cudaErrorInvalidValue);
}
cudaError_t cudaHostUnregister(void* address) {
  return memory().take_back(number(address)) ? cudaSuccess : keep(cudaErrorInvalidValue);
}
cudaError_t cudaHostGetDevicePointer(void** device_address, void* address, unsigned) {
  if (!memory().find(number(address))) return keep(cudaErrorInvalidValue);
  *device_address = address;
  return cudaSuccess;
}

cudaError_t cudaMemset(void* address, int value, std::size_t size) {
  cudaMemsetAsync(address, value, size, nullptr);
  return streams().synchronize(nullptr);
}
cudaError_t cudaMemsetAsync(void* address, int value, std::size_t size, cudaStream_t stream) {
  streams().add(stream, current_device(), {.task = [=] { set(address, value, size); }});
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind) {
  streams().add(nullptr, current_device(), {.task = [=] { std::memmove(to, from, size); }});
  return streams().synchronize(nullptr);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (is_pageable(from)) {
    const auto* const bytes = static_cast<const std::byte*>(from);
    auto kept = std::make_shared<std::vector<std::byte>>(bytes, bytes + size);
    streams().add(stream, current_device(),
                  {.task = [=] { std::memmove(to, kept->data(), size); }});
  } else {
    streams().add(stream, current_device(), {.task = [=] { std::memmove(to, from, size); }});
  }
  return is_pageable(to) ? streams().synchronize(stream) : cudaSuccess;
}
cudaError_t cudaMemcpyBatchAsync(void** to, void** from, std::size_t* sizes, std::size_t count,
                                 cudaMemcpyAttributes*, std::size_t*, std::size_t, std::size_t*,
                                 cudaStream_t stream) {
  for (std::size_t i = 0; i < count; ++i) {
    cudaMemcpyAsync(to[i], from[i], sizes[i], cudaMemcpyDefault, stream);
  }
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const auto device = static_cast<std::size_t>(current_device());
  *free_bytes = *total_bytes =
      towpath::virtual_gpu::system().machine().devices()[device].memory_bytes;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  *attributes = {};
  const auto found = memory().find(number(address));
  attributes->device = found ? found->device : -1;
  if (!found) return cudaSuccess;
  attributes->type = found->kind == MemoryKind::pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->devicePointer = const_cast<void*>(address);
  if (found->kind == MemoryKind::pinned) attributes->hostPointer = const_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  const auto shared = memory().share_allocation(number(address));
  if (!shared) return keep(cudaErrorInvalidValue);
  static_assert(sizeof(SharedBlock) <= sizeof handle->reserved);
  *handle = {};
  std::memcpy(handle->reserved, &*shared, sizeof *shared);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned) {
  SharedBlock shared;
  std::memcpy(&shared, handle.reserved, sizeof shared);
  const std::uint64_t block = memory().open(shared);
  if (block == 0) return keep(cudaErrorInvalidValue);
  const auto begin = memory().reserve(shared.size_bytes, 0);
  if (!begin || !memory().map(*begin, shared.size_bytes, 0, block)) {
    return keep(cudaErrorInvalidValue);
  }
  memory().set_access(*begin, shared.size_bytes, true);
  *address = reinterpret_cast<void*>(*begin);
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* address) {
  const auto found = memory().find(number(address));
  if (!found || found->kind != MemoryKind::reserved) return keep(cudaErrorInvalidValue);
  memory().unmap(found->address, found->size_bytes);
  memory().release(found->handle);
  memory().unreserve(found->address, found->size_bytes);
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  *pool = new towpath_memory_pool{properties->location.id};
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }

}  // extern "C"
