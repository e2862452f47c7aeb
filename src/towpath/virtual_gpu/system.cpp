// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/system.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "cuda.h"
#include "towpath/virtual_gpu/device/kernels.hpp"
#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/device/units.hpp"
#include "towpath/virtual_gpu/streams.hpp"

namespace towpath::virtual_gpu {
namespace {

// The attributes that all virtual GPUs have in common.
const std::map<int, int> kFixedAttributes = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
    {cudaDevAttrWarpSize, 32},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 1},
    // Buffers go to adapters by their addresses. There is no file descriptor for them.
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, 0},
};

Machine described_machine() {
  const char* const path = std::getenv("TOWPATH_VIRTUAL_GPU_FILE");
  if (path == nullptr) {
    stop("$TOWPATH_VIRTUAL_GPU_FILE is not set; it must name a description of virtual GPUs");
  }
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) stop(std::string("cannot read the description of virtual GPUs, ") + path);
  try {
    return Machine::parse(text.str());
  } catch (const std::invalid_argument& error) {
    stop(std::string(path) + ": " + error.what());
  }
}

}  // namespace

System& system() {
  // Never destroyed: other threads of the program may call until the process ends.
  static System* const only = new System(described_machine());
  return *only;
}

void System::observe_launches(std::function<void(const Launch&)> observer) {
  const std::scoped_lock lock(mutex_);
  observer_ = std::move(observer);
}

cudaError_t System::launch(const Launch& launch) {
  {
    std::unique_lock lock(mutex_);
    if (observer_) {
      const std::function<void(const Launch&)> observer = observer_;
      lock.unlock();
      observer(launch);
      return cudaSuccess;
    }
  }
  const abi::Kernel* kernel = kernel_at(launch.function);
  if (kernel == nullptr) kernel = kernel_at(code_of_stub(launch.function));
  if (kernel == nullptr) {
    stop("a kernel was launched that has no code here; compile its file with towpath nccl compile");
  }
  if (kernel->parameters > 0 && launch.arguments == nullptr && launch.argument_buffer == nullptr) {
    return cudaErrorInvalidValue;
  }
  const abi::Configuration configuration{launch.grid, launch.block, launch.shared_bytes,
                                         launch.stream};
  return streams().launch(launch.argument_buffer != nullptr
                              ? launch_of_buffer(*kernel, configuration, launch.argument_buffer)
                              : launch_of(*kernel, configuration, launch.arguments),
                          launch.device);
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

cudaError_t keep(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}

bool has_device(int device) {
  return device >= 0 && device < static_cast<int>(system().machine().devices().size());
}

int device_attribute(int attribute, int number) {
  const auto fixed = kFixedAttributes.find(attribute);
  if (fixed != kFixedAttributes.end()) return fixed->second;
  const Device& device = system().machine().devices()[static_cast<std::size_t>(number)];
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return device.multiprocessors;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return device.major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return device.minor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return static_cast<int>(device.shared_bytes);
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
      return device.major >= 9 ? CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES
                               : CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED: return device.has_fabric_handles;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: return device.has_multicast;
    default: stop_at_unknown(("device attribute " + std::to_string(attribute)).c_str());
  }
}

}  // namespace towpath::virtual_gpu
