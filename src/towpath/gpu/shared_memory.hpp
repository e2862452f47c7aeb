// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/gpu/include/towpath_gpu.h"

namespace towpath::gpu {

namespace abi = towpath_gpu;

// The shared memory of a block, allocated at its first use.
class SharedMemory {
 public:
  static constexpr std::uint64_t kStaticBytes = 48 << 10;

  explicit SharedMemory(std::uint64_t dynamic_bytes) : dynamic_bytes_(dynamic_bytes) {}

  void* dynamic();
  // The variable that a declaration has. Null if there is no room.
  void* variable(const void* declaration, std::uint64_t size_bytes, std::uint64_t alignment);
  abi::Range range() const { return {reinterpret_cast<std::uintptr_t>(bytes_.get()), capacity_}; }

 private:
  struct Variable {
    const void* declaration;  // null: the dynamic part
    std::uint64_t offset;
  };
  void allocate();

  std::uint64_t dynamic_bytes_;
  std::unique_ptr<std::byte[]> bytes_;
  std::uint64_t capacity_ = 0;
  std::uint64_t used_ = 0;
  std::vector<Variable> variables_;
};

}  // namespace towpath::gpu
