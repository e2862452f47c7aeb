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
  ++version_;
  towpath_gpu_multicast.include(address, size_bytes);
}

void Multicast::remove_mapping(std::uintptr_t address) {
  const std::scoped_lock lock(mutex_);
  const auto removed = std::find_if(mappings_.begin(), mappings_.end(),
                                    [&](const Mapping& each) { return each.address == address; });
  if (removed == mappings_.end()) return;
  for (const Replica& each : removed->replicas) munmap(each.memory, each.size_bytes);
  mappings_.erase(removed);
  ++version_;
}

const Multicast::Mapping* Multicast::find(const Mappings& all, std::uintptr_t address) {
  for (const Mapping& each : all) {
    if (address - each.address < each.size_bytes) return &each;
  }
  return nullptr;
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

Multicast::Copy& Multicast::copy_of_thread() {
  thread_local Copy copy;
  return copy;
}

// Memory was bound, or the list of mappings has changed, since this thread's last look.
const Multicast::Mapping* Multicast::look_again(std::uintptr_t address) {
  const std::scoped_lock lock(mutex_);
  auto* const mapping = const_cast<Mapping*>(find(mappings_, address));
  if (mapping != nullptr && mapping->seen != mapping->parts->changes) {
    mapping->seen = mapping->parts->changes;
    std::vector<Replica> earlier = std::exchange(mapping->replicas, bound_to(*mapping->parts));
    for (Replica& each : mapping->replicas) {
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
    std::erase_if(mapping->replicas, [](const Replica& each) { return each.memory == nullptr; });
    for (const Replica& each : earlier) munmap(each.memory, each.size_bytes);
    ++version_;
  }
  copy_of_thread() = {this, version_, mappings_};
  return find(copy_of_thread().mappings, address);
}

unsigned Multicast::replicas(std::uintptr_t address, unsigned char** found) {
  const Copy& copy = copy_of_thread();
  const bool is_current = copy.of == this && copy.version == version_;
  const Mapping* mapping = is_current ? find(copy.mappings, address) : look_again(address);
  if (mapping != nullptr && mapping->seen != mapping->parts->changes) mapping = look_again(address);
  if (mapping == nullptr) return 0;
  const std::size_t offset = address - mapping->address + mapping->offset;
  unsigned count = 0;
  for (const Replica& each : mapping->replicas) {
    if (offset - each.offset >= each.size_bytes) continue;
    if (count == towpath_gpu::kReplicasMax) {
      stop("more than " + std::to_string(count) +
           " pieces of memory are bound to one place of a multicast object");
    }
    found[count++] = each.memory + (offset - each.offset);
  }
  if (count == 0) stop("a kernel uses multicast memory to which no memory is bound");
  return count;
}

}  // namespace towpath::virtual_gpu
