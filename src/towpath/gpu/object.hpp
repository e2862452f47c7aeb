// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/os/code_fault.hpp"
#include "towpath/os/library_copy.hpp"

namespace towpath::gpu {

namespace abi = towpath_gpu;

// A copy of a compiled source in this process, with a copy of its variables.
class LoadedObject {
 public:
  // Throws std::runtime_error if the system does not load it, or if it was compiled against
  // another version of our headers.
  explicit LoadedObject(const std::filesystem::path& file);
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  const abi::Object& object() const { return object_; }
  // "FILE:LINE" of an address in its code, from the debugger's tables, or empty. Code of our
  // headers is where the source calls it.
  std::string place_of(const void* address) const;
  // The addresses of its code and variables.
  const abi::Range& extent() const { return extent_; }
  // The error for a processor exception in the source's code: `who` and the position.
  std::runtime_error named(const os::CodeFault& fault, const std::string& who) const;
  // Null if there is no such kernel.
  const abi::Kernel* find_kernel(const void* function) const;
  const abi::Kernel* find_kernel(const std::string& name) const;

 private:
  os::LibraryCopy library_;
  abi::Object object_{};
  abi::Range extent_{};
};

}  // namespace towpath::gpu
