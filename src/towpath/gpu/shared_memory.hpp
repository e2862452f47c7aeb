// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "towpath/gpu/include/towpath_gpu.h"

namespace towpath::gpu {

namespace abi = towpath_gpu;

// The shared memory of a block, allocated at its first use. There are gaps between its variables,
// so that an access beyond one is not inside the next.
class SharedMemory {
 public:
  static constexpr std::uint64_t kStaticBytes = 48 << 10;

  explicit SharedMemory(std::uint64_t dynamic_bytes) : dynamic_bytes_(dynamic_bytes) {}

  void* dynamic();
  // The variables of a declaration. Null if there is no room.
  void* variable(const abi::SharedVariable& declared);
  abi::Range range() const { return {reinterpret_cast<std::uintptr_t>(bytes_.get()), capacity_}; }

  // The declaration that contains all these bytes. Empty if there is none.
  abi::Range around(std::uintptr_t address, std::uint64_t size_bytes) const;
  // The declaration nearest to an address.
  struct Extent {
    std::uintptr_t begin;
    std::uint64_t size_bytes;
    std::string name;  // "__shared__ sums"
  };
  Extent nearest(std::uintptr_t address) const;

 private:
  static constexpr std::uint64_t kAlignment = 128;
  static constexpr std::uint64_t kGapBytes = 64;
  static constexpr std::uint64_t kGapsMax = 256;  // the next variables have none

  struct Variable {
    const void* declaration;  // null: the dynamic part
    std::uint64_t offset;
    std::uint64_t size_bytes;
    const char* names;
  };
  void allocate();
  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(bytes_.get()); }

  std::uint64_t dynamic_bytes_;
  std::unique_ptr<std::byte[]> bytes_;
  std::uint64_t capacity_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t static_bytes_ = 0;  // without gaps
  std::vector<Variable> variables_;
};

}  // namespace towpath::gpu
