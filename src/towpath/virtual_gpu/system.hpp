// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "cuda_runtime.h"
#include "towpath/virtual_gpu/machine.hpp"
#include "towpath/virtual_gpu/memory.hpp"
#include "towpath/virtual_gpu/multicast.hpp"

struct towpath_memory_pool {
  int device;
};

namespace towpath::virtual_gpu {

// A kernel that was given to a GPU.
struct Launch {
  int device;
  const void* function;
  dim3 grid, block;
  std::size_t shared_bytes;
  void** arguments;
  void* argument_buffer;  // instead of them
  cudaStream_t stream;
};

// The GPUs of this process. CUDA's interface has no handle for them, so there is one of these: it
// is made by the first call from the file that $TOWPATH_VIRTUAL_GPU_FILE names.
class System {
 public:
  explicit System(Machine machine) : machine_(std::move(machine)) {}

  const Machine& machine() const { return machine_; }
  Memory& memory() { return memory_; }
  Multicast& multicast() { return multicast_; }

  // Kernels then do not run. The observer gets each launch, in the thread that launches.
  void observe_launches(std::function<void(const Launch&)> observer);
  cudaError_t launch(const Launch& launch);

 private:
  Machine machine_;
  Memory memory_;
  Multicast multicast_{memory_};
  std::mutex mutex_;
  std::function<void(const Launch&)> observer_;
};

System& system();

// The device and the last error of this thread.
int& current_device();
cudaError_t& last_error();
cudaError_t keep(cudaError_t error);
// False if there is no such device.
bool has_device(int device);
// The value of a device attribute, by CUDA's number, which its runtime and driver share. Stops the
// run at a number that no program asked for so far.
int device_attribute(int attribute, int device);

}  // namespace towpath::virtual_gpu
