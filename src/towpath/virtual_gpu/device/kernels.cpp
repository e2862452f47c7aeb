// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/kernels.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

// Filled before main(), and by libraries that are loaded later.
struct Program {
  std::mutex mutex;
  std::map<const void*, const abi::Kernel*> kernels;
  std::map<std::string, std::uint64_t> variables;  // their places in shared memory
  std::atomic<std::uint64_t> shared_bytes = 0;
};

Program& program() {
  static Program* const only = new Program;
  return *only;
}

}  // namespace

const abi::Kernel* kernel_at(const void* function) {
  Program& all = program();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.kernels.find(function);
  return found == all.kernels.end() ? nullptr : found->second;
}

abi::Launch launch_of(const abi::Kernel& kernel, const abi::Configuration& configuration,
                      void** arguments) {
  std::vector<void*> all(arguments, arguments + kernel.parameters);
  all.push_back(const_cast<void*>(kernel.body));
  return {configuration,        kernel.name,    kernel.run, kernel.bind(all.data()),
          kernel.closure_bytes, kernel.destroy, false,      false};
}

abi::Launch launch_of_buffer(const abi::Kernel& kernel, const abi::Configuration& configuration,
                             void* buffer) {
  std::vector<void*> arguments;
  std::size_t offset = 0;
  for (int i = 0; i < kernel.parameters; ++i) {
    const auto alignment = static_cast<std::size_t>(kernel.parameter[i].alignment_bytes);
    offset = (offset + alignment - 1) / alignment * alignment;
    arguments.push_back(static_cast<char*>(buffer) + offset);
    offset += static_cast<std::size_t>(kernel.parameter[i].size_bytes);
  }
  return launch_of(kernel, configuration, arguments.data());
}

std::uint64_t static_shared_bytes() { return program().shared_bytes; }

}  // namespace towpath::virtual_gpu

extern "C" {

void towpath_virtual_gpu_add_kernel(const towpath_gpu::Kernel* kernel) {
  auto& all = towpath::virtual_gpu::program();
  const std::scoped_lock lock(all.mutex);
  all.kernels[kernel->function] = kernel;
}

bool towpath_virtual_gpu_has_kernel(const void* function) {
  return towpath::virtual_gpu::kernel_at(function) != nullptr;
}

std::uint64_t towpath_virtual_gpu_shared_offset(const char* name, std::uint64_t size_bytes,
                                                std::uint64_t alignment) {
  auto& all = towpath::virtual_gpu::program();
  const std::scoped_lock lock(all.mutex);
  const std::string key =
      name == nullptr ? std::string() : std::string(name) + " " + std::to_string(size_bytes);
  if (!key.empty()) {
    const auto found = all.variables.find(key);
    if (found != all.variables.end()) return found->second;
  }
  const std::uint64_t unit = std::max<std::uint64_t>(alignment, 16);
  const std::uint64_t offset = (all.shared_bytes + unit - 1) / unit * unit;
  all.shared_bytes = offset + size_bytes;
  if (!key.empty()) all.variables[key] = offset;
  return offset;
}

}  // extern "C"
