// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "towpath/gpu/errors.hpp"
#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/gpu/memory_map.hpp"

namespace towpath::gpu {

class Block;
class Pe;
struct CopyRequest;

// An access in the form that the compiler reports.
struct MemoryAccess {
  std::uintptr_t address = 0;
  std::uint64_t size_bytes = 0;
  const char* verb = "loads";  // "loads", "stores", "changes"
  const void* where = nullptr;

  bool is_inside(const abi::Range& range) const { return range.contains(address); }
};

// Finds invalid accesses to memory by kernels, by the host program, and by copies and transfers.
class MemoryCheck {
 public:
  explicit MemoryCheck(Pe& pe) : pe_(pe) {}

  MemoryMap& map() { return map_; }

  // The GPU memory, of this PE or of one that it can reach, that contains an access. These
  // functions throw KernelError.
  const Allocation& of_device(const MemoryAccess& access, const Block& block) const;
  // An access outside the memory of a GPU, of the block and of the source's variables.
  void check_other(const MemoryAccess& access, const Block& block) const;
  // The shared variable of the block that contains an access.
  abi::Range of_shared(const MemoryAccess& access, const Block& block) const;
  [[noreturn]] void refuse_shared_address(const MemoryAccess& access, const Block& block) const;
  [[noreturn]] void refuse_misaligned(const MemoryAccess& access, const Block& block) const;
  // For the host program: the range around the access that needs no further check.
  abi::Range check_host(const MemoryAccess& access) const;
  void check_copy(const CopyRequest& request, const abi::Site& site) const;
  void check_transfer(const abi::Access& access, const Block& block, const abi::Site& site) const;

 private:
  struct Culprit {
    std::string who;   // "thread 3 of block (0,0,0) of kernel k on PE 0 at FILE:LINE"
    std::string what;  // "stores 4 bytes"
  };
  Culprit thread_of(const MemoryAccess& access, const Block& block) const;
  // The address in this PE's memory for an address of this or a reachable GPU; 0 for other memory.
  std::uintptr_t own_address_of(std::uintptr_t address) const;
  // ", 4 bytes into ALLOCATION", or empty.
  std::string place_inside(std::uintptr_t address, const Block& block) const;
  bool is_variable(std::uintptr_t address, std::uint64_t size_bytes) const;
  const Allocation& checked(std::uintptr_t address, std::uint64_t size_bytes,
                            const Culprit& culprit) const;
  [[noreturn]] void refuse(std::uintptr_t address, std::uint64_t size_bytes,
                           const Culprit& culprit) const;
  void check_side(const void* side, std::uint64_t size_bytes, bool is_of_device,
                  const Culprit& culprit) const;

  Pe& pe_;
  MemoryMap map_;
};

}  // namespace towpath::gpu
