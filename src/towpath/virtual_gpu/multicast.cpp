// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/multicast.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath_gpu_launch.h"

extern "C" {
constinit towpath_gpu::Span towpath_gpu_multicast{};
}

namespace towpath::virtual_gpu {
namespace {

// Workers look again at the replicas that they keep.
void change_version() { __atomic_add_fetch(&towpath_gpu_multicast.version, 1, __ATOMIC_RELEASE); }

}  // namespace

std::shared_ptr<BoundParts> Multicast::parts_of(std::uint64_t object) {
  const auto found = parts_.find(object);
  if (found != parts_.end()) return found->second;
  auto* const view = static_cast<BoundParts*>(memory_.view(object, sizeof(BoundParts)));
  if (view == nullptr) return nullptr;
  return parts_[object] = {view, [](BoundParts* parts) { munmap(parts, sizeof *parts); }};
}

void Multicast::forget(std::uint64_t object) {
  const std::scoped_lock lock(mutex_);
  parts_.erase(object);
}

bool Multicast::bind(std::uint64_t object, std::size_t offset, std::uint64_t block,
                     std::size_t block_offset, std::size_t size_bytes) {
  const std::scoped_lock lock(mutex_);
  const auto shared = memory_.share(block);
  const std::shared_ptr<BoundParts> parts = parts_of(object);
  if (!shared || parts == nullptr) return false;
  for (BoundPart& part : parts->part) {
    auto expected = PartState::free;
    if (!part.state.compare_exchange_strong(expected, PartState::claimed)) continue;
    part.process = shared->process;
    part.descriptor = shared->descriptor;
    part.device = shared->device;
    part.file_offset = shared->offset + block_offset;
    part.size_bytes = size_bytes;
    part.offset = offset;
    part.state = PartState::bound;
    ++parts->changes;
    return true;
  }
  return false;
}

bool Multicast::unbind(std::uint64_t object, int device, std::size_t offset) {
  const std::scoped_lock lock(mutex_);
  const std::shared_ptr<BoundParts> parts = parts_of(object);
  if (parts == nullptr) return false;
  for (BoundPart& part : parts->part) {
    if (part.state != PartState::bound || part.device != device || part.offset != offset) continue;
    // A process that reads the part now looks again before another one may write it.
    part.state = PartState::claimed;
    ++parts->changes;
    part.state = PartState::free;
  }
  return true;
}

void Multicast::add_mapping(std::uintptr_t address, std::size_t size_bytes, std::size_t offset,
                            std::uint64_t object) {
  const std::scoped_lock lock(mutex_);
  const std::shared_ptr<BoundParts> parts = parts_of(object);
  if (parts == nullptr) stop("a multicast object is too small for the list of its memory");
  mappings_.push_back({address, size_bytes, offset, parts, parts->changes - 1, {}});
  change_version();
  towpath_gpu_multicast.include(address, size_bytes);
}

void Multicast::remove_mapping(std::uintptr_t address) {
  const std::scoped_lock lock(mutex_);
  const auto removed = std::find_if(mappings_.begin(), mappings_.end(),
                                    [&](const Mapping& each) { return each.address == address; });
  if (removed == mappings_.end()) return;
  change_version();
  for (const Replica& each : removed->replicas) munmap(each.memory, each.size_bytes);
  mappings_.erase(removed);
}

// The parts that are bound at one moment. Other processes bind and unbind.
std::vector<Multicast::Replica> Multicast::bound_to(const BoundParts& parts) {
  for (;;) {
    const std::uint32_t before = parts.changes;
    std::vector<Replica> found;
    for (const BoundPart& part : parts.part) {
      if (part.state != PartState::bound) continue;
      found.push_back(
          {part.process, part.descriptor, part.file_offset, part.size_bytes, part.offset});
    }
    if (parts.changes == before) return found;
  }
}

// Memory was bound or unbound. Pieces that stay keep their addresses.
void Multicast::find_replicas(Mapping& mapping) {
  mapping.seen = mapping.parts->changes;
  std::vector<Replica> earlier = std::exchange(mapping.replicas, bound_to(*mapping.parts));
  for (Replica& each : mapping.replicas) {
    const auto same = std::find_if(earlier.begin(), earlier.end(),
                                   [&](const Replica& one) { return one.is_same(each); });
    if (same != earlier.end()) {
      each.memory = same->memory;
      earlier.erase(same);
    } else {
      each.memory = static_cast<unsigned char*>(
          memory_.map_part(each.process, each.descriptor, each.file_offset, each.size_bytes));
    }
  }
  // The memory of a process ends with it, also if it has not unbound it.
  std::erase_if(mapping.replicas, [](const Replica& each) { return each.memory == nullptr; });
  if (!earlier.empty()) change_version();
  for (const Replica& each : earlier) munmap(each.memory, each.size_bytes);
}

// The replicas of an address, and the addresses around it that have the same ones.
void Multicast::keep(const Mapping& mapping, std::uintptr_t address, towpath_gpu::Replicas& kept) {
  const std::uintptr_t object = mapping.address - mapping.offset;
  std::uintptr_t begin = mapping.address;
  std::uintptr_t end = mapping.address + mapping.size_bytes;
  kept.count = 0;
  for (const Replica& each : mapping.replicas) {
    const std::uintptr_t first = object + each.offset;
    const std::uintptr_t last = first + each.size_bytes;
    if (address >= last) begin = std::max(begin, last);
    if (address < first) end = std::min(end, first);
    if (address < first || address >= last) continue;
    begin = std::max(begin, first);
    end = std::min(end, last);
    if (kept.count == towpath_gpu::kReplicasMax) {
      stop("more than " + std::to_string(kept.count) +
           " pieces of memory are bound to one place of a multicast object");
    }
    kept.distance[kept.count++] = reinterpret_cast<std::uintptr_t>(each.memory) - first;
  }
  if (kept.count == 0) stop("a kernel uses multicast memory to which no memory is bound");
  kept.range = {begin, end - begin};
  kept.seen = mapping.seen;
  static_assert(sizeof(mapping.parts->changes) == sizeof(*kept.changes));
  kept.changes = reinterpret_cast<const std::uint32_t*>(&mapping.parts->changes);
}

// The addresses around `address` that are not of multicast memory.
towpath_gpu::Range Multicast::range_without(std::uintptr_t address) const {
  std::uintptr_t begin = 0, end = UINTPTR_MAX;
  for (const Mapping& each : mappings_) {
    if (each.address > address) end = std::min(end, each.address);
    if (each.address <= address) begin = std::max(begin, each.address + each.size_bytes);
  }
  return {begin, end - begin};
}

const towpath_gpu::Replicas& Multicast::replicas(std::uintptr_t address) {
  const std::scoped_lock lock(mutex_);
  const auto mapping = std::find_if(mappings_.begin(), mappings_.end(), [=](const Mapping& each) {
    return address - each.address < each.size_bytes;
  });
  const bool is_found = mapping != mappings_.end();
  towpath_gpu::Replicas& kept =
      is_found ? towpath_gpu_current.replicas : towpath_gpu_current.no_replicas;
  if (is_found) {
    if (mapping->seen != mapping->parts->changes) find_replicas(*mapping);
    keep(*mapping, address, kept);
  } else {
    kept.range = range_without(address);
  }
  kept.version = towpath_gpu_multicast.version;
  return kept;
}

}  // namespace towpath::virtual_gpu
