// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// CUDA's driver: virtual memory, handles that peers open, and multicast objects.

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "cuda.h"
#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/system.hpp"

using namespace towpath::virtual_gpu;

namespace {

Memory& memory() { return towpath::virtual_gpu::system().memory(); }

Multicast& multicast() { return towpath::virtual_gpu::system().multicast(); }

CUresult result_of(bool is_good) { return is_good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

}  // namespace

extern "C" {

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t size, std::size_t alignment,
                             CUdeviceptr, unsigned long long) {
  const auto begin = memory().reserve(size, alignment);
  if (!begin) return CUDA_ERROR_INVALID_VALUE;
  *address = *begin;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr address, std::size_t size) {
  return result_of(memory().unreserve(address, size));
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size,
                     const CUmemAllocationProp* properties, unsigned long long) {
  const bool is_fabric = (properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0;
  const bool is_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  const int device = is_device ? properties->location.id : current_device();
  if (!has_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const auto& machine = towpath::virtual_gpu::system().machine();
  if (is_fabric && !machine.devices()[static_cast<std::size_t>(device)].has_fabric_handles) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  *handle = memory().create(size, device, properties->requestedHandleTypes, false);
  return *handle == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const bool is_released = memory().release(handle);
  if (!memory().block(handle)) multicast().forget(handle);
  return result_of(is_released);
}
CUresult cuMemMap(CUdeviceptr address, std::size_t size, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  if (!memory().map(address, size, offset, handle)) return CUDA_ERROR_INVALID_VALUE;
  if (memory().block(handle)->is_multicast) {
    multicast().add_mapping(address, size, offset, handle);
  }
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, std::size_t size) {
  multicast().remove_mapping(address);
  return result_of(memory().unmap(address, size));
}
CUresult cuMemSetAccess(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* access,
                        std::size_t count) {
  // A plain access of C++ must not reach the list of memory that is bound there.
  const auto found = memory().find(address);
  const auto block = found ? memory().block(found->handle) : std::nullopt;
  if (block && block->is_multicast) return CUDA_SUCCESS;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_accessible = access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (!memory().set_access(address, size, is_accessible)) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationGranularity(std::size_t* size, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *size = kGranularityBytes;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  const auto block = memory().block(handle);
  if (!block) return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->requestedHandleTypes = static_cast<CUmemAllocationHandleType>(block->handle_types);
  properties->location = {CU_MEM_LOCATION_TYPE_DEVICE, block->device};
  return CUDA_SUCCESS;
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  *handle = memory().handle_at(reinterpret_cast<std::uintptr_t>(address));
  return result_of(*handle != 0);
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long) {
  const auto shared = memory().share(handle);
  if (!shared) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
    auto* const fabric = static_cast<CUmemFabricHandle*>(shareable);
    static_assert(sizeof *shared <= sizeof fabric->data);
    *fabric = {};
    std::memcpy(fabric->data, &*shared, sizeof *shared);
    return CUDA_SUCCESS;
  }
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const int file = memfd_create("towpath-virtual-gpu-handle", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (write(file, &*shared, sizeof *shared) != static_cast<ssize_t>(sizeof *shared)) {
    close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *static_cast<int*>(shareable) = file;
  return CUDA_SUCCESS;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  SharedBlock shared{};
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
    std::memcpy(&shared, shareable, sizeof shared);
  } else {
    const auto file = static_cast<int>(reinterpret_cast<std::uintptr_t>(shareable));
    if (pread(file, &shared, sizeof shared, 0) != static_cast<ssize_t>(sizeof shared)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  *handle = memory().open(shared);
  return result_of(*handle != 0);
}
CUresult cuMemGetHandleForAddressRange(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType,
                                       unsigned long long) {
  // No device says that it has DMA-BUF.
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle,
                           const CUmulticastObjectProp* properties) {
  const int device = current_device();
  const auto& machine = towpath::virtual_gpu::system().machine();
  if (!machine.devices()[static_cast<std::size_t>(device)].has_multicast) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (properties->size % kGranularityBytes != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = memory().create(properties->size, device,
                            static_cast<unsigned>(properties->handleTypes), true);
  return result_of(*handle != 0);
}
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
  const auto block = memory().block(handle);
  return result_of(block && block->is_multicast && has_device(device));
}
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast_handle, std::size_t offset,
                            CUmemGenericAllocationHandle own, std::size_t own_offset,
                            std::size_t size, unsigned long long) {
  const auto object = memory().block(multicast_handle);
  const auto block = memory().block(own);
  return result_of(object && object->is_multicast && block && offset + size <= object->size_bytes &&
                   own_offset + size <= block->size_bytes &&
                   multicast().bind(multicast_handle, offset, own, own_offset, size));
}
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast_handle, std::size_t offset,
                             CUdeviceptr address, std::size_t size, unsigned long long) {
  const auto object = memory().block(multicast_handle);
  const auto found = memory().find(address);
  return result_of(object && object->is_multicast && offset + size <= object->size_bytes && found &&
                   multicast().bind(multicast_handle, offset, found->handle,
                                    address - found->address + found->block_offset, size));
}
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast_handle, CUdevice device,
                           std::size_t offset, std::size_t) {
  const auto object = memory().block(multicast_handle);
  return result_of(object && object->is_multicast &&
                   multicast().unbind(multicast_handle, device, offset));
}
CUresult cuMulticastGetGranularity(std::size_t* size, const CUmulticastObjectProp*,
                                   CUmulticastGranularity_flags) {
  *size = kGranularityBytes;
  return CUDA_SUCCESS;
}

}  // extern "C"
