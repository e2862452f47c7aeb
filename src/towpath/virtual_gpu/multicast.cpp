// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/multicast.hpp"

#include <algorithm>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath_gpu.h"

// Around all mappings of multicast memory in this process.
extern "C" {
towpath_gpu::Range towpath_gpu_multicast{};
}

namespace towpath::virtual_gpu {

BoundParts* Multicast::parts_of(std::uint64_t object) {
  BoundParts*& found = parts_[object];
  if (found == nullptr) found = static_cast<BoundParts*>(memory_.view(object, sizeof(BoundParts)));
  return found;
}

bool Multicast::bind(std::uint64_t object, std::size_t offset, std::uint64_t block,
                     std::size_t block_offset, std::size_t size_bytes) {
  const std::scoped_lock lock(mutex_);
  const auto shared = memory_.share(block);
  BoundParts* const parts = parts_of(object);
  if (!shared || parts == nullptr) return false;
  const std::uint32_t number = parts->count.fetch_add(1);
  if (number >= BoundParts::kMax) return false;
  BoundPart& part = parts->part[number];
  part.process = shared->process;
  part.descriptor = shared->descriptor;
  part.device = shared->device;
  part.file_offset = shared->offset + block_offset;
  part.size_bytes = size_bytes;
  part.offset = offset;
  part.is_bound = 1;
  return true;
}

bool Multicast::unbind(std::uint64_t object, int device, std::size_t offset) {
  const std::scoped_lock lock(mutex_);
  BoundParts* const parts = parts_of(object);
  if (parts == nullptr) return false;
  for (std::uint32_t i = 0; i < std::min(parts->count.load(), BoundParts::kMax); ++i) {
    BoundPart& part = parts->part[i];
    if (part.device == device && part.offset == offset) part.is_bound = 0;
  }
  return true;
}

void Multicast::publish(Mappings changed) {
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  for (const Mapping& each : changed) {
    begin = std::min(begin, each.address);
    end = std::max(end, each.address + each.size_bytes);
  }
  kept_.push_back(std::make_unique<const Mappings>(std::move(changed)));
  mappings_ = kept_.back().get();
  towpath_gpu_multicast =
      begin < end ? towpath_gpu::Range{begin, end - begin} : towpath_gpu::Range{};
}

void Multicast::add_mapping(std::uintptr_t address, std::size_t size_bytes, std::size_t offset,
                            std::uint64_t object) {
  const std::scoped_lock lock(mutex_);
  Mappings changed = mappings_ == nullptr ? Mappings() : *mappings_.load();
  changed.push_back({address, size_bytes, offset, parts_of(object), 0, {}});
  publish(std::move(changed));
}

void Multicast::remove_mapping(std::uintptr_t address) {
  const std::scoped_lock lock(mutex_);
  if (mappings_ == nullptr) return;
  Mappings changed = *mappings_.load();
  const auto removed =
      std::erase_if(changed, [&](const Mapping& each) { return each.address == address; });
  if (removed > 0) publish(std::move(changed));
}

const Multicast::Mapping* Multicast::find(const Mappings& all, std::uintptr_t address) {
  for (const Mapping& each : all) {
    if (address - each.address < each.size_bytes) return &each;
  }
  return nullptr;
}

// Other ranks have bound memory since the last look.
const Multicast::Mapping* Multicast::look_again(std::uintptr_t address) {
  const std::scoped_lock lock(mutex_);
  Mappings changed = *mappings_.load();
  auto* const mapping = const_cast<Mapping*>(find(changed, address));
  for (; mapping->seen < mapping->parts->count; ++mapping->seen) {
    const BoundPart& part = mapping->parts->part[mapping->seen];
    if (part.is_bound == 0) continue;
    auto* const memory = static_cast<unsigned char*>(
        Memory::map_part(part.process, part.descriptor, part.file_offset, part.size_bytes));
    mapping->replicas.push_back({part.offset, part.size_bytes, memory});
  }
  publish(std::move(changed));
  return find(*mappings_.load(), address);
}

unsigned Multicast::replicas(std::uintptr_t address, unsigned char** found) {
  const Mappings* const all = mappings_;
  const Mapping* mapping = all == nullptr ? nullptr : find(*all, address);
  if (mapping == nullptr) stop("a kernel uses an address as multicast memory that is not");
  if (mapping->seen < mapping->parts->count) mapping = look_again(address);
  const std::size_t offset = address - mapping->address + mapping->offset;
  unsigned count = 0;
  for (const Replica& each : mapping->replicas) {
    if (offset - each.offset >= each.size_bytes || count == towpath_gpu::kReplicasMax) continue;
    found[count++] = each.memory + (offset - each.offset);
  }
  if (count == 0) stop("a kernel uses multicast memory to which no memory is bound");
  return count;
}

}  // namespace towpath::virtual_gpu
