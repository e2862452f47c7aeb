// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "towpath/virtual_gpu/memory.hpp"

namespace towpath::virtual_gpu {

// Memory that is bound to a part of a multicast object.
struct BoundPart {
  std::atomic<std::uint32_t> is_bound;
  std::int32_t process, descriptor;  // of the file that holds it
  std::int32_t device;
  std::uint64_t file_offset, size_bytes;
  std::uint64_t offset;  // in the object
};

// The content of the memory of a multicast object, which all of its processes map.
struct BoundParts {
  static constexpr std::uint32_t kMax = 1024;
  std::atomic<std::uint32_t> count;
  BoundPart part[kMax];
};

// Multicast objects of this process: addresses of memory of several GPUs at once.
class Multicast {
 public:
  explicit Multicast(Memory& memory) : memory_(memory) {}

  // False if the object or the memory does not exist, or the object has too many parts.
  bool bind(std::uint64_t object, std::size_t offset, std::uint64_t block, std::size_t block_offset,
            std::size_t size_bytes);
  bool unbind(std::uint64_t object, int device, std::size_t offset);
  void add_mapping(std::uintptr_t address, std::size_t size_bytes, std::size_t offset,
                   std::uint64_t object);
  void remove_mapping(std::uintptr_t address);
  // The replicas of an address. Returns their number.
  unsigned replicas(std::uintptr_t address, unsigned char** found);

 private:
  struct Replica {
    std::uint64_t offset, size_bytes;
    unsigned char* memory;
  };
  struct Mapping {
    std::uintptr_t address;
    std::size_t size_bytes, offset;
    BoundParts* parts;
    std::uint32_t seen;  // parts that are in `replicas`, or no longer bound
    std::vector<Replica> replicas;
  };
  using Mappings = std::vector<Mapping>;
  static const Mapping* find(const Mappings& all, std::uintptr_t address);
  BoundParts* parts_of(std::uint64_t object);
  void publish(Mappings changed);
  const Mapping* look_again(std::uintptr_t address);

  Memory& memory_;
  std::mutex mutex_;
  std::map<std::uint64_t, BoundParts*> parts_;
  // Read without a lock. Earlier lists stay, because a thread may read them.
  std::atomic<const Mappings*> mappings_ = nullptr;
  std::vector<std::unique_ptr<const Mappings>> kept_;
};

}  // namespace towpath::virtual_gpu
