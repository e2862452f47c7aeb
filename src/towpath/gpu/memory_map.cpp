// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/memory_map.hpp"

#include <fmt/format.h>

#include <iterator>

namespace towpath::gpu {

std::string Allocation::describe() const {
  const std::string bytes =
      fmt::format("the {} byte{} of {}", size_bytes, size_bytes == 1 ? "" : "s", made.call);
  return made.file == nullptr ? bytes : fmt::format("{} at {}:{}", bytes, made.file, made.line);
}

void MemoryMap::add(const Allocation& allocation) {
  last_ = nullptr;
  // Host memory can also be freed by calls that are not observed here.
  auto at = used_.lower_bound(allocation.begin);
  while (at != used_.end() && at->first - allocation.begin < allocation.size_bytes) {
    at = used_.erase(at);
  }
  used_[allocation.begin] = allocation;
}

bool MemoryMap::free(std::uintptr_t begin, const abi::Site& site) {
  const auto found = used_.find(begin);
  if (found == used_.end()) return false;
  last_ = nullptr;
  found->second.freed = site;
  freed_.push_back(found->second);
  if (freed_.size() > kFreedMax) freed_.pop_front();
  used_.erase(found);
  return true;
}

const Allocation* MemoryMap::find(std::uintptr_t address) const {
  if (last_ != nullptr && last_->holds(address, 1)) return last_;
  const auto after = used_.upper_bound(address);
  if (after == used_.begin()) return nullptr;
  const Allocation& found = std::prev(after)->second;
  if (!found.holds(address, 1)) return nullptr;
  last_ = &found;
  return &found;
}

const Allocation* MemoryMap::nearest(std::uintptr_t address, const abi::Range& within) const {
  for (auto freed = freed_.rbegin(); freed != freed_.rend(); ++freed) {
    if (freed->holds(address, 1)) return &*freed;
  }
  const auto is_near = [&](const auto& entry) { return within.contains(entry->first); };
  const auto after = used_.upper_bound(address);
  const bool has_after = after != used_.end() && is_near(after);
  if (after == used_.begin() || !is_near(std::prev(after))) {
    return has_after ? &after->second : nullptr;
  }
  const Allocation& before = std::prev(after)->second;
  const std::uintptr_t end = before.begin + before.size_bytes;
  const bool is_before_nearer =
      !has_after || address < end || address - end <= after->first - address;
  return is_before_nearer ? &before : &after->second;
}

}  // namespace towpath::gpu
