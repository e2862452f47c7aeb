// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace towpath::virtual_gpu {

enum class MemoryKind { device, pinned, reserved };

// A range of addresses: an allocation, or a reservation of the driver's virtual memory.
struct Allocation {
  std::uintptr_t address;
  std::size_t size_bytes;
  MemoryKind kind;
  int device;
  std::uint64_t handle;          // of the block that is mapped here, 0 if none
  std::size_t block_offset = 0;  // of the first byte in the block
};

// A piece of physical memory: a part of this process's file of memory, or of another's.
struct Block {
  std::size_t offset;
  std::size_t size_bytes;
  int device;
  unsigned handle_types;
  bool is_multicast;
  int references;
  int descriptor;  // of the other process's file, -1 for this one
};

// The content of a handle that another thread or process opens.
struct SharedBlock {
  std::uint64_t magic;
  std::uint64_t handle;
  std::uint64_t offset;
  std::uint64_t size_bytes;
  std::int32_t process;
  std::int32_t descriptor;
  std::int32_t device;
  std::uint32_t is_multicast;
};

// The memory of all GPUs of a process, on the host. A page takes memory when it is first touched.
// All of it lies in one file without a name, so that it ends with the process and a peer can map
// it. Errors of the system end the process by `stop`. The memory of a multicast block lists the
// memory that is bound to it (multicast.hpp).
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // None if `size_bytes` is more than the file may have.
  std::optional<std::uintptr_t> allocate(std::size_t size_bytes, MemoryKind kind, int device);
  // False if the address is not the begin of an allocation.
  bool free(std::uintptr_t address);
  // Memory that the program has allocated itself.
  bool lend(std::uintptr_t address, std::size_t size_bytes);
  bool take_back(std::uintptr_t address);
  // The allocation that holds an address.
  std::optional<Allocation> find(std::uintptr_t address) const;

  // The driver's virtual memory: a handle of a block, and ranges to map it to. 0 or false if an
  // argument does not fit.
  std::uint64_t create(std::size_t size_bytes, int device, unsigned handle_types,
                       bool is_multicast);
  std::optional<Block> block(std::uint64_t handle) const;
  bool retain(std::uint64_t handle);
  bool release(std::uint64_t handle);
  std::optional<std::uintptr_t> reserve(std::size_t size_bytes, std::size_t alignment);
  bool unreserve(std::uintptr_t address, std::size_t size_bytes);
  bool map(std::uintptr_t address, std::size_t size_bytes, std::size_t offset,
           std::uint64_t handle);
  bool unmap(std::uintptr_t address, std::size_t size_bytes);
  bool set_access(std::uintptr_t address, std::size_t size_bytes, bool is_accessible);
  // Sets a range to zero. Whole pages are given back, so that they take no memory.
  void clear(std::uintptr_t address, std::size_t size_bytes);
  // The block that is mapped to an address, with one more reference. 0 if there is none.
  std::uint64_t handle_at(std::uintptr_t address);

  std::optional<SharedBlock> share(std::uint64_t handle) const;
  std::optional<SharedBlock> share_allocation(std::uintptr_t address);
  // A block mapped for this process, its first bytes. Null if there is none.
  void* view(std::uint64_t handle, std::size_t size_bytes) const;
  // A part of the file of memory of this or another process. Null if the process has ended.
  void* map_part(int process, int descriptor, std::size_t offset, std::size_t size_bytes);
  // The handle of a shared block of this or another process. 0 if it no longer exists.
  std::uint64_t open(const SharedBlock& shared);

 private:
  std::size_t take(std::size_t size_bytes);
  int descriptor_of(const Block& block) const;
  int file_of(int process, int descriptor);
  static void forget(int file, std::size_t offset, std::size_t size_bytes);
  // False if the pages are not of a block.
  bool forget_pages(std::uintptr_t begin, std::uintptr_t end);
  const Allocation* holder(std::uintptr_t address) const;

  mutable std::mutex mutex_;
  int file_;
  std::size_t end_ = 0;
  std::uint64_t next_handle_ = 1;
  std::map<std::uintptr_t, Allocation> allocations_;
  std::map<std::uintptr_t, Allocation> mappings_;  // in reservations
  std::map<std::uint64_t, Block> blocks_;
  std::map<ino_t, int> peer_files_;  // open until the process ends
};

inline constexpr std::size_t kGranularityBytes = std::size_t{2} << 20;

}  // namespace towpath::virtual_gpu
