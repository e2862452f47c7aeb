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
#include "towpath_gpu.h"

namespace towpath::virtual_gpu {

// A part that is claimed is being written or removed.
enum class PartState : std::uint32_t { free, claimed, bound };

// Memory that is bound to a part of a multicast object.
struct BoundPart {
  std::atomic<PartState> state;
  std::int32_t process, descriptor;  // of the file that holds it
  std::int32_t device;
  std::uint64_t file_offset, size_bytes;
  std::uint64_t offset;  // in the object
};

// The content of the memory of a multicast object, which all of its processes map.
struct BoundParts {
  static constexpr std::uint32_t kMax = 1024;
  std::atomic<std::uint32_t> changes;  // how often memory was bound or unbound
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
  // The object has been released. Its mappings stay.
  void forget(std::uint64_t object);
  // The replicas of an address, which the running worker keeps. Stops the run if no memory is bound
  // there, or more than `kReplicasMax` pieces.
  const towpath_gpu::Replicas& replicas(std::uintptr_t address);

 private:
  struct Replica {
    std::int32_t process, descriptor;
    std::uint64_t file_offset, size_bytes, offset;
    unsigned char* memory = nullptr;
    bool is_same(const Replica& other) const {
      return process == other.process && descriptor == other.descriptor &&
             file_offset == other.file_offset && size_bytes == other.size_bytes &&
             offset == other.offset;
    }
  };
  struct Mapping {
    std::uintptr_t address;
    std::size_t size_bytes, offset;
    std::shared_ptr<BoundParts> parts;
    std::uint32_t seen;  // changes of the parts that are in `replicas`
    std::vector<Replica> replicas;
  };
  static std::vector<Replica> bound_to(const BoundParts& parts);
  std::shared_ptr<BoundParts> parts_of(std::uint64_t object);
  void find_replicas(Mapping& mapping);
  static void keep(const Mapping& mapping, std::uintptr_t address, towpath_gpu::Replicas& kept);
  towpath_gpu::Range range_without(std::uintptr_t address) const;

  Memory& memory_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<BoundParts>> parts_;
  std::vector<Mapping> mappings_;
};

}  // namespace towpath::virtual_gpu
